// The lines that we add to every response we send: Age, Via, Cache-Status, Connection, framing,
// and whole replies of our own (errors). Pure, thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "proxy/http/cache_status.h"
#include "proxy/http/message.h"
#include "proxy/server/runtime.h"

namespace encore::server {

// Appends one field line.
void append_field(std::string_view name, std::string_view value, std::string& out);

// What a hit adds to its stored head; written without allocation. Returns the length, at most
// kHitTailBytesMax + the Via line's.
inline constexpr std::size_t kHitTailBytesMax = 192;
std::size_t write_hit_tail(std::uint32_t age_seconds, std::int64_t ttl_seconds,
                           std::string_view via_line, http::Version client, bool keep_alive,
                           char* out);

struct TailOptions {
  std::optional<std::uint32_t> age_seconds;
  http::CacheStatus status;
  std::string_view via_line;
  http::Version client = http::Version::kHttp11;
  bool keep_alive = true;
  bool chunked = false;
};
// The same for every other response, with the empty line that ends the head.
void append_tail(const TailOptions& options, std::string& out);

// A whole reply of our own. `text` is for people, one line.
std::string make_error_reply(int status, std::string_view text, std::string_view http_date,
                             bool keep_alive, bool with_body,
                             const http::CacheStatus& cache_status);

}  // namespace encore::server
