#include "base/check.h"

#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>

namespace encore {
namespace {

// Limit of a text.
constexpr std::size_t kShownBytesMax = 512;

thread_local const PanicNote* innermost_note = nullptr;

void write_all(std::string_view text) noexcept {
  while (!text.empty()) {
    const ssize_t written = ::write(STDERR_FILENO, text.data(), text.size());
    if (written <= 0) return;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

void write_number(std::string_view before, int number) noexcept {
  std::array<char, 16> digits{};
  std::snprintf(digits.data(), digits.size(), "%d", number);
  write_all(before);
  write_all(digits.data());
}

// Nothing of a peer's is printed but what can be seen, and nothing that may be secret.
void write_text(std::string_view label, std::string_view text) noexcept {
  const auto is_control = [](char c) { return static_cast<unsigned char>(c) < ' ' || c == 0x7f; };
  std::size_t end = 0;
  while (end < text.size() && text[end] != '?' && !is_control(text[end])) ++end;
  const bool has_query = end < text.size() && text[end] == '?';
  text = text.substr(0, end);
  if (text.empty()) return;
  write_all(label);
  // "http://name:word@host/": who asks is left out.
  if (const std::size_t slashes = text.find("//"); slashes != std::string_view::npos) {
    const std::string_view authority =
        text.substr(slashes + 2, text.find('/', slashes + 2) - (slashes + 2));
    if (const std::size_t at = authority.rfind('@'); at != std::string_view::npos) {
      write_all(text.substr(0, slashes + 2));
      write_all("...");
      text.remove_prefix(slashes + 2 + at);
    }
  }
  write_all(text.substr(0, kShownBytesMax));
  if (has_query || text.size() > kShownBytesMax) write_all(has_query ? "?..." : "...");
}

}  // namespace

PanicNote::PanicNote(const ThreadActivity& activity) noexcept
    : activity_(activity), outer_(innermost_note) {
  innermost_note = this;
}

PanicNote::~PanicNote() { innermost_note = outer_; }

void panic(const char* file, int line, const char* condition, std::string_view message) noexcept {
  write_all("\npanic: ");
  write_all(file);
  write_number(":", line);
  write_all(": ");
  write_all(message);
  write_all("\n  failed: ");
  write_all(condition);
  for (const PanicNote* note = innermost_note; note != nullptr; note = note->outer_) {
    const ThreadActivity& activity = note->activity_;
    write_text("\n  while: ", activity.who);
    write_text(activity.who.empty() ? "\n  while: " : ", at: ", activity.step);
    write_text("\n    request: ", activity.request);
    write_text("\n    key: ", activity.key);
    if (activity.client_port != 0) write_number("\n    client port: ", activity.client_port);
  }
  write_all("\n");
  std::abort();
}

}  // namespace encore
