#include "proxy/publish/coding.h"

#include <zlib.h>
#include <zstd.h>

#include <limits>

namespace encore::publish {
namespace {

std::optional<std::string> gzip(std::string_view content) {
  if (content.size() > std::numeric_limits<uInt>::max()) return std::nullopt;
  z_stream stream{};
  constexpr int kGzipWindow = 15 + 16;
  constexpr int kMemory = 8;  // zlib's default
  if (deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, kGzipWindow, kMemory,
                   Z_DEFAULT_STRATEGY) != Z_OK) {
    return std::nullopt;
  }
  std::string out(deflateBound(&stream, static_cast<uLong>(content.size())), '\0');
  // (zlib does not write what it reads, its older interface does not say so.)
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(content.data()));
  stream.avail_in = static_cast<uInt>(content.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  const int ended = deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return ended == Z_STREAM_END ? std::optional(std::move(out)) : std::nullopt;
}

std::optional<std::string> zstd(std::string_view content) {
  std::string out(ZSTD_compressBound(content.size()), '\0');
  const std::size_t size =
      ZSTD_compress(out.data(), out.size(), content.data(), content.size(), ZSTD_CLEVEL_DEFAULT);
  if (ZSTD_isError(size) != 0) return std::nullopt;
  out.resize(size);
  return out;
}

}  // namespace

std::optional<std::string> encode(std::string_view content, Coding coding) {
  std::optional<std::string> out;
  if (coding == Coding::kGzip) out = gzip(content);
  if (coding == Coding::kZstd) out = zstd(content);
  if (out && out->size() >= content.size()) return std::nullopt;
  return out;
}

}  // namespace encore::publish
