// Keys of [compression].
#include <algorithm>
#include <array>

#include "base/text.h"
#include "config/keys.h"

namespace encore::config {
namespace {

constexpr std::array<std::string_view, 3> kCodings = {"zstd", "br", "gzip"};

constexpr std::array kCompressionKeys = {
    bound<&Compression::codings>({.name = "codings",
                                  .kind = Kind::kTextList,
                                  .doc = "Offered codings; the first one wins if a client likes "
                                         "several equally. Empty: no compression.",
                                  .range = {.min = 0, .max = 3},
                                  .one_will_do = true,
                                  .accepted = "\"zstd\", \"br\", \"gzip\"",
                                  .item_check = check_coding}),
    bound<&Compression::types>({.name = "types",
                                .kind = Kind::kTextList,
                                .doc = "Media types to compress, without parameters.",
                                .range = {.min = 0, .max = 256},
                                .accepted = "globs, as \"text/*\"",
                                .item_check = check_type_glob}),
    bound<&Compression::min_size_bytes>({.name = "min_size",
                                         .kind = Kind::kBytes,
                                         .doc = "Smallest body to compress, if its size is known.",
                                         .range = {.min = 1, .max = 1e9}}),
    bound<&Compression::zstd_level>({.name = "zstd_level",
                                     .kind = Kind::kInteger,
                                     .doc = "Level of zstd.",
                                     .range = {.min = 1, .max = 9}}),
    bound<&Compression::br_level>({.name = "br_level",
                                   .kind = Kind::kInteger,
                                   .doc = "Level of brotli.",
                                   .range = {.min = 0, .max = 6}}),
    bound<&Compression::gzip_level>({.name = "gzip_level",
                                     .kind = Kind::kInteger,
                                     .doc = "Level of gzip.",
                                     .range = {.min = 1, .max = 9}}),
    bound<&Compression::memory_bytes>(
        {.name = "memory",
         .kind = Kind::kBytes,
         .doc = "Memory for all simultaneous compressions, in addition to `cache.memory`: 384 KiB "
                "each for gzip, 2.5 MiB for zstd, up to 6 MiB for brotli. Beyond it, responses are "
                "not compressed.",
         .range = {.min = 1048576, .max = 1099511627776.0}}),
};

}  // namespace

Result<std::string> check_coding(std::string_view text) {
  if (std::ranges::find(kCodings, text) == kCodings.end()) return fail("is not offered");
  return std::string(text);
}

Result<std::string> check_type_glob(std::string_view text) {
  auto glob = check_glob(text);
  if (glob) *glob = lower_ascii(*glob);
  return glob;
}

std::span<const Key> compression_keys() { return kCompressionKeys; }

}  // namespace encore::config
