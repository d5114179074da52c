#include "proxy/coding/brotli_encoder.h"

#include <brotli/encode.h>

#include <cstdint>

namespace encore::coding {
namespace {

// 256 KiB: what the text of a page refers to is near, and the encoder's memory follows from it.
constexpr std::uint32_t kWindowBits = 18;

class BrotliEncoder final : public Encoder {
 public:
  explicit BrotliEncoder(BrotliEncoderState* state) : state_(state) {}
  ~BrotliEncoder() override { BrotliEncoderDestroyInstance(state_); }
  BrotliEncoder(const BrotliEncoder&) = delete;
  BrotliEncoder& operator=(const BrotliEncoder&) = delete;

  Step encode(std::span<const std::byte> in, std::span<std::byte> out, InputAction then) override {
    std::size_t in_left = in.size();
    const auto* next_in = reinterpret_cast<const std::uint8_t*>(in.data());
    std::size_t out_left = out.size();
    auto* next_out = reinterpret_cast<std::uint8_t*>(out.data());
    const bool good = BrotliEncoderCompressStream(state_, operation_of(then), &in_left, &next_in,
                                                  &out_left, &next_out, nullptr) == BROTLI_TRUE;
    Step step{.used = in.size() - in_left, .made = out.size() - out_left, .is_broken = !good};
    const bool left = in_left != 0 || BrotliEncoderHasMoreOutput(state_) == BROTLI_TRUE;
    step.is_done = good && !left &&
                   (then != InputAction::kEnd || BrotliEncoderIsFinished(state_) == BROTLI_TRUE);
    return step;
  }

 private:
  static BrotliEncoderOperation operation_of(InputAction then) noexcept {
    if (then == InputAction::kEnd) return BROTLI_OPERATION_FINISH;
    return then == InputAction::kFlush ? BROTLI_OPERATION_FLUSH : BROTLI_OPERATION_PROCESS;
  }

  BrotliEncoderState* const state_;
};

}  // namespace

std::unique_ptr<Encoder> make_brotli_encoder(int level) {
  BrotliEncoderState* const state = BrotliEncoderCreateInstance(nullptr, nullptr, nullptr);
  if (state == nullptr) return nullptr;
  auto encoder = std::make_unique<BrotliEncoder>(state);
  const bool set = BrotliEncoderSetParameter(state, BROTLI_PARAM_QUALITY,
                                             static_cast<std::uint32_t>(level)) == BROTLI_TRUE &&
                   BrotliEncoderSetParameter(state, BROTLI_PARAM_LGWIN, kWindowBits) == BROTLI_TRUE;
  if (!set) return nullptr;
  return encoder;
}

}  // namespace encore::coding
