// The cache keys of a URL, for those who have nothing but that: purges, invalidations. Pure,
// thread-safe.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "proxy/settings/request_policy.h"
#include "proxy/settings/rules.h"

namespace encore::server {

// All keys under which one realm may keep what answers for the URL: that of the treatment without a
// rule first, then those of the rules that make other keys of it. Empty where it is no URL.
std::vector<std::string> keys_of_url(std::string_view url, std::string_view realm,
                                     const Rules& rules, const RequestPolicy& without_rule,
                                     bool is_forward);

// The same without a realm, as forward listeners and as reverse ones have them; the rules are
// matched once for both.
struct UrlTexts {
  std::vector<std::string> forward;
  std::vector<std::string> reverse;
};
UrlTexts texts_of_url(std::string_view url, const Rules& rules, const RequestPolicy& forward,
                      const RequestPolicy& reverse);

}  // namespace encore::server
