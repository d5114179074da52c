#include "proxy/server/access_log.h"

#include <fmt/format.h>

#include <ctime>
#include <iterator>

namespace encore::server {
namespace {

constexpr char kHex[] = "0123456789abcdef";

void append_json_string(std::string& out, std::string_view text) {
  out += '"';
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte < 0x20 || byte >= 0x7f) {
      // Field values are octets; each one above ASCII is shown as the code point of its value.
      out += "\\u00";
      out += kHex[byte >> 4U];
      out += kHex[byte & 15U];
    } else {
      out += c;
    }
  }
  out += '"';
}

// For the formats that separate by spaces and quotes.
void append_plain(std::string& out, std::string_view text, bool quoted) {
  if (text.empty()) {
    out += '-';
    return;
  }
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool unsafe =
        byte < 0x20 || byte >= 0x7f || c == '"' || c == '\\' || (!quoted && c == ' ');
    if (unsafe) {
      out += '%';
      out += kHex[byte >> 4U];
      out += kHex[byte & 15U];
    } else {
      out += c;
    }
  }
}

std::tm utc(WallTime time) {
  const std::time_t seconds =
      std::chrono::duration_cast<std::chrono::seconds>(time.time_since_epoch()).count();
  std::tm parts{};
  ::gmtime_r(&seconds, &parts);
  return parts;
}

void append_json(std::string& out, const AccessRecord& record) {
  const std::tm parts = utc(record.received);
  const auto micros = record.received.time_since_epoch().count() / 1000 % 1'000'000;
  fmt::format_to(std::back_inserter(out),
                 R"({{"time":"{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:06}Z","client":)",
                 parts.tm_year + 1900, parts.tm_mon + 1, parts.tm_mday, parts.tm_hour, parts.tm_min,
                 parts.tm_sec, micros);
  append_json_string(out, record.client);
  const auto field = [&](std::string_view name, std::string_view value) {
    out += ",\"";
    out += name;
    out += "\":";
    append_json_string(out, value);
  };
  field("method", record.method);
  field("url", record.url);
  if (!record.host.empty()) field("host", record.host);
  field("version", record.version);
  fmt::format_to(std::back_inserter(out),
                 R"(,"status":{},"bytes":{},"body_bytes":{},"duration_us":{},"outcome":"{}")",
                 record.status, record.sent_bytes, record.body_bytes,
                 record.duration.count() / 1000, to_string(record.outcome));
  if (!record.origin.empty()) field("origin", record.origin);
  if (!record.content_type.empty()) field("content_type", record.content_type);
  if (!record.referer.empty()) field("referer", record.referer);
  if (!record.user_agent.empty()) field("user_agent", record.user_agent);
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
  const auto millis = record.received.time_since_epoch().count() / 1'000'000;
  fmt::format_to(std::back_inserter(out), "{}.{:03} {:6} ", millis / 1000, millis % 1000,
                 record.duration.count() / 1'000'000);
  append_plain(out, record.client, false);
  fmt::format_to(std::back_inserter(out), " {}/{:03} {} ", squid_code(record.outcome),
                 record.status, record.sent_bytes);
  append_plain(out, record.method, false);
  out += ' ';
  append_plain(out, record.url, false);
  out += record.origin.empty() ? " - HIER_NONE/" : " - HIER_DIRECT/";
  append_plain(out, record.origin, false);
  out += ' ';
  append_plain(out, record.content_type.substr(0, record.content_type.find(';')), false);
}

// client - - [time] "request" status bytes "referer" "user agent"
void append_combined(std::string& out, const AccessRecord& record) {
  static constexpr const char* kMonths[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                            "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  const std::tm parts = utc(record.received);
  append_plain(out, record.client, false);
  fmt::format_to(std::back_inserter(out), " - - [{:02}/{}/{:04}:{:02}:{:02}:{:02} +0000] \"",
                 parts.tm_mday, kMonths[parts.tm_mon], parts.tm_year + 1900, parts.tm_hour,
                 parts.tm_min, parts.tm_sec);
  if (!record.method.empty()) {
    append_plain(out, record.method, true);
    out += ' ';
    append_plain(out, record.url, false);
    out += ' ';
    append_plain(out, record.version, true);
  } else {
    out += '-';
  }
  fmt::format_to(std::back_inserter(out), "\" {} {} \"", record.status, record.body_bytes);
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
