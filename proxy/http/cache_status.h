// Cache-Status (RFC 9211): one member a cache, ours appended to those of caches behind us. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "proxy/http/message.h"

namespace encore::http {

// Why a request was forwarded (RFC 9211 2.2).
enum class Forwarded : std::uint8_t {
  kNo,
  kBypass,
  kMethod,
  kUriMiss,
  kVaryMiss,
  kMiss,
  kRequest,
  kStale,
  kPartial,
};
std::string_view to_string(Forwarded forwarded) noexcept;

struct CacheStatus {
  bool hit = false;
  Forwarded forwarded = Forwarded::kNo;
  unsigned forward_status = 0;  // the origin's status where it is not the client's; 0: none
  std::optional<std::int64_t> ttl = {};
  std::optional<bool> stored = {};  // for a forwarded request: nothing: left out
  bool collapsed = false;
  bool said = true;              // else no field is made of it
  std::string_view key = {};     // empty: left out
  std::string_view detail = {};  // a token such as "first-request"; empty: left out
};

// Writes our member, as "encore; hit; ttl=59", and returns its length. Parameters stand in the
// order hit, fwd, fwd-status, ttl, stored, collapsed, key, detail. REQUIRES: room for
// cache_status_bytes_max().
std::size_t write_cache_status(std::string_view name, const CacheStatus& status, char* out);
std::size_t cache_status_bytes_max(std::string_view name, const CacheStatus& status) noexcept;

// A member as another cache wrote it. Views into the fields; `forwarded` and `detail` are as sent,
// and empty if they are absent or neither a token nor a string.
struct ReceivedCacheStatus {
  bool hit = false;
  bool collapsed = false;
  std::string_view forwarded;
  std::string_view detail;
};
// The last member, written by the cache that sent the response. Nothing if there is none, or if any
// line is malformed: then all are to be ignored (RFC 8941 4.2).
std::optional<ReceivedCacheStatus> last_cache_status(const Fields& fields);
// True if that cache has had an earlier request for the resource than this one: it had the response
// in store, fresh or not, shared one in progress, or stores it because of an earlier request.
bool tells_of_earlier_request(const ReceivedCacheStatus& status) noexcept;

}  // namespace encore::http
