#include "tests/coding/decoders.h"

#include <brotli/decode.h>
#include <zlib.h>
#include <zstd.h>

#include <array>

namespace encore::coding::test {
namespace {

using Room = std::array<char, 4096>;

class GzipDecoder final : public Decoder {
 public:
  GzipDecoder() { inflateInit2(&stream_, 15 + 16); }
  ~GzipDecoder() override { inflateEnd(&stream_); }
  std::optional<std::string> decode(std::string_view bytes) override {
    std::string out;
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
    stream_.avail_in = static_cast<uInt>(bytes.size());
    Room room;
    do {
      stream_.next_out = reinterpret_cast<Bytef*>(room.data());
      stream_.avail_out = room.size();
      const int result = ended_ ? Z_DATA_ERROR : inflate(&stream_, Z_NO_FLUSH);
      out.append(room.data(), room.size() - stream_.avail_out);
      if (result == Z_STREAM_END) {
        ended_ = true;
        return stream_.avail_in == 0 ? std::optional(out) : std::nullopt;
      }
      if (result != Z_OK && result != Z_BUF_ERROR) return std::nullopt;
    } while (stream_.avail_in != 0 || stream_.avail_out == 0);
    return out;
  }
  bool has_ended() const override { return ended_; }

 private:
  z_stream stream_{};
  bool ended_ = false;
};

class BrotliDecoder final : public Decoder {
 public:
  BrotliDecoder() : state_(BrotliDecoderCreateInstance(nullptr, nullptr, nullptr)) {}
  ~BrotliDecoder() override { BrotliDecoderDestroyInstance(state_); }
  std::optional<std::string> decode(std::string_view bytes) override {
    std::string out;
    std::size_t left = bytes.size();
    const auto* next = reinterpret_cast<const std::uint8_t*>(bytes.data());
    while (true) {
      Room room;
      std::size_t room_left = room.size();
      auto* to = reinterpret_cast<std::uint8_t*>(room.data());
      const auto result =
          BrotliDecoderDecompressStream(state_, &left, &next, &room_left, &to, nullptr);
      out.append(room.data(), room.size() - room_left);
      if (result == BROTLI_DECODER_RESULT_ERROR) return std::nullopt;
      // It may want more of what it reads, and still have something.
      if (result == BROTLI_DECODER_RESULT_SUCCESS || BrotliDecoderHasMoreOutput(state_) == 0) break;
    }
    return left == 0 ? std::optional(out) : std::nullopt;
  }
  bool has_ended() const override { return BrotliDecoderIsFinished(state_) == BROTLI_TRUE; }

 private:
  BrotliDecoderState* state_;
};

class ZstdDecoder final : public Decoder {
 public:
  ZstdDecoder() : context_(ZSTD_createDCtx()) {}
  ~ZstdDecoder() override { ZSTD_freeDCtx(context_); }
  std::optional<std::string> decode(std::string_view bytes) override {
    std::string out;
    if (bytes.empty()) return out;  // often enough in a row, the library calls that a fault
    ZSTD_inBuffer in{bytes.data(), bytes.size(), 0};
    while (true) {
      if (ended_ && in.pos != in.size) return std::nullopt;
      Room room;
      ZSTD_outBuffer to{room.data(), room.size(), 0};
      const std::size_t left = ZSTD_decompressStream(context_, &to, &in);
      if (ZSTD_isError(left) != 0) return std::nullopt;
      out.append(room.data(), to.pos);
      ended_ = left == 0;
      if (in.pos == in.size && to.pos != to.size) return out;
      if (ended_) return in.pos == in.size ? std::optional(out) : std::nullopt;
    }
  }
  bool has_ended() const override { return ended_; }

 private:
  ZSTD_DCtx* context_;
  bool ended_ = false;
};

}  // namespace

std::unique_ptr<Decoder> make_decoder(Coding coding) {
  switch (coding) {
    case Coding::kZstd:
      return std::make_unique<ZstdDecoder>();
    case Coding::kBrotli:
      return std::make_unique<BrotliDecoder>();
    case Coding::kGzip:
      break;
  }
  return std::make_unique<GzipDecoder>();
}

}  // namespace encore::coding::test
