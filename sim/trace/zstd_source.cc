#include <zstd.h>

#include <utility>
#include <vector>

#include "base/check.h"
#include "sim/trace/byte_source.h"

namespace encore::sim {
namespace {

constexpr int kWindowLogMax = 30;  // a gigabyte: what zstd --long=30 writes

class ZstdSource final : public ByteSource {
 public:
  explicit ZstdSource(std::unique_ptr<ByteSource> compressed)
      : compressed_(std::move(compressed)), buffer_(ZSTD_DStreamInSize()) {
    ENCORE_CHECK(stream_ != nullptr, "zstd has no memory");
    ZSTD_DCtx_setParameter(stream_.get(), ZSTD_d_windowLogMax, kWindowLogMax);
  }

  Result<std::size_t> read(std::span<char> out) override {
    ZSTD_outBuffer output{out.data(), out.size(), 0};
    while (output.pos == 0 && !out.empty()) {
      if (input_.pos == input_.size && !more_output_) {
        const auto count = compressed_->read(buffer_);
        if (!count) {
          return count;
        }
        if (*count == 0) {
          return frame_ended_ ? Result<std::size_t>(0)
                              : fail("the zstd data is cut off before its end");
        }
        input_ = {buffer_.data(), *count, 0};
      }
      const std::size_t status = ZSTD_decompressStream(stream_.get(), &output, &input_);
      if (ZSTD_isError(status) != 0) {
        return fail(std::string("the zstd data is damaged: ") + ZSTD_getErrorName(status));
      }
      frame_ended_ = status == 0;
      more_output_ = output.pos == output.size && !frame_ended_;
    }
    return output.pos;
  }

 private:
  struct Free {
    void operator()(ZSTD_DStream* stream) const { ZSTD_freeDStream(stream); }
  };
  std::unique_ptr<ByteSource> compressed_;
  std::vector<char> buffer_;
  std::unique_ptr<ZSTD_DStream, Free> stream_{ZSTD_createDStream()};
  ZSTD_inBuffer input_{nullptr, 0, 0};
  bool frame_ended_ = false;
  bool more_output_ = false;  // the decoder may hold more than fitted
};

}  // namespace

std::unique_ptr<ByteSource> make_zstd_source(std::unique_ptr<ByteSource> compressed) {
  return std::make_unique<ZstdSource>(std::move(compressed));
}

}  // namespace encore::sim
