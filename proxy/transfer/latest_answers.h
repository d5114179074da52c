// LatestAnswers: when the latest responses of a key's variants were requested, so that an answer
// that comes late does not take the place of a newer one (RFC 9111 4). A table of fixed size: of
// two variants that share a slot the one that was noted last is known, and the other one is as if
// it had not been noted. Thread-safe; 16 locks.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/mutex.h"
#include "base/time.h"
#include "filter/hash.h"
#include "proxy/http/date.h"

namespace encore::server {

class LatestAnswers {
 public:
  static constexpr std::size_t kSlots = 32768;

  struct Variant {
    filter::Hash128 key;
    std::uint64_t number = 0;  // what the kernel knows it by
  };
  struct Answer {
    http::UnixSeconds date = http::kNoDate;  // of its field Date
    MonotonicTime requested{};
    // A number for its strong entity tag; 0: it has none. Noted of parts only: a part is no newer
    // than a whole that has the same one.
    std::uint64_t etag = 0;
  };

  // An answer came at `now`. An older one than what is noted changes nothing.
  void note(const Variant& variant, const Answer& answer, MonotonicTime now);
  // True if a newer answer was noted: one with a later Date, or with the same, or none, that was
  // requested later.
  bool has_newer(const Variant& variant, const Answer& answer) const;
  // True if an answer was noted after that moment.
  bool has_since(const Variant& variant, MonotonicTime then) const;

 private:
  static constexpr std::size_t kShards = 16;
  struct Slot {
    std::uint64_t tag = 0;  // 0: free
    Answer answer;
    MonotonicTime noted{};
  };
  struct Shard {
    mutable Mutex mutex;
    std::array<Slot, kSlots / kShards> slots ENCORE_GUARDED_BY(mutex){};
  };
  static std::uint64_t tag_of(const Variant& variant);

  std::array<Shard, kShards> shards_;
};

}  // namespace encore::server
