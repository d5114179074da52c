#include "proxy/net/admin_head.h"

#include <strings.h>

#include <algorithm>
#include <array>
#include <charconv>

namespace encore::net {
namespace {

// The next line, its end taken off; what is left begins behind it.
std::string_view take_line(std::string_view& bytes) {
  const std::size_t end = bytes.find('\n');
  std::string_view line = bytes.substr(0, end);
  bytes.remove_prefix(end == std::string_view::npos ? bytes.size() : end + 1);
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t") + 1 - begin);
}

bool same_name(std::string_view a, std::string_view b) {
  return a.size() == b.size() && strncasecmp(a.data(), b.data(), a.size()) == 0;
}

bool speaks_of_body(std::string_view name) {
  constexpr std::array<std::string_view, 4> kNames = {"Content-Length", "Transfer-Encoding",
                                                      "Expect", "Connection"};
  return std::ranges::any_of(kNames, [&](auto known) { return same_name(name, known); });
}

}  // namespace

std::size_t admin_head_size(std::string_view bytes, std::size_t from) {
  std::size_t at = from < 2 ? 0 : from - 2;
  while ((at = bytes.find('\n', at)) != std::string_view::npos) {
    ++at;
    const std::string_view next = bytes.substr(at);
    if (next.starts_with('\n')) return at + 1;
    if (next.starts_with("\r\n")) return at + 2;
  }
  return std::string_view::npos;
}

std::optional<AdminRequest> read_admin_head(std::string_view head) {
  AdminRequest request;
  std::string_view line = take_line(head);
  request.method = line.substr(0, line.find(' '));
  line.remove_prefix(std::min(line.size(), request.method.size() + 1));
  const std::string_view target = line.substr(0, line.find(' '));
  const std::size_t question = target.find('?');
  request.path = target.substr(0, question);
  if (question != std::string_view::npos) request.query = target.substr(question + 1);
  while (!head.empty()) {
    line = take_line(head);
    if (line.empty()) break;
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos) return std::nullopt;
    request.fields.emplace_back(line.substr(0, colon), trimmed(line.substr(colon + 1)));
  }
  return request;
}

std::uint64_t stated_body(const AdminRequest& head) {
  std::uint64_t stated = 0;
  for (const auto& [name, value] : head.fields) {
    if (same_name(name, "Transfer-Encoding")) return kUnstated;
    if (!same_name(name, "Content-Length")) continue;
    std::uint64_t length = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), length);
    if (error == std::errc::result_out_of_range) length = kUnstated;
    if (error != std::errc::invalid_argument && end == value.data() + value.size()) {
      stated = std::max(stated, std::min(length, kUnstated - 1));
    }
  }
  return stated;
}

std::string without_body(std::string_view head) {
  std::string kept(take_line(head));
  kept += "\r\n";
  bool left_out = false;
  while (!head.empty()) {
    const std::string_view line = take_line(head);
    if (line.empty()) break;
    // A line that begins with a blank goes with the one before it.
    const bool continues = line.front() == ' ' || line.front() == '\t';
    if (!continues) left_out = speaks_of_body(line.substr(0, line.find(':')));
    if (left_out) continue;
    kept += line;
    kept += "\r\n";
  }
  return kept + "Connection: close\r\n\r\n";
}

}  // namespace encore::net
