// EvictionOrder: what an eviction policy is. One class a policy, constructed with the slab whose
// entries it orders (borrowed), and with its settings if it has parameters, which are its
// `kParameters`. It may use an entry's newer, older and policy_bits for itself, and
// memory of its own (ghosts, heaps, sketches).
#pragma once

#include <concepts>
#include <cstdint>
#include <span>

#include "base/time.h"
#include "cache/entry_slab.h"
#include "cache/policy_parameters.h"

namespace encore::cache {

// Properties of the request that inserts or uses an entry.
struct Access {
  MonotonicTime now{};
  std::uint64_t hint = 0;  // for policies that know the future
};

// A candidate for an entry.
struct InsertCandidate {
  std::uint64_t charge_bytes = 0;
  std::uint64_t hint = 0;
  bool needs_room = false;  // something would be evicted for it
};

// kEvicted: for room, by this policy's advice; it may remember a ghost. kRemoved: for any other
// reason.
enum class Removal : std::uint8_t { kEvicted, kRemoved };

// victim() looked at as many entries as one critical section may; ask again.
inline constexpr EntryRef kSearching = kNoEntry - 1;
// victim() looked at all entries, and each was used since the last time: who has others to choose
// from had better take one of those. Asked again, it gives one up. Why a shard spares what is used:
// docs/decisions/0190.
inline constexpr EntryRef kAllUsed = kNoEntry - 2;
inline constexpr std::uint32_t kSearchMax = 256;

//   insert  A new entry; its hot half is complete.
//   hit     The entry was used.
//   remove  The entry goes.
//   victim  The entry that should go next; it stays until remove(). kNoEntry: there is none.
//           kSearching, kAllUsed: see there.
//   expect  (one with ghosts) An entry of the key may be inserted soon: asks for the memory of
//   that. bypasses  (one that knows the future) Whether a candidate would go before all entries, so
//   that it
//           had better not be stored. The admission policy has said yes to it.
template <typename T>
concept EvictionOrder = std::constructible_from<T, EntrySlab&> &&
                        requires(T& order, EntryRef ref, const Access& access, Removal why) {
                          order.insert(ref, access);
                          order.hit(ref, access);
                          order.remove(ref, why);
                          { order.victim() } -> std::same_as<EntryRef>;
                        };

template <typename T>
concept Configurable = std::constructible_from<T, EntrySlab&, const EvictionSettings&>;

// Returns the policy's parameters; most policies of one idea have none.
template <EvictionOrder T>
constexpr std::span<const PolicyParameter> parameters_of_order() {
  if constexpr (Configurable<T>) {
    return T::kParameters;
  } else {
    return {};
  }
}

template <EvictionOrder T>
T make_order(EntrySlab& slab, const EvictionSettings& settings) {
  if constexpr (Configurable<T>) {
    return T(slab, settings);
  } else {
    return T(slab);
  }
}

}  // namespace encore::cache
