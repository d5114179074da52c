#include "proxy/exchange/steps.h"

#include <algorithm>

namespace encore::server {
namespace {

constexpr bool is_in_order() {
  for (std::size_t i = 0; i < kSteps.size(); ++i) {
    if (static_cast<std::size_t>(kSteps[i].step) != i) return false;
  }
  return true;
}
static_assert(is_in_order());

void append_padded(std::string_view text, std::size_t width, std::string& out) {
  out += text;
  out.append(width - std::min(width, text.size()), ' ');
}

}  // namespace

std::string draw_steps() {
  std::size_t name_width = 0;
  std::size_t what_width = 0;
  for (const StepRow& row : kSteps) {
    name_width = std::max(name_width, row.name.size());
    what_width = std::max(what_width, row.what.size());
  }
  std::string out;
  for (const StepRow& row : kSteps) {
    append_padded(row.name, name_width + 2, out);
    std::string next;
    for (const StepRow& other : kSteps) {
      if (!row.next.has(other.step)) continue;
      next += next.empty() ? "-> " : " | ";
      next += other.name;
    }
    if (next.empty()) {
      out += row.what;
    } else {
      append_padded(row.what, what_width + 2, out);
      out += next;
    }
    out += '\n';
  }
  return out;
}

}  // namespace encore::server
