// The [[rule]]s: which one holds for a request, and what it says. Immutable after construction,
// thread-safe. Why the first that matches holds alone: docs/decisions/0230.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/config.h"
#include "config/network.h"
#include "proxy/http/head_edits.h"
#include "proxy/net/address.h"
#include "proxy/observe/request_counts.h"
#include "proxy/observe/series.h"
#include "proxy/settings/request_policy.h"

namespace encore::server {

// The properties by which rules are chosen. Views, borrowed for the call.
struct RuleQuery {
  std::string_view host;                 // lower case, without port
  std::string_view path;                 // normalised, without query; empty: of CONNECT
  std::string_view method;               // as sent
  std::string_view listener = {};        // as the config names it; empty: not known, any
  const net::Address* client = nullptr;  // null: not known, any
  std::string_view path_as_sent = {};    // before it was normalised; empty: not known
};

// An answer of our own.
struct RuleAnswer {
  int status = 0;
  bool is_refusal = false;
  std::string location = {};  // with its braces
  std::string body = {};
  std::string content_type = {};
};

class Rule {
  enum Trait : std::uint16_t {
    kChangesKey = 1,
    kByDigest = 2,
    kVerifies = 4,
    kRechecks = 8,
    kFollowsRedirects = 16,
    kBypassesCookies = 32,
    kShowsWholeQuery = 64,
    kAllowsPlainHits = 128,
    kRewritesPath = 256,
  };

 public:
  // `number` is its place among all.
  Rule(const config::Rule& rule, std::size_t number, const RequestPolicy& forward,
       const RequestPolicy& reverse);

  const std::string& name() const { return name_; }
  // "rule-NAME", for Cache-Status and people.
  const std::string& detail() const { return detail_; }
  const RequestPolicy& request_policy(bool is_forward) const {
    return is_forward ? forward_ : reverse_;
  }

  // Its key may be another than the URI.
  bool changes_key() const { return has(kChangesKey); }
  // The suffix of the rule's keys, if rules depend on the client: "#ignore=private" for the
  // audience directives that it overrides, "#asks=" and digits for its changes to requests. So its
  // responses are found only by requests for which a rule has the same suffix. Empty: none. Why not
  // a flag of the stored object: docs/decisions/0235.
  const std::string& key_suffix() const { return apart_; }
  // The part of it that is what the rule makes of requests, also where none depends on who asks.
  const std::string& request_change_suffix() const { return asks_; }
  bool by_digest() const { return has(kByDigest); }
  bool verifies() const { return has(kVerifies); }
  bool rechecks() const { return has(kRechecks); }
  bool follows_redirects() const { return has(kFollowsRedirects); }
  // The globs of further hosts that it follows redirections to.
  const std::vector<std::string>& follow_hosts() const { return follow_hosts_; }
  bool bypasses_cookies() const { return has(kBypassesCookies); }
  bool shows_whole_query() const { return has(kShowsWholeQuery); }

  const std::optional<RuleAnswer>& answer() const { return answer_; }
  const http::HeadEdits& request_edits() const { return request_edits_; }
  const http::HeadEdits& response_edits() const { return response_edits_; }
  // Cache-Control for clients of what shared caches may reuse; empty: the origin's.
  const http::HeadEdits& shared_edits() const { return shared_edits_; }
  // A fresh stored response may be sent as it lies, with what response_edits() adds.
  bool allows_plain_hits() const { return has(kAllowsPlainHits); }

  bool rewrites_path() const { return has(kRewritesPath); }
  // The path that the origin is asked for.
  std::string rewritten(std::string_view path) const;

  bool waits_for_content_type() const { return !content_types_.empty(); }
  // Its counters in that worker.
  RuleCounts& counts(std::size_t worker) const { return counts_->of(worker); }

