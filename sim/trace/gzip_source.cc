#include <zlib.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/check.h"
#include "sim/trace/byte_source.h"

namespace encore::sim {
namespace {

constexpr std::size_t kInput = 256 * 1024;

class GzipSource final : public ByteSource {
 public:
  explicit GzipSource(std::unique_ptr<ByteSource> compressed)
      : compressed_(std::move(compressed)), input_(kInput) {
    // 15 bits of window, 16 more: the gzip wrapper.
    ENCORE_CHECK(inflateInit2(&stream_, 15 + 16) == Z_OK, "zlib has no memory");
  }
  ~GzipSource() override { inflateEnd(&stream_); }
  GzipSource(const GzipSource&) = delete;
  GzipSource& operator=(const GzipSource&) = delete;

  Result<std::size_t> read(std::span<char> out) override {
    const auto room = static_cast<uInt>(std::min<std::size_t>(out.size(), 1U << 30U));
    stream_.next_out = reinterpret_cast<Bytef*>(out.data());
    stream_.avail_out = room;
    while (stream_.avail_out == room && room != 0) {
      if (stream_.avail_in == 0) {
        const auto count = compressed_->read(input_);
        if (!count) {
          return count;
        }
        if (*count == 0) {
          return between_members_ ? Result<std::size_t>(0)
                                  : fail("the gzip data is cut off before its end");
        }
        stream_.next_in = reinterpret_cast<Bytef*>(input_.data());
        stream_.avail_in = static_cast<uInt>(*count);
      }
      between_members_ = false;
      const int status = inflate(&stream_, Z_NO_FLUSH);
      if (status == Z_STREAM_END) {
        // Files may be several members one after the other.
        between_members_ = true;
        inflateReset(&stream_);
      } else if (status != Z_OK) {
        return fail(std::string("the gzip data is damaged: ") +
                    (stream_.msg != nullptr ? stream_.msg : "unexpected data"));
      }
    }
    return room - stream_.avail_out;
  }

 private:
  std::unique_ptr<ByteSource> compressed_;
  std::vector<char> input_;
  z_stream stream_{};
  bool between_members_ = false;
};

}  // namespace

std::unique_ptr<ByteSource> make_gzip_source(std::unique_ptr<ByteSource> compressed) {
  return std::make_unique<GzipSource>(std::move(compressed));
}

}  // namespace encore::sim
