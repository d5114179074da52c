// The saved form of what the admission policies of all shards remember. Pure functions.
//
//   "ENCADMIT"  version  shards  identity seed  { length  saved filter }  checksum
//
// Numbers are little-endian of fixed width; each saved filter has a checksum of its own. The bytes
// hold the seed: a file of them is for its owner alone.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "filter/adopted_memory.h"
#include "filter/hash.h"

namespace encore::cache {

struct SavedAdmission {
  // A cache that wants to restore the bytes must be created with this seed.
  filter::Seed identity_seed;
  std::vector<std::string> shards{};  // empty: the policy had nothing to save
};

std::string encode(const SavedAdmission& saved);
// The same in pieces, for a memory that is not to be held as a whole: begin(), shard() for each,
// end(). Thread-compatible.
class AdmissionWriter {
 public:
  AdmissionWriter();
  ~AdmissionWriter();
  std::string begin(const filter::Seed& identity_seed, std::uint32_t shards);
  std::string shard(std::string_view bytes);
  std::string end();

 private:
  std::string summed(std::string piece);
  struct Sum;
  std::unique_ptr<Sum> sum_;
};
// Errors: not such bytes, another version, cut off, a wrong checksum. Allocates no more than the
// size of `bytes` justifies.
Result<SavedAdmission> decode_admission(std::string_view bytes);
// The same without a copy: the shards are views into `bytes`.
struct SavedAdmissionView {
  filter::Seed identity_seed;
  std::vector<std::string_view> shards{};
};
Result<SavedAdmissionView> view_admission(std::string_view bytes);

// The memory of another cache, to be adopted (Kernel::adopt).
struct Adoptable {
  std::shared_ptr<const filter::AdoptedMemory> memory;
  std::uint64_t checksum = 0;  // state_checksum() of the bytes that it was read from
  std::uint64_t size_bytes = 0;
};
// Errors: those of view_admission() and AdoptedMemory::load(), a memory that has nothing in it.
Result<Adoptable> read_adoptable(std::string_view bytes);

// By which the journal names a saved state.
std::uint64_t state_checksum(std::string_view bytes);

}  // namespace encore::cache