 private:
  friend class Rules;
  bool has(Trait trait) const { return (traits_ & trait) != 0; }
  void set(Trait trait, bool is_so) { traits_ |= is_so ? trait : 0; }
  bool matches_host(std::string_view host) const;
  // All conditions but host, client and content type.
  bool matches_rest(const RuleQuery& query) const;
  bool matches_client(const RuleQuery& query) const;
  // True if a glob that says how a path is written describes this one.
  bool names_form_of(std::string_view path) const;
  bool matches_content_type(std::string_view type) const;
  void apply(const config::Rule& rule, RequestPolicy& request_policy) const;

  std::string name_;
  std::string detail_;
  std::vector<std::string> hosts_;
  std::vector<std::string> paths_;
  std::vector<std::string> methods_;
  std::vector<std::string> listeners_;
  std::vector<std::string> content_types_;
  std::vector<config::Cidr> clients_;
  RequestPolicy forward_;
  RequestPolicy reverse_;
  std::optional<RuleAnswer> answer_;
  http::HeadEdits request_edits_;
  http::HeadEdits response_edits_;
  http::HeadEdits shared_edits_;
  std::string strip_prefix_;
  std::string add_prefix_;
  std::string apart_;
  std::string asks_;
  std::vector<std::pair<std::string, std::string>> replacements_;
  std::shared_ptr<PerWorker<RuleCounts>> counts_;
  unsigned traits_ = 0;
  std::vector<std::string> follow_hosts_;
};

class Rules {
 public:
  Rules() = default;
  // The treatments are those without a rule. The counts of rules that stay continue from `before`;
  // null: there are none.
  Rules(const std::vector<config::Rule>& rules, const RequestPolicy& forward,
        const RequestPolicy& reverse, const SeriesBounds& bounds = {},
        const Rules* before = nullptr);

  bool empty() const { return rules_.empty(); }
  std::size_t size() const { return rules_.size(); }
  const Rule& operator[](std::size_t index) const { return *rules_[index]; }

  struct Found {
    const Rule* rule = nullptr;  // null: none
    bool by_client = false;      // another client might find another one
    // Another reading of its path (path_readings.h) leads to another one: the request is refused.
    bool is_ambiguous = false;
    std::uint64_t waiting = 0;  // which rules in front of it wait for the content type
  };
  // Returns the first rule for a request that does not wait for its response. If one of its globs
  // itself states how the path is written (names_its_form()), other readings count as long as none
  // of them is refused, or has dot segments.
  Found find(const RuleQuery& query) const;
  // The first of all, once the media type is known (without parameters, in any case).
  const Rule* find(const RuleQuery& query, std::string_view content_type) const;
  // True if some client, at some listener, that may request `asked` would get a rule's own
  // response, or a refusal, for `query`. Listener and client are unknown in both.
  bool may_answer(const RuleQuery& query, const RuleQuery& asked) const;
  bool wait_for_content_types() const { return wait_for_content_types_; }
  const SeriesTable<RuleCounts>& series() const { return series_; }
  // Those whose keys may be other than URIs and that hold for this host and path for some client,
  // method or listener.
  std::vector<const Rule*> changing_keys(std::string_view host, std::string_view path) const;

 private:
  Found find_as_it_stands(const RuleQuery& query) const;
  enum class Answers : std::uint8_t { kAll, kRefusals };
  bool may_answer_as_it_stands(const RuleQuery& query, const RuleQuery& asked,
                               Answers answers) const;
  const std::vector<std::uint32_t>& candidates(std::string_view host, bool& is_known) const;

  SeriesTable<RuleCounts> series_;  // by name
  std::vector<std::unique_ptr<const Rule>> rules_;
  // By hosts that rules name in full: those that may hold for them, in order.
  std::map<std::string, std::vector<std::uint32_t>, std::less<>> by_host_;
  std::vector<std::uint32_t> of_other_hosts_;
  bool wait_for_content_types_ = false;
  bool refuse_any_ = false;  // some requests
  bool has_paths_ = false;   // some rule is for some paths alone
};

// The media type of a Content-Type in lower case, without parameters.
std::string media_type(std::string_view content_type);

// {host}, {path} and {query} of a redirection filled in.
std::string filled_in(std::string_view location, std::string_view host, std::string_view path,
                      std::string_view query);

}  // namespace encore::server
