// Eviction: one of the eviction policies, chosen at run time. The set is closed, so a hit costs a
// switch and no virtual call. A new policy: its header, which is included here, and a row of the
// table in cache/options.h. Thread-compatible.
#pragma once

#include <variant>

#include "base/check.h"
#include "cache/arc.h"
#include "cache/belady.h"
#include "cache/cacheus.h"
#include "cache/clock.h"
#include "cache/eviction_order.h"
#include "cache/fifo.h"
#include "cache/greedy_dual.h"
#include "cache/hyperbolic.h"
#include "cache/lecar.h"
#include "cache/lfu.h"
#include "cache/lhd.h"
#include "cache/lirs.h"
#include "cache/lrb.h"
#include "cache/lru.h"
#include "cache/lru_k.h"
#include "cache/options.h"
#include "cache/random_order.h"
#include "cache/s3_fifo.h"
#include "cache/sieve.h"
#include "cache/slru.h"
#include "cache/two_q.h"
#include "cache/w_tiny_lfu.h"

namespace encore::cache {

class Eviction {
 public:
  Eviction(EvictionPolicy policy, EntrySlab& slab, const EvictionSettings& settings = {})
      : policy_(policy), order_(make(policy, slab, settings)) {}

  EvictionPolicy policy() const { return policy_; }

  void insert(EntryRef ref, const Access& access) {
    std::visit([&](auto& order) { order.insert(ref, access); }, order_);
  }
  void hit(EntryRef ref, const Access& access) {
    std::visit([&](auto& order) { order.hit(ref, access); }, order_);
  }
  void remove(EntryRef ref, Removal why) {
    std::visit([&](auto& order) { order.remove(ref, why); }, order_);
  }
  // The entry's charge has changed. Most orders ignore it, or read it only when they search for a
  // victim.
  void resized(EntryRef ref) {
    std::visit(
        [&](auto& order) {
          if constexpr (requires { order.resized(ref); }) {
            order.resized(ref);
          }
        },
        order_);
  }
  EntryRef victim() {
    return std::visit([](auto& order) { return order.victim(); }, order_);
  }
  bool knows_future() const { return std::holds_alternative<Belady>(order_); }
  bool bypasses(const InsertCandidate& candidate) {
    auto* const belady = std::get_if<Belady>(&order_);
    return belady != nullptr && belady->bypasses(candidate);
  }

 private:
  template <typename None, typename... Policies>
  struct Alternatives {
    using Type = std::variant<Policies...>;
  };
#define ENCORE_ALTERNATIVE(id, name, policy) , policy
  using Order = Alternatives<void ENCORE_EVICTION_POLICIES(ENCORE_ALTERNATIVE)>::Type;
#undef ENCORE_ALTERNATIVE
  static Order make(EvictionPolicy policy, EntrySlab& slab, const EvictionSettings& settings) {
    switch (policy) {
#define ENCORE_CASE(id, name, policy) \
  case EvictionPolicy::id:            \
    return Order(std::in_place_type<policy>, make_order<policy>(slab, settings));
      ENCORE_EVICTION_POLICIES(ENCORE_CASE)
#undef ENCORE_CASE
    }
    panic(__FILE__, __LINE__, "policy", "an eviction policy of the enum");
  }

  EvictionPolicy policy_;
  Order order_;
};

}  // namespace encore::cache
