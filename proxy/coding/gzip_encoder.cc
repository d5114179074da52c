#include "proxy/coding/gzip_encoder.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <limits>

namespace encore::coding {
namespace {

constexpr int kGzipWindow = 15 + 16;
constexpr int kMemory = 8;  // zlib's default: 268 KB in all

class GzipEncoder final : public Encoder {
 public:
  GzipEncoder() = default;
  ~GzipEncoder() override { deflateEnd(&stream_); }
  GzipEncoder(const GzipEncoder&) = delete;
  GzipEncoder& operator=(const GzipEncoder&) = delete;

  bool begin(int level) {
    return deflateInit2(&stream_, level, Z_DEFLATED, kGzipWindow, kMemory, Z_DEFAULT_STRATEGY) ==
           Z_OK;
  }

  Step encode(std::span<const std::byte> in, std::span<std::byte> out, InputAction then) override {
    if (aside_.empty() && (then != InputAction::kFlush || out.size() >= aside_room_.size())) {
      return deflate_into(in, out, then);
    }
    // The end of a flush would be made again and again if it just filled the space.
    Step step;
    if (aside_.empty()) {
      step = deflate_into(in, aside_room_, then);
      aside_ = std::span(aside_room_).first(step.made);
      aside_is_done_ = step.is_done;
    }
    step.made = std::min(aside_.size(), out.size());
    std::ranges::copy(aside_.first(step.made), out.begin());
    aside_ = aside_.subspan(step.made);
    step.is_done = aside_.empty() && aside_is_done_ && step.used == in.size();
    return step;
  }

 private:
  Step deflate_into(std::span<const std::byte> in, std::span<std::byte> out, InputAction then) {
    constexpr std::size_t kMost = std::numeric_limits<uInt>::max();
    const std::size_t given = std::min(in.size(), kMost);
    const std::size_t room = std::min(out.size(), kMost);
    // (zlib does not write what it reads, its older interface does not say so.)
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(in.data()));
    stream_.avail_in = static_cast<uInt>(given);
    stream_.next_out = reinterpret_cast<Bytef*>(out.data());
    stream_.avail_out = static_cast<uInt>(room);
    const int result = deflate(&stream_, given == in.size() ? wish_of(then) : Z_NO_FLUSH);
    Step step{.used = given - stream_.avail_in, .made = room - stream_.avail_out};
    // Without progress, which is no fault: a flush of nothing new.
    step.is_broken = result != Z_OK && result != Z_STREAM_END && result != Z_BUF_ERROR;
    const bool all_used = step.used == in.size();
    step.is_done = then == InputAction::kEnd
                       ? result == Z_STREAM_END
                       : all_used && (then == InputAction::kMore || stream_.avail_out != 0);
    return step;
  }

  static int wish_of(InputAction then) noexcept {
    if (then == InputAction::kEnd) return Z_FINISH;
    return then == InputAction::kFlush ? Z_SYNC_FLUSH : Z_NO_FLUSH;
  }

  z_stream stream_{};
  std::array<std::byte, 64> aside_room_{};
  std::span<std::byte> aside_;  // made, and not taken yet
  bool aside_is_done_ = false;
};

}  // namespace

std::unique_ptr<Encoder> make_gzip_encoder(int level) {
  auto encoder = std::make_unique<GzipEncoder>();
  if (!encoder->begin(level)) return nullptr;
  return encoder;
}

}  // namespace encore::coding
