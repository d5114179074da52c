// BlockEvents: the workload of J. Plank's CS494 block experiment. Each event asks for one block of
// random bytes: a share of them are one-off blocks that never come again, the others come from a
// set of reused blocks, each made when it is first drawn. Deterministic; thread-compatible.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/error.h"
#include "sim/workload/random_words.h"

namespace encore::sim {

struct BlockWorkload {
  std::uint64_t seed = 1;
  std::uint32_t block_bytes = 1024;  // without the counter byte in front
  std::uint64_t reused_blocks = 5000;
  std::uint32_t one_off_percent = 75;
  std::uint64_t events = 100000;
  Generator generator = Generator::kMotherOfAll;
};

// Errors: a block of 0 bytes or more than 1 MiB, no reused blocks (or more than 2^31 or than fit in
// 8 GiB), a share above 100, no events. The message shows the value.
Result<void> check(const BlockWorkload& workload);

// Which of the reused blocks; kOneOff for those that are not.
inline constexpr std::uint64_t kOneOff = UINT64_MAX;

class BlockEvents {
 public:
  // REQUIRES: the workload passes check().
  explicit BlockEvents(const BlockWorkload& workload);

  struct Event {
    std::span<std::uint8_t> block;  // valid until the next event; byte 0 is the caller's to change
    std::uint64_t reused = kOneOff;
    bool is_new = false;  // the block was made for this event
    bool one_off() const { return reused == kOneOff; }
  };
  Event next();

 private:
  void fill(std::vector<std::uint8_t>& block);

  BlockWorkload workload_;
  std::unique_ptr<RandomWords> random_;
  std::vector<std::uint8_t> one_off_;
  std::vector<std::vector<std::uint8_t>> reused_;  // empty: not made yet
};

}  // namespace encore::sim
