// The hand-over of the admission memory: what one cache remembers, given to another that starts
// cold.
#pragma once

#include <cstdint>
#include <expected>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/time.h"
#include "cache/kernel.h"
#include "config/config.h"
#include "proxy/process/token.h"

namespace encore::server {

// Bytes of a saved form, beyond the filters' bits: heads, lengths and what theory knows.
inline constexpr std::uint64_t kSavedFormBytes = std::uint64_t{2} << 20U;

// The adopted memory, over all shards.
struct AdoptionSummary {
  std::uint32_t shards = 0;  // those of the other cache
  std::uint32_t generations = 0;
  std::uint64_t bits = 0;
  std::uint64_t insertions = 0;
  double keys_estimated = 0;
  double fpr = 0;  // by the bits, of these generations together
  std::uint64_t memory_bytes = 0;
};
// For people and programs, one line.
std::string adoption_json(const AdoptionSummary& taken);

struct AdoptRefusal {
  bool damaged = false;  // the bytes are no memory; else this cache does not take it
  std::string message;
};
using Adopted = std::expected<AdoptionSummary, AdoptRefusal>;

// Adopts a saved form, on any thread; that takes as long as going through all filters. If a journal
// of decisions is written, the bytes are first stored next to it: without them it could not be
// replayed. Nothing has changed if it is refused.
Adopted adopt_memory(cache::Kernel& kernel, const config::Config& config, std::string_view bytes,
                     MonotonicTime now);

// Gives and takes memories for others. Confined to the main thread.
class MemoryHandover {
 public:
  // Null where none is configured.
  virtual const Token* token() const = 0;
  // Calls `done`, immediately or later, with what admission remembers, as it is now or as it was
  // when it was saved for somebody who still has it. False where no more work is taken: then `done`
  // is not called.
  using Saved = std::shared_ptr<const std::string>;
  virtual bool save(std::move_only_function<void(Saved)> done) = 0;
  // Adopts and calls `done` later, one at a time: false while that is in progress, and as above.
  virtual bool adopt(std::string bytes, std::move_only_function<void(Adopted)> done) = 0;

 protected:
  ~MemoryHandover() = default;
};

}  // namespace encore::server
