#include "proxy/http/head_edits.h"

#include <algorithm>

#include "proxy/http/head_text.h"

namespace encore::http {

void HeadEdits::set(std::string_view name, std::string_view value) {
  remove(name);
  add(name, value);
}

void HeadEdits::add(std::string_view name, std::string_view value) {
  append_field(name, value, lines_);
}

void HeadEdits::remove(std::string_view name) {
  std::string lower(name);
  std::ranges::transform(lower, lower.begin(), to_lower);
  left_out_.push_back(std::move(lower));
}

bool HeadEdits::leaves_out(std::string_view name) const noexcept {
  return std::ranges::any_of(
      left_out_, [name](const std::string& lower) { return equals_lower(name, lower); });
}

void HeadEdits::apply(std::string& head) const {
  if (!left_out_.empty()) {
    std::string kept;
    kept.reserve(head.size());
    std::string_view rest = head;
    bool first = true;
    while (!rest.empty()) {
      const std::size_t end = std::min(rest.find("\r\n"), rest.size() - 2) + 2;
      const std::string_view line = rest.substr(0, end);
      rest.remove_prefix(end);
      if (first || !leaves_out(line.substr(0, line.find(':')))) kept += line;
      first = false;
    }
    head = std::move(kept);
  }
  head += lines_;
}

}  // namespace encore::http
