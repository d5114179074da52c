#include "proxy/coding/zstd_encoder.h"

#include <zstd.h>

namespace encore::coding {
namespace {

// 512 KiB: decoders must take windows of up to 8 MiB (RFC 9659), and the encoder's memory follows
// from it.
constexpr int kWindowLog = 19;
// From this level on the tables are made for windows of megabytes.
constexpr int kLargeTables = 4;
constexpr int kTableBits = 17;

class ZstdEncoder final : public Encoder {
 public:
  explicit ZstdEncoder(ZSTD_CCtx* context) : context_(context) {}
  ~ZstdEncoder() override { ZSTD_freeCCtx(context_); }
  ZstdEncoder(const ZstdEncoder&) = delete;
  ZstdEncoder& operator=(const ZstdEncoder&) = delete;

  Step encode(std::span<const std::byte> in, std::span<std::byte> out, InputAction then) override {
    ZSTD_inBuffer from{in.data(), in.size(), 0};
    ZSTD_outBuffer to{out.data(), out.size(), 0};
    const std::size_t left = ZSTD_compressStream2(context_, &to, &from, directive_of(then));
    Step step{.used = from.pos, .made = to.pos, .is_broken = ZSTD_isError(left) != 0};
    const bool all_used = from.pos == in.size();
    step.is_done = !step.is_broken && all_used && (then == InputAction::kMore || left == 0);
    return step;
  }

 private:
  static ZSTD_EndDirective directive_of(InputAction then) noexcept {
    if (then == InputAction::kEnd) return ZSTD_e_end;
    return then == InputAction::kFlush ? ZSTD_e_flush : ZSTD_e_continue;
  }

  ZSTD_CCtx* const context_;
};

bool set(ZSTD_CCtx* context, ZSTD_cParameter parameter, int value) {
  return ZSTD_isError(ZSTD_CCtx_setParameter(context, parameter, value)) == 0;
}

}  // namespace

std::unique_ptr<Encoder> make_zstd_encoder(int level) {
  ZSTD_CCtx* const context = ZSTD_createCCtx();
  if (context == nullptr) return nullptr;
  auto encoder = std::make_unique<ZstdEncoder>(context);
  if (!set(context, ZSTD_c_compressionLevel, level) ||
      !set(context, ZSTD_c_windowLog, kWindowLog)) {
    return nullptr;
  }
  if (level >= kLargeTables &&
      (!set(context, ZSTD_c_hashLog, kTableBits) || !set(context, ZSTD_c_chainLog, kTableBits))) {
    return nullptr;
  }
  return encoder;
}

}  // namespace encore::coding
