// The text that we add to an origin's response: Age, Via and Cache-Status of a hit, and whole
// replies of our own. Nothing here frames a message. Pure, thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "proxy/http/cache_status.h"
#include "proxy/http/head_writer.h"

namespace encore::http {

// The methods that we forward, as a field line.
inline constexpr std::string_view kAllowField =
    "Allow: GET, HEAD, POST, PUT, DELETE, OPTIONS, PATCH\r\n";

// Writes the fields that a hit adds to its stored head, without allocation. Returns the length, at
// most kHitFieldsBytesMax + the Via line's.
inline constexpr std::size_t kHitFieldsBytesMax = 160;
std::size_t write_hit_fields(std::uint32_t age_seconds, std::int64_t ttl_seconds,
                             std::string_view via_line, char* out);
// The same without Cache-Status.
std::size_t write_age_fields(std::uint32_t age_seconds, std::string_view via_line, char* out);

// Our Cache-Status, as a field line; nothing where it is not said.
void write_cache_status(const CacheStatus& status, HeadWriter& out);
void append_cache_status(const CacheStatus& status, std::string& text);

// A whole reply of our own.
struct SyntheticReply {
  std::string head;  // with Content-Length and Cache-Status, without the empty line
  std::string body;
};
// Replacement of the text.
struct OwnPage {
  std::string content_type;
  std::string body;
};
// `text` is for people, one line. `page` null: that alone.
SyntheticReply make_own_reply(int status, std::string_view text, std::string_view http_date,
                              const CacheStatus& cache_status, const OwnPage* page = nullptr);

}  // namespace encore::http
