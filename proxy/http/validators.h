// Validators (RFC 9110 8.8): entity tags and dates that say whether two responses are the same.
// Pure, thread-compatible.
#pragma once

#include <string_view>

#include "proxy/http/date.h"
#include "proxy/http/message.h"

namespace encore::http {

// What a response can be compared by. `etag` as in the field, empty if none.
struct Validators {
  std::string_view etag = {};
  UnixSeconds last_modified = kNoDate;
  UnixSeconds date = kNoDate;
  bool any() const noexcept { return !etag.empty() || last_modified != kNoDate; }
};

// Those of a response just received.
Validators received_validators(const ResponseHead& response, UnixSeconds now) noexcept;

// Whether two responses have the same validator: the entity tag, where both have one, compared
// weakly (RFC 9110 8.8.3.2), else Last-Modified. False where they have none in common.
bool same_validator(const Validators& a, const Validators& b) noexcept;

// Entity tags (RFC 9110 8.8.3).
bool is_etag(std::string_view text) noexcept;
bool is_strong_etag(std::string_view etag) noexcept;
bool strong_match(std::string_view a, std::string_view b) noexcept;
bool weak_match(std::string_view a, std::string_view b) noexcept;

// Last-Modified is strong if it lies at least a second before Date (RFC 9110 8.8.2.2).
bool is_strong_date(UnixSeconds last_modified, UnixSeconds date) noexcept;

}  // namespace encore::http
