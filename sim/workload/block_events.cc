#include "sim/workload/block_events.h"

#include <string>

#include "base/units.h"

namespace encore::sim {
namespace {

// The experiment's draws: the sign bit is dropped before the remainder is taken.
std::uint64_t draw_below(RandomWords& random, std::uint64_t limit) {
  return (random.next() & 0x7fffffffU) % limit;
}

}  // namespace

Result<void> check(const BlockWorkload& workload) {
  if (workload.block_bytes == 0 || workload.block_bytes > kMiB) {
    return fail("a block of " + std::to_string(workload.block_bytes) +
                " bytes, accepted: 1 to 1048576");
  }
  const bool fits = workload.reused_blocks <= 8 * kGiB / workload.block_bytes;
  if (workload.reused_blocks == 0 || workload.reused_blocks > 0x7fffffffU || !fits) {
    return fail(std::to_string(workload.reused_blocks) + " reused blocks of " +
                std::to_string(workload.block_bytes) +
                " bytes, accepted: 1 to 2147483647, and no more than 8 GiB of them");
  }
  if (workload.one_off_percent > 100) {
    return fail(std::to_string(workload.one_off_percent) +
                " percent of one-off blocks, accepted: 0 to 100");
  }
  if (workload.events == 0) {
    return fail("0 events, accepted: 1 or more");
  }
  return {};
}

BlockEvents::BlockEvents(const BlockWorkload& workload)
    : workload_(workload),
      random_(make_random_words(workload.generator, workload.seed)),
      one_off_(workload.block_bytes + std::size_t{1}),
      reused_(workload.reused_blocks) {}

BlockEvents::Event BlockEvents::next() {
  if (draw_below(*random_, 100) < workload_.one_off_percent) {
    fill(one_off_);
    return {.block = one_off_, .reused = kOneOff, .is_new = true};
  }
  const std::uint64_t number = draw_below(*random_, workload_.reused_blocks);
  std::vector<std::uint8_t>& block = reused_[number];
  const bool is_new = block.empty();
  if (is_new) {
    block.resize(workload_.block_bytes + std::size_t{1});
    fill(block);
  }
  return {.block = block, .reused = number, .is_new = is_new};
}

// Whole little-endian words first, then a draw for each byte that is left.
void BlockEvents::fill(std::vector<std::uint8_t>& block) {
  std::size_t at = 0;
  for (; at + 4 <= block.size(); at += 4) {
    const std::uint32_t word = random_->next();
    for (std::size_t i = 0; i < 4; ++i) {
      block[at + i] = static_cast<std::uint8_t>(word >> (8 * i));
    }
  }
  for (; at < block.size(); ++at) {
    block[at] = static_cast<std::uint8_t>(random_->next() % 256);
  }
}

}  // namespace encore::sim
