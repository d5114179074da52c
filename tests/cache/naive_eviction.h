// Eviction policies as one would write them on a blackboard: lists that are searched from end to
// end, after the papers' text. The oracle of cache/'s own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "cache/options.h"

namespace encore::cache::test {

struct NaiveRequest {
  std::uint64_t id = 0;
  std::uint64_t size = 1;
  std::uint64_t next = 0;  // number of the request that asks for it again, all ones: none
};

class NaiveCache {
 public:
  explicit NaiveCache(std::uint64_t capacity) : capacity_(capacity) {}
  virtual ~NaiveCache() = default;
  NaiveCache(const NaiveCache&) = delete;
  NaiveCache& operator=(const NaiveCache&) = delete;

  // Whether it was a hit. REQUIRES: size <= capacity, always the same for an id.
  bool request(const NaiveRequest& request);

  // A smaller one takes effect at the next miss.
  void set_capacity(std::uint64_t capacity) { capacity_ = capacity; }

  // A defect: every n-th victim is another one than the policy's.
  void plant_defect(std::uint64_t every) { defect_every_ = every; }

 protected:
  using Id = std::uint64_t;
  using Ids = std::vector<Id>;  // oldest first
  // The policy. `victim` is called only while something is resident, and `gone` receives each
  // removal.
  virtual void added(const NaiveRequest& request) = 0;
  virtual void used(const NaiveRequest& request) = 0;
  virtual Id victim() = 0;
  virtual void gone(Id id) = 0;

  std::size_t count() const { return residents_.size(); }
  std::uint64_t size_of(Id id) const { return residents_.at(id); }
  const std::map<Id, std::uint64_t>& residents() const { return residents_; }

  static bool has(const Ids& ids, Id id);
  // Whether it was there; it is not now.
  static bool take(Ids& ids, Id id);
  static void shrink(Ids& ids, std::size_t size);

 private:
  std::uint64_t capacity_;
  std::uint64_t bytes_ = 0;
  std::uint64_t evictions_ = 0;
  std::uint64_t defect_every_ = 0;
  std::map<Id, std::uint64_t> residents_;
};

// The cost of a miss, for the policies that weigh it.
struct NaiveCost {
  double fixed = 1;
  double per_byte = 0;
  double of(double bytes) const { return fixed + per_byte * bytes; }
};

std::unique_ptr<NaiveCache> make_naive(EvictionPolicy policy, std::uint64_t capacity,
                                       const NaiveCost& cost = {});
// The same for those that the proxy does not offer; null: it is another.
std::unique_ptr<NaiveCache> make_naive_compared(EvictionPolicy policy, std::uint64_t capacity,
                                                const NaiveCost& cost = {});
// And for those of them that learn.
std::unique_ptr<NaiveCache> make_naive_learning(EvictionPolicy policy, std::uint64_t capacity);

}  // namespace encore::cache::test
