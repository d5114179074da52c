#include "proxy/http/reply_text.h"

#include <array>
#include <charconv>
#include <cstring>

#include "proxy/http/head_text.h"
#include "proxy/http/message.h"

namespace encore::http {
namespace {

constexpr std::string_view kName = "encore";

char* put(char* out, std::string_view text) {
  std::memcpy(out, text.data(), text.size());
  return out + text.size();
}

constexpr auto kPairs = [] {
  std::array<char, 200> pairs{};
  for (std::size_t i = 0; i < 100; ++i) {
    pairs[2 * i] = static_cast<char>('0' + i / 10);
    pairs[2 * i + 1] = static_cast<char>('0' + i % 10);
  }
  return pairs;
}();

// Two of them stand in each hit, and have few digits: half of what std::to_chars takes for that.
char* put_number(char* out, std::int64_t number) {
  constexpr std::int64_t kMost = 99'999'999;
  if (number < 0 || number > kMost) [[unlikely]] {
    return std::to_chars(out, out + 24, number).ptr;
  }
  auto value = static_cast<std::uint32_t>(number);
  if (value < 10) {
    *out = static_cast<char>('0' + value);
    return out + 1;
  }
  std::size_t digits = 2;
  for (std::uint32_t bound = 100; value >= bound; bound *= 10) ++digits;
  char* at = out + digits;
  for (; value >= 100; value /= 100) {
    at -= 2;
    std::memcpy(at, kPairs.data() + std::size_t{2} * (value % 100), 2);
  }
  if (value >= 10) {
    std::memcpy(out, kPairs.data() + std::size_t{2} * value, 2);
  } else {
    *out = static_cast<char>('0' + value);
  }
  return out + digits;
}

}  // namespace

std::size_t write_age_fields(std::uint32_t age_seconds, std::string_view via_line, char* out) {
  char* end = put(out, "Age: ");
  end = put_number(end, age_seconds);
  end = put(end, "\r\n");
  end = put(end, via_line);
  return static_cast<std::size_t>(end - out);
}

std::size_t write_hit_fields(std::uint32_t age_seconds, std::int64_t ttl_seconds,
                             std::string_view via_line, char* out) {
  char* end = put(out, "Age: ");
  end = put_number(end, age_seconds);
  end = put(end, "\r\n");
  end = put(end, via_line);
  end = put(end, "Cache-Status: encore; hit; ttl=");
  end = put_number(end, ttl_seconds);
  end = put(end, "\r\n");
  return static_cast<std::size_t>(end - out);
}

void write_cache_status(const CacheStatus& status, HeadWriter& out) {
  if (!status.said) return;
  out.text("Cache-Status: ");
  out.written(write_cache_status(kName, status, out.room(cache_status_bytes_max(kName, status))));
  out.text("\r\n");
}

void append_cache_status(const CacheStatus& status, std::string& text) {
  HeadWriter out(text, 0);
  write_cache_status(status, out);
}

SyntheticReply make_own_reply(int status, std::string_view text, std::string_view http_date,
                              const CacheStatus& cache_status, const OwnPage* page) {
  const std::string_view reason = reason_phrase(static_cast<unsigned>(status));
  SyntheticReply reply;
  if (page != nullptr) {
    reply.body = page->body;
  } else {
    reply.body = std::to_string(status);
    reply.body += ' ';
    reply.body += reason;
    reply.body += '\n';
    reply.body += text;
    reply.body += '\n';
  }
  append_status_line(status, reason, reply.head);
  append_field("Date", http_date, reply.head);
  append_field("Content-Type",
               page != nullptr ? std::string_view(page->content_type) : "text/plain; charset=utf-8",
               reply.head);
  reply.head += "Cache-Control: no-store\r\n";
  append_field("Content-Length", std::to_string(reply.body.size()), reply.head);
  if (status == 405) reply.head += kAllowField;
  append_cache_status(cache_status, reply.head);
  return reply;
}

}  // namespace encore::http
