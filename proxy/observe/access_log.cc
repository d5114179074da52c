#include "proxy/observe/access_log.h"

#include <array>
#include <charconv>
#include <cstring>
#include <ctime>

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

void append_json_string(std::string& out, std::string_view text) {
  out += '"';
  append_escaped(out, text, kSafeInQuotes, [](std::string& to, unsigned char byte) {
    if (byte == '"' || byte == '\\') {
      to += '\\';
      to += static_cast<char>(byte);
      return;
    }
    // Field values are octets; each one above ASCII is shown as the code point of its value.
    to += "\\u00";
    to += kHex[byte >> 4U];
    to += kHex[byte & 15U];
  });
  out += '"';
}

// For the formats that separate by spaces and quotes.
void append_plain(std::string& out, std::string_view text, bool quoted) {
  if (text.empty()) {
    out += '-';
    return;
  }
  append_escaped(out, text, quoted ? kSafeInQuotes : kSafeWord,
                 [](std::string& to, unsigned char byte) {
                   to += '%';
                   to += kHex[byte >> 4U];
                   to += kHex[byte & 15U];
                 });
}

// Nobody is "-" in these formats, so that a user of that name is written otherwise.
void append_user(std::string& out, std::string_view user) {
  if (user == "-") {
    out += "%2d";
  } else {
    append_plain(out, user, false);
  }
}

void append_number(std::string& out, std::int64_t value) {
  std::array<char, 24> text;
  const char* end = std::to_chars(text.data(), text.data() + text.size(), value).ptr;
  out.append(text.data(), static_cast<std::size_t>(end - text.data()));
}
void append_number(std::string& out, std::uint64_t value) {
  append_number(out, static_cast<std::int64_t>(value));
}

// At least so many digits, filled up with `fill`.
void append_padded(std::string& out, std::int64_t value, std::size_t digits, char fill = '0') {
  const std::size_t begin = out.size();
  append_number(out, value);
  const std::size_t written = out.size() - begin;
  if (written < digits) out.insert(begin, digits - written, fill);
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

void append_json(std::string& out, const AccessRecord& record) {
  const auto micros = record.received.time_since_epoch().count() / 1000 % 1'000'000;
  out += R"({"time":")";
  out += second_of(record.received).iso;
  out += '.';
  append_padded(out, micros, 6);
  out += R"(Z","client":)";
  append_json_string(out, record.client);
  const auto field = [&](std::string_view name, std::string_view value) {
    out += name;
    append_json_string(out, value);
  };
  if (!record.user.empty()) field(R"(,"user":)", record.user);
  field(R"(,"method":)", record.method);
  field(R"(,"url":)", record.url);
  if (!record.host.empty()) field(R"(,"host":)", record.host);
  field(R"(,"version":)", record.version);
  out += R"(,"status":)";
  append_number(out, std::int64_t{record.status});
  out += R"(,"bytes":)";
  append_number(out, record.sent_bytes);
  out += R"(,"body_bytes":)";
  append_number(out, record.body_bytes);
  out += R"(,"duration_us":)";
  append_number(out, std::int64_t{record.duration.count() / 1000});
  field(R"(,"outcome":)", to_string(record.outcome));
  if (!record.origin.empty()) field(R"(,"origin":)", record.origin);
  if (!record.content_type.empty()) field(R"(,"content_type":)", record.content_type);
  if (!record.referer.empty()) field(R"(,"referer":)", record.referer);
  if (!record.user_agent.empty()) field(R"(,"user_agent":)", record.user_agent);
  if (!record.tls_version.empty()) {
    field(R"(,"tls_version":)", record.tls_version);
    field(R"(,"tls_cipher":)", record.tls_cipher);
    out += record.tls_resumed ? R"(,"tls_resumed":true)" : R"(,"tls_resumed":false)";
    if (!record.tls_server_name.empty()) field(R"(,"tls_server_name":)", record.tls_server_name);
    if (!record.client_subject.empty()) field(R"(,"client_subject":)", record.client_subject);
    if (!record.client_fingerprint.empty()) {
      field(R"(,"client_fingerprint":)", record.client_fingerprint);
    }
  }
  if (record.intercepted) out += R"(,"intercepted":true)";
  out += '}';
}

// Squid's result codes for what became of a request.
std::string_view squid_code(Outcome outcome) {
  switch (outcome) {
    case Outcome::kHit:
      return "TCP_MEM_HIT";
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
    case Outcome::kClientAborted:
      return "TCP_MISS_ABORTED";
    case Outcome::kCollapsed:
      return "TCP_CF_MISS";
    case Outcome::kOnlyIfCached:
      return "TCP_OFFLINE_MISS";
    default:
      return class_of(outcome) == OutcomeClass::kError ? "NONE" : "TCP_MISS";
  }
}

// time elapsed client code/status bytes method URL user hierarchy/peer type
void append_squid(std::string& out, const AccessRecord& record) {
  append_number(out, seconds_of(record.received));
  out += '.';
  append_padded(out, record.received.time_since_epoch().count() / 1'000'000 % 1000, 3);
  out += ' ';
  append_padded(out, record.duration.count() / 1'000'000, 6, ' ');
  out += ' ';
  append_plain(out, record.client, false);
  out += ' ';
  out += squid_code(record.outcome);
  out += '/';
  append_padded(out, record.status, 3);
  out += ' ';
  append_number(out, record.sent_bytes);
  out += ' ';
  append_plain(out, record.method, false);
  out += ' ';
  append_plain(out, record.url, false);
  out += ' ';
  append_user(out, record.user);
  out += record.origin.empty() ? " HIER_NONE/" : " HIER_DIRECT/";
  append_plain(out, record.origin, false);
  out += ' ';
  append_plain(out, record.content_type.substr(0, record.content_type.find(';')), false);
}

// client - user [time] "request" status bytes "referer" "user agent"
void append_combined(std::string& out, const AccessRecord& record) {
  append_plain(out, record.client, false);
  out += " - ";
  append_user(out, record.user);
  out += " [";
  out += second_of(record.received).combined;
  out += "] \"";
  if (!record.method.empty()) {
    append_plain(out, record.method, true);
    out += ' ';
    append_plain(out, record.url, false);
    out += ' ';
    append_plain(out, record.version, true);
  } else {
    out += '-';
  }
  out += "\" ";
  append_number(out, std::int64_t{record.status});
  out += ' ';
  append_number(out, record.body_bytes);
  out += " \"";
  append_plain(out, record.referer, true);
  out += "\" \"";
  append_plain(out, record.user_agent, true);
  out += '"';
}

}  // namespace

void append_access_record(std::string& out, AccessFormat format, const AccessRecord& record) {
  switch (format) {
    case AccessFormat::kJson:
      append_json(out, record);
      break;
    case AccessFormat::kSquid:
      append_squid(out, record);
      break;
    case AccessFormat::kCombined:
      append_combined(out, record);
      break;
  }
  out += '\n';
}

}  // namespace encore::server
