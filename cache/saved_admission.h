// The saved form of what the admission policies of all shards remember. Pure functions.
//
//   "ENCADMIT"  version  shards  identity seed  { length  saved filter }  checksum
//
// Numbers are little-endian of fixed width; each saved filter has a checksum of its own. The bytes
// hold the seed: a file of them is for its owner alone.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "filter/hash.h"

namespace encore::cache {

struct SavedAdmission {
  // A cache that wants to restore the bytes must be created with this seed.
  filter::Seed identity_seed;
  std::vector<std::string> shards{};  // empty: the policy had nothing to save
};

std::string encode(const SavedAdmission& saved);
// Errors: not such bytes, another version, cut off, a wrong checksum. Allocates no more than the
// size of `bytes` justifies.
Result<SavedAdmission> decode_admission(std::string_view bytes);

// By which the journal names a shard's saved state.
std::uint64_t state_checksum(std::string_view bytes);

}  // namespace encore::cache
