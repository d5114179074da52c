#include "cache/saved_admission.h"

#include <xxhash.h>

#include <algorithm>

#include "base/check.h"
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

struct AdmissionWriter::Sum {
  struct Free {
    void operator()(XXH3_state_t* of) const { XXH3_freeState(of); }
  };
  std::unique_ptr<XXH3_state_t, Free> state{XXH3_createState()};
};

AdmissionWriter::AdmissionWriter() : sum_(std::make_unique<Sum>()) {
  ENCORE_CHECK(XXH3_64bits_reset(sum_->state.get()) == XXH_OK, "a checksum can begin");
}
AdmissionWriter::~AdmissionWriter() = default;

std::string AdmissionWriter::summed(std::string piece) {
  ENCORE_CHECK(XXH3_64bits_update(sum_->state.get(), piece.data(), piece.size()) == XXH_OK,
               "a checksum takes bytes");
  return piece;
}

std::string AdmissionWriter::begin(const filter::Seed& identity_seed, std::uint32_t shards) {
  std::string out(kMagic);
  ByteWriter writer(out);
  writer.fixed(kVersion, 4);
  writer.fixed(shards, 4);
  writer.fixed(identity_seed.lo, 8);
  writer.fixed(identity_seed.hi, 8);
  return summed(std::move(out));
}

std::string AdmissionWriter::shard(std::string_view bytes) {
  std::string out;
  out.reserve(sizeof(std::uint64_t) + bytes.size());
  ByteWriter(out).fixed(bytes.size(), 8);
  out += bytes;
  return summed(std::move(out));
}

std::string AdmissionWriter::end() {
  std::string out;
  ByteWriter(out).fixed(XXH3_64bits_digest(sum_->state.get()), kChecksumBytes);
  return out;
}

std::string encode(const SavedAdmission& saved) {
  AdmissionWriter writer;
  std::string out =
      writer.begin(saved.identity_seed, static_cast<std::uint32_t>(saved.shards.size()));
  for (const std::string& shard : saved.shards) {
    out += writer.shard(shard);
  }
  return out + writer.end();
}

Result<SavedAdmission> decode_admission(std::string_view bytes) {
  const auto view = view_admission(bytes);
  if (!view) {
    return std::unexpected(view.error());
  }
  return SavedAdmission{.identity_seed = view->identity_seed,
                        .shards = {view->shards.begin(), view->shards.end()}};
}

Result<Adoptable> read_adoptable(std::string_view bytes) {
  const auto saved = view_admission(bytes);
  if (!saved) {
    return std::unexpected(saved.error());
  }
  if (std::ranges::all_of(saved->shards, [](std::string_view shard) { return shard.empty(); })) {
    return fail("a saved admission memory with nothing in it: its policy keeps no filter");
  }
  auto memory =
      filter::AdoptedMemory::load({.identity_seed = saved->identity_seed, .shards = saved->shards});
  if (!memory) {
    return std::unexpected(memory.error());
  }
  return Adoptable{
      .memory = std::move(*memory), .checksum = state_checksum(bytes), .size_bytes = bytes.size()};
}

Result<SavedAdmissionView> view_admission(std::string_view bytes) {
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
  SavedAdmissionView saved;
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
