// The texts of what objects vary by, as the disk tier numbers them: names of fields in lower case,
// sorted, each once, with commas between them. Pure functions, thread-safe.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>

namespace encore::cache {

// Names that responses usually vary by. The owner of an origin can use up the numbers with invented
// names; each combination of the usual ones has a number reserved for it (kUsualTexts). Why no
// number is taken back: docs/decisions/0418.
inline constexpr std::array<std::string_view, 11> kUsualNames = {"accept",
                                                                 "accept-encoding",
                                                                 "accept-language",
                                                                 "access-control-request-headers",
                                                                 "access-control-request-method",
                                                                 "authorization",
                                                                 "cookie",
                                                                 "origin",
                                                                 "user-agent",
                                                                 "x-forwarded-proto",
                                                                 "x-requested-with"};
inline constexpr std::uint32_t kUsualTexts = (1U << kUsualNames.size()) - 1;

// True for kUsualTexts texts and no others.
constexpr bool is_usual(std::string_view text) noexcept {
  const auto* next = kUsualNames.begin();
  while (true) {
    const auto comma = text.find(',');
    // In their order: no text is there in two forms.
    next = std::find(next, kUsualNames.end(), text.substr(0, comma));
    if (next == kUsualNames.end()) return false;
    if (comma == std::string_view::npos) return true;
    ++next;
    text.remove_prefix(comma + 1);
  }
}

}  // namespace encore::cache
