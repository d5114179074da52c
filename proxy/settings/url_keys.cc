#include "proxy/settings/url_keys.h"

#include <algorithm>

#include "proxy/http/digest_path.h"
#include "proxy/http/uri.h"

namespace encore::server {

std::vector<std::string> keys_of_url(std::string_view url, std::string_view realm,
                                     const Rules& rules, const Treatment& without_rule,
                                     bool is_forward) {
  std::string storage;
  http::Target target;
  if (!http::resolve_reference(url, {}, storage, target) || target.authority.host.empty()) {
    return {};
  }
  if (without_rule.keys.scheme) http::set_scheme(target, *without_rule.keys.scheme);
  std::string uri(http::key_bytes_max(target), '\0');
  const http::KeyText parts = http::write_key(target, without_rule.keys, uri);
  uri.resize(parts.bytes);
  std::vector<std::string> keys = {std::string(realm) + uri};
  const std::string_view path = std::string_view(uri).substr(parts.path);
  for (const Rule* const rule :
       rules.changing_keys(http::host_of(uri, parts), path.substr(0, path.find('?')))) {
    std::string text(http::key_bytes_max(target), '\0');
    const Treatment& treatment = rule->treatment(is_forward);
    text.resize(http::write_key(target, treatment.keys, text).bytes);
    const auto digest =
        rule->by_digest() ? http::sha256_in_path(path.substr(0, path.find('?'))) : std::nullopt;
    if (digest) {
      text = std::string(http::kDigestKey) + *digest;
      if (rule->rechecks()) text.append("@").append(uri.substr(0, parts.path));
    }
    text += rule->apart();
    keys.push_back(std::string(realm) + text);
  }
  std::ranges::sort(keys.begin() + 1, keys.end());
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  return keys;
}

}  // namespace encore::server
