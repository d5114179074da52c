// Eviction: one of the eviction policies, chosen at run time. The set is closed, so a hit costs a
// switch and no virtual call. A new policy: its header, an enumerator of EvictionPolicy, a line
// here. Thread-compatible.
#pragma once

#include <variant>

#include "base/check.h"
#include "cache/arc.h"
#include "cache/belady.h"
#include "cache/eviction_order.h"
#include "cache/fifo.h"
#include "cache/frequency_orders.h"
#include "cache/lhd.h"
#include "cache/lru.h"
#include "cache/options.h"
#include "cache/s3_fifo.h"
#include "cache/sieve.h"
#include "cache/slru.h"
#include "cache/two_q.h"
#include "cache/w_tiny_lfu.h"

namespace encore::cache {

class Eviction {
 public:
  Eviction(EvictionPolicy policy, EntrySlab& slab)
      : policy_(policy), order_(make_order(policy, slab)) {}

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
  // The entry's charge has become another one. Most orders do not look at it, or not before they
  // search for a victim.
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
  bool bypasses(const Newcomer& newcomer) {
    auto* const belady = std::get_if<Belady>(&order_);
    return belady != nullptr && belady->bypasses(newcomer);
  }

 private:
  using Order =
      std::variant<Sieve, Lru, Fifo, S3Fifo, Slru, TwoQ, Arc, Lfu, Gdsf, WTinyLfu, Lhd, Belady>;
  static Order make_order(EvictionPolicy policy, EntrySlab& slab) {
    switch (policy) {
      case EvictionPolicy::kSieve:
        return Order(std::in_place_type<Sieve>, slab);
      case EvictionPolicy::kLru:
        return Order(std::in_place_type<Lru>, slab);
      case EvictionPolicy::kFifo:
        return Order(std::in_place_type<Fifo>, slab);
      case EvictionPolicy::kS3Fifo:
        return Order(std::in_place_type<S3Fifo>, slab);
      case EvictionPolicy::kSlru:
        return Order(std::in_place_type<Slru>, slab);
      case EvictionPolicy::kTwoQ:
        return Order(std::in_place_type<TwoQ>, slab);
      case EvictionPolicy::kArc:
        return Order(std::in_place_type<Arc>, slab);
      case EvictionPolicy::kLfu:
        return Order(std::in_place_type<Lfu>, slab);
      case EvictionPolicy::kGdsf:
        return Order(std::in_place_type<Gdsf>, slab);
      case EvictionPolicy::kWTinyLfu:
        return Order(std::in_place_type<WTinyLfu>, slab);
      case EvictionPolicy::kLhd:
        return Order(std::in_place_type<Lhd>, slab);
      case EvictionPolicy::kBelady:
        return Order(std::in_place_type<Belady>, slab);
    }
    panic(__FILE__, __LINE__, "policy", "an eviction policy of the enum");
  }

  EvictionPolicy policy_;
  Order order_;
};

}  // namespace encore::cache
