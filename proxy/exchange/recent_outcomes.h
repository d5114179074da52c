// RecentOutcomes: latest results of requests, by their key's hash, for explanations. Plain hits are
// not noted. Bounded: each key has its place in one set of kWays entries, where the one that was
// seen longest ago gives way. A key with the same result again takes no further entry. Thread-safe;
// a lock for each set, held while its entries are read.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/mutex.h"
#include "base/time.h"
#include "filter/hash.h"
#include "proxy/http/storing.h"
#include "proxy/observe/outcome.h"
#include "proxy/observe/redirect_refusal.h"

namespace encore::server {

class RecentOutcomes {
 public:
  static constexpr std::size_t kSets = 256;
  static constexpr std::size_t kWays = 16;

  // Result of a request.
  struct Seen {
    Outcome outcome = Outcome::kInternal;
    // Why its response may be stored or not; kOk where there was none to ask of.
    http::StoreReason reason = http::StoreReason::kOk;
    std::uint16_t status = 0;
    RedirectRefusal unfollowed = RedirectRefusal::kNone;
    bool was_overtaken = false;  // and so not stored
    friend bool operator==(const Seen&, const Seen&) = default;
  };
  void note(const filter::Hash128& key, const Seen& seen, WallTime now);

  struct Outcomes {
    Seen seen;
    std::uint64_t times = 0;  // in a row
    WallTime first{};
    WallTime last{};
  };
  // Those of the key that are still known, latest first.
  std::vector<Outcomes> of(const filter::Hash128& key) const;

 private:
  struct Entry {
    filter::Hash128 key{};
    Outcomes outcomes;
    std::uint64_t number = 0;  // number among the set's notes; 0: empty
  };
  struct Set {
    mutable Mutex mutex;
    std::uint64_t notes ENCORE_GUARDED_BY(mutex) = 0;
    std::array<Entry, kWays> entries ENCORE_GUARDED_BY(mutex);
  };
  std::size_t set_of(const filter::Hash128& key) const { return key.hi % kSets; }

  std::unique_ptr<std::array<Set, kSets>> sets_ = std::make_unique<std::array<Set, kSets>>();
};

}  // namespace encore::server
