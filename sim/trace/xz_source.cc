#include <lzma.h>

#include <utility>
#include <vector>

#include "base/check.h"
#include "sim/trace/byte_source.h"

namespace encore::sim {
namespace {

constexpr std::size_t kInput = 256 * 1024;
constexpr std::uint64_t kMemoryMax = 1ULL << 30U;

class XzSource final : public ByteSource {
 public:
  explicit XzSource(std::unique_ptr<ByteSource> compressed)
      : compressed_(std::move(compressed)), input_(kInput) {
    ENCORE_CHECK(lzma_stream_decoder(&stream_, kMemoryMax, LZMA_CONCATENATED) == LZMA_OK,
                 "liblzma has no memory");
  }
  ~XzSource() override { lzma_end(&stream_); }
  XzSource(const XzSource&) = delete;
  XzSource& operator=(const XzSource&) = delete;

  Result<std::size_t> read(std::span<char> out) override {
    stream_.next_out = reinterpret_cast<std::uint8_t*>(out.data());
    stream_.avail_out = out.size();
    while (stream_.avail_out == out.size() && !out.empty() && !ended_) {
      if (stream_.avail_in == 0 && !input_ended_) {
        const auto count = compressed_->read(input_);
        if (!count) {
          return count;
        }
        input_ended_ = *count == 0;
        stream_.next_in = reinterpret_cast<const std::uint8_t*>(input_.data());
        stream_.avail_in = *count;
      }
      const lzma_ret status = lzma_code(&stream_, input_ended_ ? LZMA_FINISH : LZMA_RUN);
      if (status == LZMA_STREAM_END) {
        ended_ = true;
      } else if (status != LZMA_OK) {
        return fail(status == LZMA_BUF_ERROR ? "the xz data is cut off before its end"
                                             : "the xz data is damaged");
      }
    }
    return out.size() - stream_.avail_out;
  }

 private:
  std::unique_ptr<ByteSource> compressed_;
  std::vector<char> input_;
  lzma_stream stream_ = LZMA_STREAM_INIT;
  bool input_ended_ = false;
  bool ended_ = false;
};

}  // namespace

std::unique_ptr<ByteSource> make_xz_source(std::unique_ptr<ByteSource> compressed) {
  return std::make_unique<XzSource>(std::move(compressed));
}

}  // namespace encore::sim
