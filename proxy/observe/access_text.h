// The pieces that lines of the access log are made of. Pure, thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/time.h"
#include "proxy/observe/request_record.h"

namespace encore::server {

// For the formats that separate by spaces and quotes: "-" for nothing, %XX for what they misread.
// Longer than kFieldBytesMax with that, it is cut (field_limit.h).
enum class FieldQuoting : std::uint8_t { kWord, kQuotes };
void append_plain(std::string& out, std::string_view text, FieldQuoting within);
// Nobody is "-" in these formats, so that a user of that name is written otherwise.
void append_user(std::string& out, std::string_view user);
void append_number(std::string& out, std::int64_t value);
inline void append_number(std::string& out, std::uint64_t value) {
  append_number(out, static_cast<std::int64_t>(value));
}
// At least so many digits, filled up with `fill`.
void append_padded(std::string& out, std::int64_t value, std::size_t digits, char fill = '0');

// "2026-11-21T12:57:36.964946Z", "21/Nov/2026:12:57:36 +0000", "1795265856.964".
void append_iso_time(std::string& out, WallTime time);
std::string_view log_time(WallTime time);  // until the next call on this thread
void append_epoch(std::string& out, WallTime time);

std::int64_t microseconds(Nanoseconds time);

// The address that was connected to; empty: none.
inline std::string_view origin_of(const RequestRecord& record) {
  return record.visit == nullptr ? std::string_view() : std::string_view(record.visit->address);
}
// Returns Squid's code for the outcome.
std::string_view squid_code(const RequestRecord& record);
std::string_view squid_hierarchy(const RequestRecord& record);
// The address that it writes behind that, without port and brackets; empty: none.
std::string_view squid_peer(const RequestRecord& record);
// An address without its port, and brackets.
std::string_view ip_of(std::string_view address);

}  // namespace encore::server
