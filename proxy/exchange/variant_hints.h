// VariantHints: the selecting names (http/vary.h) by which the variants of a key differed when it
// was last requested. So a request's own variant key is made before the shard's lock is taken, not
// between two turns under it. A wrong hint costs time, nothing else. Confined to its worker.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "filter/hash.h"

namespace encore::server {

class VariantHints {
 public:
  // Empty: none.
  std::string_view find(const filter::Hash128& key) const {
    const Slot& slot = slots_[key.lo % kSlots];
    return slot.tag == tag_of(key) ? std::string_view(names_[slot.names]) : std::string_view();
  }

  void remember(const filter::Hash128& key, std::string_view names) {
    const auto* known = std::ranges::find(names_, names);
    auto number = static_cast<std::size_t>(known - names_.begin());
    if (known == names_.end()) {
      number = next_++ % kNames;
      names_[number] = names;
    }
    slots_[key.lo % kSlots] = {tag_of(key), static_cast<std::uint32_t>(number)};
  }

 private:
  static constexpr std::size_t kSlots = 1024;  // 8 KiB: what plain hits read of it stays near
  static constexpr std::size_t kNames = 16;    // sites use few different ones

  struct Slot {
    std::uint32_t tag = 0;  // 0: empty
    std::uint32_t names = 0;
  };
  static std::uint32_t tag_of(const filter::Hash128& key) {
    return static_cast<std::uint32_t>(key.hi >> 32U) | 1U;
  }

  std::array<Slot, kSlots> slots_{};
  std::array<std::string, kNames> names_;
  std::size_t next_ = 0;
};

}  // namespace encore::server
