// The [[rule]]s of a round, out of its seed, and what follows from one by docs/RULES.md and
// docs/CONFIG.md alone: nothing of it is read off the proxy. Immutable once drawn.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tests/fuzz/proxy/message.h"
#include "tests/fuzz/proxy/random.h"

namespace encore::proxyfuzz {

// The facts that rules are chosen by.
struct RuleQuery {
  std::string_view path;  // normalised, without query
  std::string_view method;
  std::string_view client;  // its address
  int listener = 0;
};

// Behind it stand the digits of a digest in a path.
inline constexpr std::string_view kDigest = "/sha256:";

struct Rule {
  // True for a text that is the same, or begins with or ends in the text next to the only '*' of a
  // glob.
  static bool is_match(std::string_view glob, std::string_view text);
  bool holds_for(const RuleQuery& query) const;

  std::string name;
  std::vector<std::string> paths;  // globs; none, here and below: any
  std::vector<std::string> methods;
  std::string clients;  // "127.0.0.2" or "10.0.0.0/8"
  int listener = -1;
  std::string content_type;  // it waits for the response then; empty: any, and it does not

  bool is_cached = true;
  std::string admission;
  std::optional<std::int64_t> size_threshold;  // with the admission of that name
  std::optional<std::int64_t> fresh, fresh_min, fresh_max, swr, sie, max_object;
  struct Negative {
    int first = 0;
    int last = 0;
    std::int64_t seconds = 0;
  };
  std::vector<Negative> negative;
  std::vector<std::string> ignored;
  std::optional<bool> collapse;
  std::optional<bool> heuristic_with_cookie;

  std::string cookies;    // "", "bypass", "ignore" or "key:..."
  std::string key_query;  // "", "none", "only:..." or "except:..."
  bool origin_query = false;
  std::string key_field;

  bool by_digest = false;  // and verifies what it keys so
  bool rechecks = false;
  bool follows = false;
  std::string follow_hosts;  // a glob

  std::string strip_prefix, add_prefix, replaced, replacement;
  Fields request_set, request_add, response_set, response_add;
  std::vector<std::string> request_remove, response_remove;

  int deny = 0;
  std::string redirect;
  int redirect_status = 0;
  int static_status = 0;
  std::string static_body;

  // True if a redirection to another host is followed.
  bool follows_to(std::string_view host) const { return follows && is_match(follow_hosts, host); }
  bool waits() const { return !content_type.empty(); }
  // True if a body of so many bytes may be stored by its `admission`.
  bool admits(std::uint64_t bytes) const;
  bool answers() const { return deny != 0 || redirect_status != 0 || static_status != 0; }
  bool ignores(std::string_view what) const;
  // True if a line of an answer comes from it.
  bool says(const Field& line) const;
  // True if it removes the lines of a name.
  bool takes(std::string_view name) const;
  bool edits_answers() const { return !response_set.empty() || !response_remove.empty(); }
  // True if the content at the path is one object with all that has its SHA-256.
  bool keys_by_digest(std::string_view path) const {
    return by_digest && path.find(kDigest) != std::string_view::npos;
  }
  // "a=1&b=2" as it tells objects apart, and as the origin sees it.
  std::string key_of(std::string_view query) const;
  std::string sent_query(std::string_view query) const {
    return origin_query ? std::string(query) : key_of(query);
  }
  // Returns the part of a Cookie that goes on, sorted; nothing: no Cookie does.
  std::optional<std::string> sent_cookie(std::string_view cookie) const;
  // Nothing is looked up for it, nor stored of its answer.
  bool is_uncached(bool has_cookie) const {
    return !is_cached || (cookies == "bypass" && has_cookie);
  }
  bool keys_by_cookie() const { return cookies.starts_with("key:"); }
  // Changes X-Lang to the value that is sent on.
  void edit_lang(std::optional<std::string>& lang) const;
  std::string sent_path(std::string_view path) const;
  // How the origin is asked, other than without the rule.
  std::string asks() const;
  std::string location(std::string_view host, std::string_view path, std::string_view query) const;
};

class RuleTable {
 public:
  RuleTable() = default;
  // `listeners`: how many there are that rules may be for.
  static RuleTable draw(Random& random, int listeners = 2);
  bool empty() const { return rules_.empty(); }
  // The first that holds, of those that do not wait for the response; null: none.
  const Rule* find(const RuleQuery& query) const;
  // The first of all, by which a response of that media type is stored.
  const Rule* find(const RuleQuery& query, std::string_view content_type) const;
  // The part of a path and a query that tells objects of a URL apart, and whose they are, under
  // that rule; null: none.
  std::string object_of(const Rule* rule, std::string_view path, std::string_view query) const;
  // Returns the names under which answers for a URL may be stored, for all clients.
  std::vector<std::string> keys_of(std::string_view path, std::string_view query) const;
  // As the configuration has them. `listeners` are their addresses.
  std::string text(const std::vector<std::string>& listeners) const;

 private:
  std::vector<const Rule*> all_of(std::string_view path) const;
  // True if clients may have different rules for the same URL.
  bool depends_on_who_asks() const;
  std::vector<Rule> rules_;
};

// The pairs of a Cookie in one order.
std::string sorted_cookie(std::string_view cookie);

}  // namespace encore::proxyfuzz
