// StoredMeta: all facts about a stored response that the rules need on a hit, computed once when it
// is stored or freshened. A plain 64-byte value that the server keeps next to the object.
// Thread-safe as any value.
#pragma once

#include <cstdint>

#include "base/time.h"
#include "proxy/http/date.h"
#include "proxy/http/freshness.h"

namespace encore::http {

struct StoredMeta {
  enum Flag : std::uint16_t {
    kNoCache = 1,     // never used without validation
    kNeverStale = 2,  // must-revalidate, proxy-revalidate, s-maxage: not stale, whatever fails
    kImmutable = 4,   // RFC 8246
    kHasEtag = 8,
    kStrongEtag = 16,
    kSureDate = 32,      // Last-Modified lies well before the Date of the body (is_sure_date)
    kHasSie = 64,        // stale-if-error was given
    kInvalidated = 128,  // by an unsafe method: never used without validation (4.4)
    kPartial = 256,      // a 206
    kHasVary = 512,
    kHeuristic = 1024,   // the lifetime is a guess
    kNeverFresh = 2048,  // nothing gave it freshness; see set_lifetime()
    // From a loopback or private address that a client chose: not for every client. The server's to
    // set.
    kPrivateOrigin = 4096,
    // For those alone whom its origin allows it. The server's to set.
    kWantsPermission = 8192,
    // Its body came to a request in which the origin saw a Cookie. The server's to set.
    kWithCookie = 16384,
  };

  MonotonicTime age_zero;     // when the response's age was 0
  MonotonicTime fresh_until;  // age_zero + lifetime
  UnixSeconds last_modified = kNoDate;
  UnixSeconds date = kNoDate;
  std::uint32_t lifetime_seconds = 0;
  // The windows of stale-while-revalidate and stale-if-error. A response that never was fresh has
  // those of its origin, or of the operator whose rule decides its lifetime, and no others apply.
  std::uint32_t swr_seconds = 0;
  std::uint32_t sie_seconds = 0;
  std::uint32_t head_bytes = 0;   // size of the stored head (stored_head.h)
  std::uint32_t etag_offset = 0;  // offset of the ETag's value in the stored head
  std::uint16_t etag_bytes = 0;
  std::uint16_t status = 200;
  std::uint16_t flags = 0;

  bool is(Flag flag) const noexcept { return (flags & flag) != 0; }
};
static_assert(sizeof(StoredMeta) <= 64);

// True if the response's own time has come. One that never was fresh is stale whatever the clock
// says.
inline bool is_stale(const StoredMeta& meta, MonotonicTime now) noexcept {
  return now >= meta.fresh_until || meta.is(StoredMeta::kNeverFresh);
}

// The first check of a hit. True: it is for everybody; serve it, if the request has none of
// Cache-Control, Pragma, conditionals and Range (kRequestExtras).
inline bool is_fresh(const StoredMeta& meta, MonotonicTime now) noexcept {
  constexpr unsigned kBarred = StoredMeta::kNoCache | StoredMeta::kInvalidated |
                               StoredMeta::kNeverFresh | StoredMeta::kWantsPermission;
  return now < meta.fresh_until && (meta.flags & kBarred) == 0;
}

// Request fields whose absence makes is_fresh() the whole decision.
inline constexpr FieldSet kRequestExtras = {FieldId::kCacheControl, FieldId::kPragma,
                                            FieldId::kRange,        FieldId::kIfRange,
                                            FieldId::kIfNoneMatch,  FieldId::kIfModifiedSince,
                                            FieldId::kIfMatch,      FieldId::kIfUnmodifiedSince};

// The value of the Age field now, in whole seconds (RFC 9111 4.2.3).
inline std::uint32_t current_age(const StoredMeta& meta, MonotonicTime now) noexcept {
  const auto seconds = std::chrono::floor<std::chrono::seconds>(now - meta.age_zero).count();
  if (seconds < 0) return 0;
  return seconds > kDeltaMax ? kDeltaMax : static_cast<std::uint32_t>(seconds);
}

// Seconds of freshness left, negative when stale: Cache-Status' ttl (RFC 9211 2.3).
inline std::int64_t remaining_ttl(const StoredMeta& meta, MonotonicTime now) noexcept {
  return static_cast<std::int64_t>(meta.lifetime_seconds) - current_age(meta, now);
}

// "Stale from then on" of a response that nothing may serve without validation: longer ago than any
// clock's beginning and any window of staleness.
inline constexpr MonotonicTime kStaleAlways = MonotonicTime{} - std::chrono::years(70);

// Makes the response stale from `now` on: a soft purge. The windows of stale-while-revalidate and
// stale-if-error begin then; from kStaleAlways there are none, and max-stale is not heard.
inline void mark_stale(StoredMeta& meta, MonotonicTime now) noexcept {
  if (now == kStaleAlways) meta.flags |= StoredMeta::kNeverStale;
  if (now >= meta.fresh_until) return;
  meta.fresh_until = now;
  meta.lifetime_seconds = current_age(meta, now);
}

// Sets fresh_until, lifetime_seconds, kHeuristic and kNeverFresh of a response that came then. A
// response never was fresh if its lifetime is none, or a guess of ours that its age had passed when
// it came. A lifetime that its origin states counts, though it was used up on the way: its origin
// allowed everybody to use it for that long. REQUIRES: age_zero.
void set_lifetime(StoredMeta& meta, const Lifetime& lifetime, MonotonicTime came) noexcept;

// Fills everything but head_bytes, etag_offset and etag_bytes, which the stored head's builder
// knows. `response` is the response as received.
StoredMeta make_stored_meta(const ResponseHead& response, const ResponseDirectives& directives,
                            const Lifetime& lifetime, const Exchange& exchange) noexcept;

}  // namespace encore::http
