#include "proxy/settings/url_keys.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/check.h"
#include "proxy/http/digest_path.h"
#include "proxy/http/uri.h"

namespace encore::server {

namespace {

// A URL as one mode sees it.
struct Keyed {
  http::Target target;
  std::string uri;
  http::KeyText parts;

  std::string_view host() const { return http::host_of(uri, parts); }
  std::string_view path() const {
    const std::string_view path = std::string_view(uri).substr(parts.path);
    return path.substr(0, path.find('?'));
  }
};

Keyed keyed_by(http::Target target, const RequestPolicy& without_rule) {
  if (without_rule.keys.scheme) http::set_scheme(target, *without_rule.keys.scheme);
  Keyed keyed{.target = target, .uri = std::string(http::key_bytes_max(target), '\0'), .parts = {}};
  keyed.parts = http::write_key(target, without_rule.keys, keyed.uri);
  keyed.uri.resize(keyed.parts.bytes);
  return keyed;
}

std::vector<std::string> texts_by(const Keyed& keyed, const std::vector<const Rule*>& rules,
                                  bool is_forward) {
  std::vector<std::string> texts = {keyed.uri};
  for (const Rule* const rule : rules) {
    std::string text(http::key_bytes_max(keyed.target), '\0');
    const RequestPolicy& request_policy = rule->request_policy(is_forward);
    text.resize(http::write_key(keyed.target, request_policy.keys, text).bytes);
    const auto digest = rule->by_digest() ? http::sha256_in_path(keyed.path()) : std::nullopt;
    if (digest) {
      text = std::string(http::kDigestKey) + *digest;
      if (rule->rechecks()) text.append("@").append(keyed.uri.substr(0, keyed.parts.path));
    }
    text += rule->key_suffix();
    texts.push_back(std::move(text));
  }
  std::ranges::sort(texts.begin() + 1, texts.end());
  texts.erase(std::unique(texts.begin(), texts.end()), texts.end());
  return texts;
}

// Views into `url` and `storage`; nothing: it is no URL.
std::optional<http::Target> target_of(std::string_view url, std::string& storage) {
  http::Target target;
  if (!http::resolve_reference(url, {}, storage, target) || target.authority.host.empty()) {
    return std::nullopt;
  }
  return target;
}

}  // namespace

std::vector<std::string> keys_of_url(std::string_view url, std::string_view realm,
                                     const Rules& rules, const RequestPolicy& without_rule,
                                     bool is_forward) {
  std::string storage;
  const auto target = target_of(url, storage);
  if (!target) return {};
  const Keyed keyed = keyed_by(*target, without_rule);
  std::vector<std::string> keys =
      texts_by(keyed, rules.changing_keys(keyed.host(), keyed.path()), is_forward);
  for (std::string& key : keys) key.insert(0, realm);
  return keys;
}

UrlTexts texts_of_url(std::string_view url, const Rules& rules, const RequestPolicy& forward,
                      const RequestPolicy& reverse) {
  std::string storage;
  const auto target = target_of(url, storage);
  if (!target) return {};
  const Keyed there = keyed_by(*target, forward);
  const Keyed here = keyed_by(*target, reverse);
  ENCORE_CHECK(there.host() == here.host() && there.path() == here.path(),
               "modes differ in scheme and query alone");
  const auto changing = rules.changing_keys(here.host(), here.path());
  return {.forward = texts_by(there, changing, true), .reverse = texts_by(here, changing, false)};
}

}  // namespace encore::server
