#include "filter/cli/shape_options.h"

#include "filter/published/bloomnames.h"
#include "filter/published/squid_digest.h"

namespace encore::filter {
namespace {

// Adds the parameters that a published form implies if the command line leaves them open.
Result<void> fill_in(FilterParameters& parameters, bool has_rate) {
  if (parameters.hash == HashFamily::kSha1Fields20 && parameters.bits == 0 &&
      parameters.capacity == 0) {
    const FilterParameters published = bloomnames_parameters();
    parameters.bits = published.bits;
    parameters.hashes = parameters.hashes == 0 ? published.hashes : parameters.hashes;
  }
  if (parameters.hash == HashFamily::kSquidMd5) {
    parameters.hashes = parameters.hashes == 0 ? kSquidHashes : parameters.hashes;
    if (parameters.bits == 0 && parameters.capacity != 0 && !has_rate) {
      if (parameters.capacity > kSquidCapacityMax) {
        return fail("--capacity \"" + std::to_string(parameters.capacity) +
                    "\", accepted for a Squid digest: up to " + std::to_string(kSquidCapacityMax));
      }
      parameters.bits = squid_digest_parameters(parameters.capacity).bits;
    }
  }
  return {};
}

}  // namespace

void ShapeOptions::declare(Arguments& arguments) {
  arguments.text("--hash", hash_,
                 "xxh3, murmur3, siphash, md5, sha1, sha512, chained, sha1-fields20 (bloomnames), "
                 "squid-md5 (Squid's digests); fields of a digest, most significant bit first: "
                 "md5-fields, sha1-fields, sha256-fields (of ceil(log2 m) bits), sha256-fields32; "
                 "digests of 0, 1, ... before the key: md5-numbered, sha1-numbered, "
                 "sha256-numbered");
  arguments.text("--layout", layout_,
                 "classic, partitioned, blocked, split (default: split, or classic if the hash or "
                 "a number of hashes other than 8 needs it)");
  arguments.number("--bits", bits_, "bits of the filter (m)", {.min = 1, .max = kBitsMax});
  arguments.number("--hashes", hashes_, "hashes per key (k)", {.min = 1, .max = kHashesMax});
  arguments.number("--capacity", capacity_, "number of keys that the filter is sized for",
                   {.min = 1, .max = kBitsMax});
  arguments.text("--seed", seed_,
                 "secret of the hash, up to 32 hex digits (default: none, for published filters)");
}

const char* ShapeOptions::given(const Arguments& arguments) {
  for (const char* name : {"--hash", "--layout", "--bits", "--hashes", "--capacity", "--seed"}) {
    if (arguments.given(name)) {
      return name;
    }
  }
  return nullptr;
}

Result<FilterParameters> ShapeOptions::parameters(const Arguments& arguments, bool classic) const {
  FilterParameters parameters{.layout = Layout::kSplit,
                              .hash = HashFamily::kXxh3,
                              .bits = bits_,
                              .hashes = static_cast<std::uint32_t>(hashes_),
                              .capacity = capacity_,
                              .seed = {}};
  const auto hash = parse_hash_family(hash_);
  if (!hash) {
    return std::unexpected(hash.error());
  }
  parameters.hash = *hash;
  if (!seed_.empty()) {
    const auto seed = parse_seed(seed_);
    if (!seed) {
      return std::unexpected(seed.error());
    }
    parameters.seed = *seed;
  }
  if (!layout_.empty()) {
    const auto layout = parse_layout(layout_);
    if (!layout) {
      return std::unexpected(layout.error());
    }
    parameters.layout = *layout;
  } else if (classic || lists_indices(*hash) || (hashes_ != 0 && hashes_ != kSplitHashes)) {
    parameters.layout = Layout::kClassic;
  }
  if (parameters.layout == Layout::kSplit && hashes_ == 0) {
    parameters.hashes = kSplitHashes;
  }
  if (auto filled = fill_in(parameters, arguments.given("--fpr")); !filled) {
    return std::unexpected(filled.error());
  }
  return parameters;
}

}  // namespace encore::filter
