#include "filter/shadow.h"

#include <algorithm>
#include <bit>
#include <string>

#include "base/check.h"

namespace encore::filter {
namespace {

constexpr std::uint64_t kHashesInLine = kLineBytes / sizeof(Hash128);
constexpr std::uint64_t kSlotsMin = 512;

}  // namespace

ExactGeneration::ExactGeneration(LineMemory memory) : memory_(std::move(memory)) {}

Result<ExactGeneration> ExactGeneration::create(std::uint64_t keys_max) {
  // At most half full for what is expected, at most three quarters before it refuses.
  if (keys_max > (std::uint64_t{1} << 40U)) {
    return fail("no memory for a shadow of " + std::to_string(keys_max) + " keys");
  }
  const std::uint64_t slots = std::bit_ceil(std::max(kSlotsMin / 2, keys_max) * 2);
  auto memory = LineMemory::create(slots / kHashesInLine);
  if (!memory) {
    return std::unexpected(memory.error());
  }
  ExactGeneration generation(std::move(*memory));
  generation.slots_ = slots;
  return generation;
}

Hash128* ExactGeneration::find(const Hash128& hash) const {
  auto* slots = reinterpret_cast<Hash128*>(memory_.words());
  // lo + hi: neither the sample's bits nor, alone, those of one filter line.
  std::uint64_t at = (hash.lo + hash.hi) & (slots_ - 1);
  while (slots[at] != Hash128{} && slots[at] != hash) {
    at = (at + 1) & (slots_ - 1);
  }
  return &slots[at];
}

bool ExactGeneration::contains(const Hash128& hash) const {
  return hash == Hash128{} ? has_zero_ : *find(hash) == hash;
}

bool ExactGeneration::insert(const Hash128& hash) {
  if (hash == Hash128{}) {
    has_zero_ = true;
    return true;
  }
  Hash128* slot = find(hash);
  if (*slot == hash) {
    return true;
  }
  if (size_ >= slots_ / 4 * 3) {
    return false;
  }
  *slot = hash;
  ++size_;
  return true;
}

Shadow::Shadow(const ShadowOptions& options)
    : options_(options), sample_below_(0x10000U / options.one_in) {}

Result<Shadow> Shadow::create(const ShadowOptions& options) {
  if (!std::has_single_bit(options.one_in) || options.one_in > 0x10000U) {
    return fail("a shadow of one key in " + std::to_string(options.one_in) +
                ", accepted: a power of two from 1 to 65536");
  }
  Shadow shadow(options);
  for (std::uint32_t i = 0; i < options.generations; ++i) {
    auto keys = ExactGeneration::create(shadow.keys_max());
    if (!keys) {
      return std::unexpected(keys.error());
    }
    shadow.slots_.push_back({std::move(*keys), true});
  }
  return shadow;
}

std::uint64_t Shadow::keys_max() const { return options_.capacity / options_.one_in; }

bool Shadow::complete() const {
  return std::ranges::all_of(slots_, [](const Slot& slot) { return slot.complete; });
}

void Shadow::told(const Hash128& hash, const Answer& answer) {
  if (complete()) {
    const bool known =
        std::ranges::any_of(slots_, [&](const Slot& slot) { return slot.keys.contains(hash); });
    if (known) {
      measured_.false_negatives += answer.seen ? 0 : 1;
    } else {
      ++measured_.asked;
      measured_.false_positives += answer.seen ? 1 : 0;
      measured_.expected += answer.fpr_theory;
    }
  }
  ENCORE_CHECK(answer.held_in < slots_.size(), "the filter has more generations than its shadow");
  Slot& slot = slots_[answer.held_in];
  slot.complete = slot.keys.insert(hash) && slot.complete;
}

void Shadow::rotate() {
  auto keys = ExactGeneration::create(keys_max());
  std::ranges::rotate(slots_, slots_.end() - 1);
  if (keys) {
    slots_.front() = {std::move(*keys), true};
  } else {
    // Without memory for a fresh generation measuring stops until a later rotation has some.
    slots_.front().complete = false;
  }
}

void Shadow::forget_all() {
  for (Slot& slot : slots_) {
    slot.complete = false;
  }
}

std::uint64_t Shadow::memory_bytes() const {
  std::uint64_t sum = 0;
  for (const Slot& slot : slots_) {
    sum += slot.keys.memory_bytes();
  }
  return sum;
}

}  // namespace encore::filter
