// The directives of Cache-Control (RFC 9111 5.2, RFC 5861, RFC 8246) and Pragma, parsed over all
// field lines together. Pure, thread-compatible.
//
// Malformed or contradictory directives are read towards less reuse. The shorter of two values
// counts, and an invalid number counts as 0. A list of fields that cannot be read, or has more than
// kListedFieldsMax of them, counts as no list.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "proxy/http/message.h"

namespace encore::http {

// Delta seconds saturate here (RFC 9111 1.2.2).
inline constexpr std::uint32_t kDeltaMax = std::uint32_t{1} << 31;

inline constexpr std::size_t kListedFieldsMax = 64;

struct ResponseDirectives {
  std::optional<std::uint32_t> max_age;
  std::optional<std::uint32_t> s_maxage;
  std::optional<std::uint32_t> stale_while_revalidate;
  std::optional<std::uint32_t> stale_if_error;
  bool no_store = false;
  bool no_cache = false;    // without a list
  bool is_private = false;  // without a list
  bool is_public = false;
  bool must_revalidate = false;
  bool proxy_revalidate = false;
  bool must_understand = false;
  bool no_transform = false;
  bool immutable = false;
  // These came from a targeted field: Cache-Control and Expires say nothing (targeted.h).
  bool targeted = false;
  // Lower-case names of the qualified forms no-cache="..." and private="...": fields that may be
  // stored only without being reused, so that we do not store them.
  std::vector<std::string> stripped_fields;
};

struct RequestDirectives {
  std::optional<std::uint32_t> max_age;
  std::optional<std::uint32_t> min_fresh;
  std::optional<std::uint32_t> max_stale;  // kDeltaMax: without a limit
  std::optional<std::uint32_t> stale_if_error;
  bool no_cache = false;
  bool no_store = false;
  bool only_if_cached = false;
  bool no_transform = false;
};

ResponseDirectives parse_response_directives(const Fields& fields);

// Pragma: no-cache counts where Cache-Control is absent (RFC 9111 5.4).
RequestDirectives parse_request_directives(const Fields& fields);

// Reads delta-seconds: digits only, saturated; nothing if malformed.
std::optional<std::uint32_t> parse_delta(std::string_view text) noexcept;

}  // namespace encore::http
