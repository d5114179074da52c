// LatestResponses: when the latest responses of a key's variants were requested, so that an answer
// that comes late does not take the place of a newer one (RFC 9111 4). A table of fixed size: of
// two variants that share a slot the one that was noted last is known, and the other one is as if
// it had not been noted. Thread-safe; 16 locks. Why a late one is not stored to be validated:
// docs/decisions/0360.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/mutex.h"
#include "base/time.h"
#include "filter/hash.h"
#include "proxy/http/date.h"

namespace encore::server {

class LatestResponses {
 public:
  static constexpr std::size_t kSlots = 32768;

  struct Variant {
    filter::Hash128 key;
    std::uint64_t number = 0;  // the kernel's number for it
  };
  struct Answer {
    http::UnixSeconds date = http::kNoDate;  // value of its field Date
    MonotonicTime requested{};
    // A number for its strong entity tag; 0: it has none. Noted of parts only: a part is no newer
    // than a whole that has the same one.
    std::uint64_t etag = 0;
    // Parts of the same second are of one representation as a rule, in whatever order they come.
    bool is_part = false;
    // Until then it is used, if it is stored; not at all if it is not.
    MonotonicTime fresh_until{};
    std::uint64_t invalidations = 0;  // Invalidations::count() as it came
  };
  // A newer answer: one with a later Date, or with the same, or none, that was requested later.
  struct Newer {
    // It came while the other was in progress. If not, its Date alone says so: the clock of its
    // server may be ahead, and it counts as long as it is stored and fresh.
    bool came_meanwhile = false;
    std::uint64_t invalidations = 0;
    MonotonicTime noted{};
  };

  // An answer came at `now`. An older one than what is noted changes nothing, unless what is noted
  // is the one of `gone`, which is of no use any more.
  void note(const Variant& variant, const Answer& answer, MonotonicTime now,
            const std::optional<Newer>& gone = {});
  // The newer answer that was noted; nothing: there is none.
  std::optional<Newer> newer_than(const Variant& variant, const Answer& answer,
                                  MonotonicTime now) const;
  // True if an answer was noted after that moment.
  bool has_since(const Variant& variant, MonotonicTime then) const;

 private:
  static constexpr std::size_t kShards = 16;
  struct Slot {
    std::uint64_t tag = 0;  // 0: free
    Answer answer;
    MonotonicTime noted{};
    std::optional<Newer> newer_than(const Answer& other, MonotonicTime now) const;
  };
  struct Shard {
    mutable Mutex mutex;
    std::array<Slot, kSlots / kShards> slots ENCORE_GUARDED_BY(mutex){};
  };
  static std::uint64_t tag_of(const Variant& variant);

  std::array<Shard, kShards> shards_;
};

}  // namespace encore::server
