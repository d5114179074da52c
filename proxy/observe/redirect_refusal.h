// Why a redirection of an origin went to the client although its rule follows redirections: the one
// table from which Cache-Status, the log and explanations are written.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace encore::server {

//  enumerator     detail                          in words
#define ENCORE_REDIRECT_REFUSAL(X)                                                              \
  X(kNone, "", "")                                                                              \
  X(kMethod, "redirect-method", "the request has content, is unsafe, or asks for an upgrade")   \
  X(kTooMany, "redirect-too-many", "there were five before it")                                 \
  X(kLocation, "redirect-location", "its Location is no single http or https URL")              \
  X(kForOne, "redirect-for-one", "it is for this client alone")                                 \
  X(kHost, "redirect-host", "its host is another one, and no glob of follow_hosts matches it")  \
  X(kClear, "redirect-in-the-clear", "the client asked by https, and it leads to http")         \
  X(kDenied, "redirect-denied", "a rule answers the target, or the listener's lists refuse it") \
  X(kOrigin, "redirect-other-origin", "it leads to the path of another [[origin]]")             \
  X(kPort, "redirect-port", "[forward] denies its port")                                        \
  X(kOwnListener, "redirect-own-listener", "it leads to a listener of this proxy")              \
  X(kPrivate, "redirect-private-destination", "[forward] denies private destinations")          \
  X(kNotUnicast, "redirect-not-a-destination", "its address is nobody's")

enum class RedirectRefusal : std::uint8_t {
#define ENCORE_ENUMERATOR(id, detail, words) id,
  ENCORE_REDIRECT_REFUSAL(ENCORE_ENUMERATOR)
#undef ENCORE_ENUMERATOR
};

inline constexpr auto kRedirectDetails = std::to_array<std::string_view>({
#define ENCORE_DETAIL(id, detail, words) detail,
    ENCORE_REDIRECT_REFUSAL(ENCORE_DETAIL)
#undef ENCORE_DETAIL
});
inline constexpr auto kRedirectWords = std::to_array<std::string_view>({
#define ENCORE_WORDS(id, detail, words) words,
    ENCORE_REDIRECT_REFUSAL(ENCORE_WORDS)
#undef ENCORE_WORDS
});

// As Cache-Status and the log have it; empty: nothing.
constexpr std::string_view to_string(RedirectRefusal why) {
  return kRedirectDetails.at(static_cast<std::size_t>(why));
}

constexpr std::string_view in_words(RedirectRefusal why) {
  return kRedirectWords.at(static_cast<std::size_t>(why));
}

}  // namespace encore::server
