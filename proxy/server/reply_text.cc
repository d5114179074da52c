#include "proxy/server/reply_text.h"

#include <array>
#include <charconv>
#include <cstring>

#include "proxy/server/response.h"

namespace encore::server {
namespace {

constexpr std::string_view kName = "encore";

char* put(char* out, std::string_view text) {
  std::memcpy(out, text.data(), text.size());
  return out + text.size();
}

char* put_number(char* out, std::int64_t value) { return std::to_chars(out, out + 24, value).ptr; }

std::string_view connection_line(http::Version client, bool keep_alive) {
  if (!keep_alive) return "Connection: close\r\n";
  return client == http::Version::kHttp10 ? "Connection: keep-alive\r\n" : "";
}

}  // namespace

std::size_t write_hit_tail(std::uint32_t age_seconds, std::int64_t ttl_seconds,
                           std::string_view via_line, http::Version client, bool keep_alive,
                           char* out) {
  char* end = put(out, "Age: ");
  end = put_number(end, age_seconds);
  end = put(end, "\r\n");
  end = put(end, via_line);
  end = put(end, "Cache-Status: encore; hit; ttl=");
  end = put_number(end, ttl_seconds);
  end = put(end, "\r\n");
  end = put(end, connection_line(client, keep_alive));
  end = put(end, "\r\n");
  return static_cast<std::size_t>(end - out);
}

// The callback is given the room that there is, which may be more than was asked for: what was
// written decides the size.
void append_field(std::string_view name, std::string_view value, std::string& out) {
  const std::size_t begin = out.size();
  out.resize_and_overwrite(begin + name.size() + value.size() + 4, [&](char* text, std::size_t) {
    char* end = put(text + begin, name);
    end = put(end, ": ");
    end = put(end, value);
    end = put(end, "\r\n");
    return static_cast<std::size_t>(end - text);
  });
}

void append_tail(const TailOptions& options, std::string& out) {
  if (options.age_seconds) {
    out += "Age: ";
    out += std::to_string(*options.age_seconds);
    out += "\r\n";
  }
  out += options.via_line;
  out += "Cache-Status: ";
  const std::size_t begin = out.size();
  out.resize(begin + http::cache_status_bytes_max(kName, options.status));
  out.resize(begin + http::write_cache_status(kName, options.status, out.data() + begin));
  out += "\r\n";
  if (options.chunked) out += "Transfer-Encoding: chunked\r\n";
  out += connection_line(options.client, options.keep_alive);
  out += "\r\n";
}

std::string make_error_reply(int status, std::string_view text, std::string_view http_date,
                             bool keep_alive, bool with_body,
                             const http::CacheStatus& cache_status) {
  std::string body = std::to_string(status) + " " +
                     std::string(http::reason_phrase(static_cast<unsigned>(status))) + "\n";
  body += text;
  body += "\n";
  std::string out;
  append_status_line(status, http::reason_phrase(static_cast<unsigned>(status)), out);
  out += "Date: ";
  out += http_date;
  out +=
      "\r\nContent-Type: text/plain; charset=utf-8\r\nCache-Control: no-store\r\nContent-Length: ";
  out += std::to_string(body.size());
  out += "\r\n";
  if (status == 405) out += "Allow: GET, HEAD, POST, PUT, DELETE, OPTIONS, PATCH\r\n";
  append_tail({.age_seconds = std::nullopt,
               .status = cache_status,
               .via_line = {},
               .client = http::Version::kHttp11,
               .keep_alive = keep_alive,
               .chunked = false},
              out);
  if (with_body) out += body;
  return out;
}

}  // namespace encore::server
