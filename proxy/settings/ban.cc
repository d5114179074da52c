#include "proxy/settings/ban.h"

#include <re2/re2.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "proxy/http/tags.h"
#include "proxy/http/uri.h"
#include "proxy/settings/router.h"

namespace encore::server {
namespace {

// Memory limit of one compiled expression.
constexpr std::int64_t kPatternMemoryBytes = 256 << 10;
// Bans of disks that are kept compiled; of more, which are few, all are compiled again.
constexpr std::size_t kSavedBansMax = 128;

bool is_meta(char c) { return std::string_view(R"(\^$.|?*+()[]{})").contains(c); }

// The text that a pattern stands for from its beginning: "^" and letters, and nothing behind them
// or ".*". Nothing where it is another pattern. `whole`: it ends in "$".
struct Literal {
  std::string text;
  bool whole = false;
};
std::optional<Literal> literal_of(std::string_view pattern) {
  if (!pattern.starts_with('^')) return std::nullopt;
  pattern.remove_prefix(1);
  Literal literal;
  if (pattern.ends_with('$') && !pattern.ends_with("\\$")) {
    literal.whole = true;
    pattern.remove_suffix(1);
  } else if (pattern.ends_with(".*") && !pattern.ends_with("\\.*")) {
    pattern.remove_suffix(2);
  }
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    char c = pattern[i];
    if (c == '\\') {
      if (++i == pattern.size()) return std::nullopt;
      c = pattern[i];
      if (!is_meta(c) && std::string_view("-/:_%~&=#").find(c) == std::string_view::npos) {
        return std::nullopt;  // "\d"
      }
    } else if (is_meta(c)) {
      return std::nullopt;
    }
    literal.text += c;
  }
  return literal;
}

// The URL as keys have it behind their realm; empty where it is none.
std::string normalised(std::string_view url) {
  std::string storage;
  http::Target target;
  if (!http::resolve_reference(url, {}, storage, target) || target.authority.host.empty()) {
    return {};
  }
  std::string key(http::key_bytes_max(target), '\0');
  key.resize(http::write_key(target, {}, key).bytes);
  return key;
}

std::vector<std::string> prefixes_of(const BanOrder& order) {
  std::vector<std::string> prefixes;
  if (order.host.empty() && order.url.empty() && order.content_type.empty() && order.tags.empty()) {
    prefixes.emplace_back();  // everything
    return prefixes;
  }
  const auto host = literal_of(order.host);
  const auto path = literal_of(order.url.empty() ? "^/" : order.url);
  if (!host || !host->whole || !path || path->whole || !path->text.starts_with('/') ||
      !order.content_type.empty() || !order.tags.empty()) {
    return prefixes;
  }
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (!order.forward && scheme != "http://") continue;  // kReverseScheme
    std::string prefix = normalised(std::string(scheme) + host->text + path->text);
    if (prefix.empty()) return {};
    prefixes.push_back(std::move(prefix));
  }
  return prefixes;
}

bool found_in(const std::optional<re2::RE2>& pattern, std::string_view text) {
  return !pattern || re2::RE2::PartialMatch(re2::StringPiece(text.data(), text.size()), *pattern);
}

}  // namespace

struct Ban::Patterns {
  std::optional<re2::RE2> host;
  std::optional<re2::RE2> url;
  std::optional<re2::RE2> content_type;
};

Ban::Ban(BanOrder order) : order_(std::move(order)), prefixes_(prefixes_of(order_)) {}
Ban::Ban(Ban&&) noexcept = default;
Ban& Ban::operator=(Ban&&) noexcept = default;
Ban::~Ban() = default;

Result<Ban> Ban::create(BanOrder order) {
  Ban ban(std::move(order));
  auto patterns = std::make_unique<Patterns>();
  re2::RE2::Options options;
  options.set_log_errors(false);
  options.set_max_mem(kPatternMemoryBytes);
  options.set_encoding(re2::RE2::Options::EncodingLatin1);
  options.set_never_capture(true);
  const auto compile = [&](const std::string& text, std::optional<re2::RE2>& into) {
    if (text.empty()) return true;
    into.emplace(text, options);
    return into->ok();
  };
  const bool good = compile(ban.order_.host, patterns->host) &&
                    compile(ban.order_.url, patterns->url) &&
                    compile(ban.order_.content_type, patterns->content_type);
  if (!good) return fail("bad-pattern");
  ban.patterns_ = std::move(patterns);
  return ban;
}

bool Ban::holds(std::string_view key, std::string_view content_type, std::string_view tags) const {
  if (key.size() < kRealmBytes || key.starts_with(kForwardRealm) != order_.forward) return false;
  key.remove_prefix(kRealmBytes);
  // The part of the key that a rule adds is no part of the URL (Rule::apart()).
  key = key.substr(0, key.find('#'));
  const auto tagged = [tags](const std::string& tag) { return http::has_tag(tags, tag); };
  if (!order_.tags.empty() && !std::ranges::any_of(order_.tags, tagged)) return false;
  const std::size_t begin = std::min(key.find("://"), key.size());
  const std::string_view behind = key.substr(std::min(begin + 3, key.size()));
  const std::size_t slash = std::min(behind.find('/'), behind.size());
  return found_in(patterns_->host, behind.substr(0, slash)) &&
         found_in(patterns_->url, behind.substr(slash)) &&
         found_in(patterns_->content_type, content_type);
}

// "forward", host, URL, content type and tags, each with a line feed: no field has one in it.
std::string Ban::saved() const {
  std::string text = order_.forward ? "forward\n" : "reverse\n";
  for (const std::string* each : {&order_.host, &order_.url, &order_.content_type}) {
    text += *each + '\n';
  }
  for (const std::string& tag : order_.tags) text += tag + '\n';
  return text;
}

Result<Ban> Ban::load(std::string_view saved) {
  std::vector<std::string> lines;
  while (!saved.empty()) {
    const std::size_t end = saved.find('\n');
    if (end == std::string_view::npos) return fail("no line feed at its end");
    lines.emplace_back(saved.substr(0, end));
    saved.remove_prefix(end + 1);
  }
  constexpr std::size_t kLinesMin = 4;
  if (lines.size() < kLinesMin || (lines[0] != "forward" && lines[0] != "reverse")) {
    return fail("no ban");
  }
  return create({.forward = lines[0] == "forward",
                 .host = std::move(lines[1]),
                 .url = std::move(lines[2]),
                 .content_type = std::move(lines[3]),
                 .tags = {lines.begin() + kLinesMin, lines.end()}});
}

bool SavedBans::hold(std::string_view saved, std::string_view key, std::string_view content_type,
                     std::string_view tags) {
  std::shared_ptr<const Ban> ban;
  {
    const MutexLock lock(mutex_);
    const auto found = bans_.find(saved);
    if (found != bans_.end()) {
      ban = found->second;
    } else {
      auto loaded = Ban::load(saved);
      if (loaded) ban = std::make_shared<const Ban>(std::move(*loaded));
      if (bans_.size() >= kSavedBansMax) bans_.clear();
      bans_.emplace(saved, ban);
    }
  }
  return ban == nullptr || ban->holds(key, content_type, tags);
}

bool Ban::is_plain() const {
  if (!prefixes_.empty()) return true;
  return !order_.tags.empty() && order_.host.empty() && order_.url.empty() &&
         order_.content_type.empty();
}

}  // namespace encore::server
