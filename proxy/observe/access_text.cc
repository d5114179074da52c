#include "proxy/observe/access_text.h"

#include <array>
#include <charconv>
#include <ctime>

#include "proxy/observe/field_limit.h"

namespace encore::server {
namespace {

constexpr char kHex[] = "0123456789abcdef";

// Which bytes may stand in a text as they are, by format.
using Safe = std::array<bool, 256>;
constexpr Safe safe_without(std::string_view unsafe) {
  Safe safe{};
  for (std::size_t byte = 0x20; byte < 0x7f; ++byte) safe[byte] = true;
  for (const char c : unsafe) safe[static_cast<unsigned char>(c)] = false;
  return safe;
}
constexpr Safe kSafeInQuotes = safe_without("\"\\");
constexpr Safe kSafeWord = safe_without("\"\\ ");

// Appends the text run by run; escape(out, byte) writes what may not stand as it is.
template <typename Escape>
void append_escaped(std::string& out, std::string_view text, const Safe& safe, Escape escape) {
  std::size_t begin = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if (safe[byte]) continue;
    out.append(text, begin, i - begin);
    escape(out, byte);
    begin = i + 1;
  }
  out.append(text, begin);
}

std::int64_t seconds_of(WallTime time) {
  return std::chrono::floor<std::chrono::seconds>(time.time_since_epoch()).count();
}

// The second as texts; most records are of the same as the one before.
struct Second {
  std::int64_t value = -1;
  std::string iso;       // 2026-11-21T12:57:36
  std::string combined;  // 21/Nov/2026:12:57:36 +0000
};

const Second& second_of(WallTime time) {
  thread_local Second second;
  const std::time_t value = seconds_of(time);
  if (second.value == value) return second;
  std::tm parts{};
  ::gmtime_r(&value, &parts);
  const auto format = [&parts](const char* pattern) {
    std::array<char, 64> text;
    return std::string(text.data(), std::strftime(text.data(), text.size(), pattern, &parts));
  };
  // The process has the locale "C": the names of months are English.
  second = {value, format("%Y-%m-%dT%H:%M:%S"), format("%d/%b/%Y:%H:%M:%S +0000")};
  return second;
}

}  // namespace

void append_plain(std::string& out, std::string_view text, FieldQuoting within) {
  if (text.empty()) {
    out += '-';
    return;
  }
  const Safe& safe = within == FieldQuoting::kQuotes ? kSafeInQuotes : kSafeWord;
  constexpr std::size_t kEscapedBytes = 3;
  const std::string_view kept =
      text.size() <= kFieldBytesMax / kEscapedBytes
          ? text
          : fitting(text, [&safe](unsigned char byte) { return safe[byte] ? 1 : kEscapedBytes; });
  append_escaped(out, kept, safe, [](std::string& to, unsigned char byte) {
    to += '%';
    to += kHex[byte >> 4U];
    to += kHex[byte & 15U];
  });
  if (kept.size() != text.size()) out += kFieldCut;
}

void append_user(std::string& out, std::string_view user) {
  if (user == "-") {
    out += "%2d";
  } else {
    append_plain(out, user, FieldQuoting::kWord);
  }
}

void append_number(std::string& out, std::int64_t value) {
  std::array<char, 24> text;
  const char* end = std::to_chars(text.data(), text.data() + text.size(), value).ptr;
  out.append(text.data(), static_cast<std::size_t>(end - text.data()));
}

void append_padded(std::string& out, std::int64_t value, std::size_t digits, char fill) {
  const std::size_t begin = out.size();
  append_number(out, value);
  const std::size_t written = out.size() - begin;
  if (written < digits) out.insert(begin, digits - written, fill);
}

void append_iso_time(std::string& out, WallTime time) {
  out += second_of(time).iso;
  out += '.';
  append_padded(out, time.time_since_epoch().count() / 1000 % 1'000'000, 6);
  out += 'Z';
}

std::string_view log_time(WallTime time) { return second_of(time).combined; }

void append_epoch(std::string& out, WallTime time) {
  append_number(out, seconds_of(time));
  out += '.';
  append_padded(out, time.time_since_epoch().count() / 1'000'000 % 1000, 3);
}

std::int64_t microseconds(Nanoseconds time) { return time.count() / 1000; }

bool is_traceparent(std::string_view text) {
  constexpr std::string_view kForm = "00-00000000000000000000000000000000-0000000000000000-00";
  // A future version may have more behind a hyphen.
  constexpr std::size_t kBytesMax = 128;
  if (text.size() < kForm.size() || text.size() > kBytesMax) return false;
  if (text.size() > kForm.size() && (text.starts_with("00") || text[kForm.size()] != '-')) {
    return false;
  }
  for (std::size_t i = 0; i < kForm.size(); ++i) {
    const char c = text[i];
    const bool hex = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
    if (kForm[i] == '-' ? c != '-' : !hex) return false;
  }
  return !text.starts_with("ff");
}

std::string_view squid_code(const RequestRecord& record) {
  constexpr int kRedirection = 3;
  switch (record.outcome) {
    case Outcome::kHit:
      return record.detail == "disk" ? "TCP_HIT" : "TCP_MEM_HIT";
    case Outcome::kStale:
      return "TCP_REFRESH_FAIL_OLD";
    case Outcome::kRevalidated:
      return "TCP_REFRESH_UNMODIFIED";
    case Outcome::kTunnel:
    case Outcome::kIntercepted:
    case Outcome::kUpgrade:
      return "TCP_TUNNEL";
    case Outcome::kDenied:
      return "TCP_DENIED";
    case Outcome::kRule:
      return record.status / 100 == kRedirection ? "TCP_REDIRECT" : "TCP_MISS";
    case Outcome::kClientAborted:
    case Outcome::kSlowReader:
    case Outcome::kDrained:
      return "TCP_MISS_ABORTED";
    case Outcome::kCollapsed:
      return "TCP_CF_HIT";
    case Outcome::kBadRequest:
    case Outcome::kNoRoute:
    case Outcome::kLoop:
    case Outcome::kInternal:
      return "NONE_NONE";
    default:
      return "TCP_MISS";
  }
}

std::string_view ip_of(std::string_view address) {
  if (address.starts_with('[')) return address.substr(1, address.find(']') - 1);
  return address.substr(0, address.rfind(':'));
}

// A request that waited for another's answer was sent nowhere.
std::string_view squid_peer(const RequestRecord& record) {
  return record.outcome == Outcome::kCollapsed ? std::string_view() : ip_of(origin_of(record));
}

std::string_view squid_hierarchy(const RequestRecord& record) {
  if (squid_peer(record).empty()) return "HIER_NONE";
  return record.through_parent ? "FIRSTUP_PARENT" : "HIER_DIRECT";
}

}  // namespace encore::server
