#include "cache/saved_admission.h"

#include <xxhash.h>

#include "cache/byte_format.h"
#include "cache/options.h"

namespace encore::cache {
namespace {

constexpr std::string_view kMagic = "ENCADMIT";
constexpr std::uint64_t kVersion = 1;
constexpr std::size_t kChecksumBytes = 8;

}  // namespace

std::uint64_t state_checksum(std::string_view bytes) {
  return XXH3_64bits(bytes.data(), bytes.size());
}

std::string encode(const SavedAdmission& saved) {
  std::string out(kMagic);
  ByteWriter writer(out);
  writer.fixed(kVersion, 4);
  writer.fixed(saved.shards.size(), 4);
  writer.fixed(saved.identity_seed.lo, 8);
  writer.fixed(saved.identity_seed.hi, 8);
  for (const std::string& shard : saved.shards) {
    writer.fixed(shard.size(), 8);
    out += shard;
  }
  writer.fixed(state_checksum(out), 8);
  return out;
}

Result<SavedAdmission> decode_admission(std::string_view bytes) {
  if (!bytes.starts_with(kMagic) || bytes.size() < kMagic.size() + kChecksumBytes) {
    return fail("not a saved admission memory: " + std::to_string(bytes.size()) +
                " bytes that do not begin with " + std::string(kMagic));
  }
  const std::string_view body = bytes.substr(0, bytes.size() - kChecksumBytes);
  ByteView tail(bytes.substr(body.size()));
  if (ByteReader(tail).fixed(kChecksumBytes) != state_checksum(body)) {
    return fail("a saved admission memory with a wrong checksum");
  }
  ByteView view(body.substr(kMagic.size()));
  ByteReader reader(view);
  if (const std::uint64_t version = reader.fixed(4); version != kVersion) {
    return fail("a saved admission memory of version " + std::to_string(version) +
                ", accepted: " + std::to_string(kVersion));
  }
  const std::uint64_t shards = reader.fixed(4);
  SavedAdmission saved;
  saved.identity_seed = {reader.fixed(8), reader.fixed(8)};
  for (std::uint64_t i = 0; reader.ok() && i < shards && shards <= kShardsMax; ++i) {
    const std::uint64_t size = reader.fixed(8);
    if (!reader.ok() || size > view.rest().size()) {
      reader.fail();
      break;
    }
    saved.shards.emplace_back(view.rest().substr(0, size));
    view.skip(size);
  }
  if (!reader.ok() || saved.shards.size() != shards || !view.rest().empty()) {
    return fail("a saved admission memory whose lengths do not add up");
  }
  return saved;
}

}  // namespace encore::cache
