// Validators (RFC 9110 8.8): entity tags and dates that say whether two responses are the same.
// Pure, thread-compatible.
#pragma once

#include <cstdint>
#include <string_view>

#include "proxy/http/date.h"
#include "proxy/http/message.h"

namespace encore::http {

// The validators of a response. `etag` as in the field, empty if none. `date` is the Date
// with which the body came: how much later than Last-Modified, says how sure that is.
struct Validators {
  std::string_view etag = {};
  UnixSeconds last_modified = kNoDate;
  UnixSeconds date = kNoDate;
  bool any() const noexcept { return !etag.empty() || last_modified != kNoDate; }
};

// Those of a response just received.
Validators received_validators(const ResponseHead& response, UnixSeconds now) noexcept;

// True if two responses have the same validator: the entity tag, where both have one, compared
// weakly (RFC 9110 8.8.3.2), else Last-Modified. False where they have none in common.
bool same_validator(const Validators& a, const Validators& b) noexcept;

// Entity tags (RFC 9110 8.8.3).
bool is_etag(std::string_view text) noexcept;
bool is_strong_etag(std::string_view etag) noexcept;
bool strong_match(std::string_view a, std::string_view b) noexcept;
bool weak_match(std::string_view a, std::string_view b) noexcept;

// Last-Modified is strong if it lies at least a second before Date (RFC 9110 8.8.2.2).
bool is_strong_date(UnixSeconds last_modified, UnixSeconds date) noexcept;
// The same with a minute, by which the clocks of who dates a change and of who answers may differ,
// and a response may take to be made.
inline constexpr UnixSeconds kSureSeconds = 60;
bool is_sure_date(UnixSeconds last_modified, UnixSeconds date) noexcept;

// The proof that a validator has to give for a stored response to be used again
// (docs/decisions/0401).
enum class ValidatorStrength : std::uint8_t {
  kUsual,   // it may have expired, no more: any entity tag, or a strong date
  kStrong,  // it may be outdated: a strong entity tag, or a sure date
};
// Those validators that prove so much.
Validators sufficient(const Validators& validators, ValidatorStrength proof) noexcept;

}  // namespace encore::http
