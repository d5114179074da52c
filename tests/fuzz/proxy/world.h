// The truth: the URLs with their characters, each content and each response that the origin made,
// each request that a client sent, and what happened to a URL lately. The origin writes it, the
// clients write and read it, and the oracle judges answers by it. All in one thread and on one
// clock, so that "before" means before.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tests/fuzz/proxy/content.h"
#include "tests/fuzz/proxy/message.h"
#include "tests/fuzz/proxy/random.h"
#include "tests/fuzz/proxy/rules.h"

namespace encore::proxyfuzz {

constexpr int kUsers = 12;

// The fields of a request by which the origin's variants are chosen, as the origin gets them.
// `encodings` is what of br, gzip and zstd is accepted: other spellings of the same set mean the
// same (RFC 9111 4.1).
struct Selecting {
  std::optional<std::string> cookie;
  std::optional<std::string> lang;
  std::string encodings;
  bool operator==(const Selecting&) const = default;
};

// The user of a request by its own Cookie or Authorization; -1 without.
int user_of(const Fields& request);
Selecting selecting_of(const Fields& request);

// True if a and b agree in the field `name` of a Vary.
bool same_selecting(const Selecting& a, const Selecting& b, std::string_view name);

struct Url;

struct Request {
  std::uint64_t tag = 0;
  int user = -1;  // the asking one
  std::string method;
  Url* url = nullptr;
  std::string own_path;        // path of what the proxy publishes itself; empty: it is the origin's
  std::string query;           // the target's, without its '?'
  std::string object;          // part of it that tells objects of the URL apart
  std::string spelling;        // the target's path, if another than the URL's
  std::string client;          // its address, as far as the proxy can know it; empty: of no concern
  std::string named_client;    // and as it says itself, or whom it trusts; empty: nothing
  int listener = 0;            // which of the proxy's it came to
  bool from_second = false;    // by a connection from 127.0.0.2
  bool is_refused = false;     // by the lists of its listener
  const Rule* rule = nullptr;  // the one that holds for it; null: none
  std::size_t rules_before = 0;       // how many tables of rules there were before its own
  std::optional<std::string> tenant;  // its X-Tenant
  bool http10 = false;
  std::int32_t stream = 0;  // HTTP/2's number; 0: it is HTTP/1's
  Fields fields;
  Selecting selecting;
  Directives directives;
  bool authorized = false;
  bool no_cache = false;  // with Pragma's
  std::string range;
  std::string if_range;
  bool conditional = false;
  std::int64_t modified_since = 0;  // its If-Modified-Since, which counts; 0: none does
  bool takes_trailers = false;
  std::size_t body_bytes = 0;
  Fields trailers;          // behind a body without a length
  double started = 0;       // just before its first byte was written
  double not_before = 0;    // earlier answers of the origin were invalidated before `started`
  double stale_before = 0;  // and made stale by a soft purge
  double ended = 0;
  // A whole response has ended.
  double whole = std::numeric_limits<double>::infinity();
  // The target of a redirection by the origin, with paths of its own.
  struct Offer {
    std::string path;
    std::string host;  // empty: the same
    int number = 1;    // redirections until there
    bool states_lifetime = false;
  };
  std::vector<Offer> offers;
  int asked_origin = 0;      // how often the origin saw it
  bool met_failure = false;  // a server has failed it, or might have
  int dropped_kept = 0;      // times that a kept connection was closed under it
  std::string answer;        // for the history
  std::string batch;         // and what was sent together with it
};

// Field lines, whatever the case of their names, as 64-bit hashes: there are many, in one table
// with open addressing.
class Lines {
 public:
  void add(const Field& field);
  bool contains(const Field& field) const {
    return !slots_.empty() && slots_[place_of(hash_of(field))] != kNone;
  }

 private:
  static constexpr std::uint64_t kNone = 0;
  static std::uint64_t hash_of(const Field& field) noexcept;
  // Returns the place where it is, or would be. REQUIRES: slots.
  std::size_t place_of(std::uint64_t hash) const noexcept;
  void grow();
  std::vector<std::uint64_t> slots_;  // a power of two of them, at most half of them taken
  std::size_t taken_ = 0;
};

// One representation (RFC 9110 3.2) of a URL.
struct Content {
  std::uint64_t number = 0;
  ContentName name;  // its bytes
  const Url* url = nullptr;
  std::uint32_t bytes = 0;
  std::string etag;                // empty: none
  std::int64_t last_modified = 0;  // 0: none. No two contents of a URL have the same.
  double made = 0;
  Selecting selecting;  // from the request that it was made for
  Lines lines;          // every field and trailer line ever sent with it
  // How often its body was sent, and how often not whole or without trailers.
  int sent = 0;
  int sent_without_trailers = 0;
  // To requests without a Cookie, as the origin got them, with any of its bytes.
  int sent_without_cookie = 0;
  // The largest `max_object` of the rules that any of its bytes were sent for, and whether one was
  // without such, or there was none.
  std::uint64_t object_max = 0;
  bool has_configured_max = false;
  // This request's validation of it was answered with what was not kept, and its client has that:
  // what was whole before the request is gone. Null: there was none.
  std::shared_ptr<const Request> gone;
  double gone_since = 0;
  bool has_validator() const noexcept { return !etag.empty() || last_modified != 0; }
};

// A limit of the configuration, which reloads change.
class Limit {
 public:
  void note(double time, std::uint64_t value) { values_.emplace_back(time, value); }
  // The largest of these that were in force at that time or since; `otherwise` without any.
  std::uint64_t most_since(double time, std::uint64_t otherwise) const;

 private:
  std::vector<std::pair<double, std::uint64_t>> values_;
};

// One response of the origin.
struct Event {
  std::uint64_t serial = 0;
  Url* url = nullptr;
  std::shared_ptr<Request> request;  // the one whose tag it carried
  std::string method;
  double received = 0;  // the request had arrived
  double decided = 0;   // the head was about to be sent, with the state of that moment
  int status = 0;
  const Rule* rule = nullptr;  // by which it is stored, with its media type; null: none
  Content* content = nullptr;  // also what a 304 confirms, or a HEAD speaks of
  Fields fields;               // as sent
  Fields trailers;
  Directives directives;
  std::int64_t age = 0;          // the Age it carried
  Content* validated = nullptr;  // by the proxy's own condition: null without one
  bool is_update = false;        // 304, or the response to a HEAD: it changes heads, not bodies
  bool cut = false;              // its end never came
  bool is_foreign = false;       // another host than the one that was asked said it
  bool withheld = false;         // it is no-store, whatever the character says
  // The proxy has read the whole of it, as far as that shows.
  double heard = std::numeric_limits<double>::infinity();
  double first_hit = std::numeric_limits<double>::infinity();  // it came out of the cache
};

// The content at a path has become another, as far as the proxy can have noticed.
struct Change {
  const Url& url;
  std::string_view path;
  double since = 0;          // it noticed it at that time or later
  std::uint64_t serial = 0;  // the response with it; 0: none
  bool certain = false;      // and has noticed it by now
};

// How the origin treats one URL: drawn from the seed when the URL is made.
struct Character {
  std::string cache_control;
  std::string expires;  // empty: none; "+": a little in the future
  bool pragma = false;  // no-cache, which bars a guess of freshness and means nothing else
  int etag = 0;         // 0 none, 1 strong, 2 weak
  bool last_modified = false;
  std::vector<std::string> vary;
  bool personal = false;
  double set_cookie = 0;  // percent, as all below
  double age = 0;
  double secret_field = 0;  // X-Foo, which private="x-foo" and no-cache="x-foo" name
  int framing = 0;          // 0 length, 1 chunked, 2 until the close, 3 mixed
  std::uint32_t size_max = 0;
  double trailers = 0;
  double slow_head = 0;
  double slow_body = 0;
  double drop = 0;   // the connection ends before an answer
  double cut = 0;    // and in the middle of one
  double error = 0;  // 500, 503
  double missing = 0;
  double interim = 0;
  double change = 0;          // another version
  double change_of_mind = 0;  // another Cache-Control or Vary
  bool not_modified = true;   // conditions are honoured
  bool thin_304 = false;      // a 304 with nothing but what must be there
  bool ranges = true;
  double withhold = 0;  // another version, which nobody may keep
  std::string content_type;
  double redirect = 0;
  double wrong = 0;      // for paths with a digest: another body
  bool guarded = false;  // some users are refused, and who does not say who he is
};

struct Url {
  std::string path;
  std::uint64_t number = 0;
  Character character;
  Random random{0};
  std::uint32_t version = 0;
  std::int64_t birth = 0;  // Last-Modified counts from here
  std::int64_t contents = 0;
  std::map<std::string, Content*> current;  // variant -> content of this version
  // Fields of HEADs without a validator, by the length that they stated: by it alone each of them
  // may have updated a stored response of that length, one after the other (RFC 9111 4.3.5).
  std::unordered_map<std::uint32_t, Lines> lines_by_length;
  double last_error = -1e9;  // the origin answered 5xx last
  double last_drop = -1e9;   // or not at all
  double last_cut = -1e9;    // or not to the end
  // Since when what answers for one of its objects counts: what was purged or written to.
  struct Bounds {
    double not_before = 0;
    double stale_before = 0;
  };
  std::map<std::string, Bounds, std::less<>> bounds;
  Bounds all_bounds;  // bounds for all its objects, purged by another name than its own
  std::string tag;    // its responses are purged by it together with others'; empty: it has none
  // The rules let some response to it into the cache; what comes later may take its place there.
  bool may_be_admitted = false;
  int clients = 0;  // requests in progress
  int requests_left = 0;
  double alone_until = 0;  // nobody begins to ask for it before
  // The content whose digest its path names; null: none. Others may have the same bytes.
  Content* blob = nullptr;
  bool has_blob_of(const Url& other) const {
    return blob != nullptr && other.blob != nullptr && blob->name.number == other.blob->name.number;
  }
  // The part of its content that an origin has sent last to who has asked for one.
  struct Part {
    std::uint64_t first = 0;
    std::uint64_t last = 0;
  };
  std::optional<Part> last_part;
  // When the origin said yes to a HEAD, by who asked for what.
  std::map<std::string, double, std::less<>> allowed;
  // Parts that go when the URL goes.
  std::vector<std::uint64_t> serials, contents_made, tags;
  std::deque<std::function<std::string()>> history;
};

struct Finding {
  std::string kind;
  std::string text;
};

class World {
 public:
  // Conduct of origins, apart from answering well and in time.
  enum class Origins : std::uint8_t { kReliable, kFailing };
  World(std::uint64_t seed, bool reverse, std::size_t urls, Origins origins = Origins::kFailing);

  Random& random() noexcept { return random_; }
  std::uint64_t seed() const noexcept { return seed_; }
  bool is_reverse() const noexcept { return reverse_; }
  // The one that everybody wants just now, or another.
  Url& pick_url(Random& random);
  // This is what everybody wants for the next requests.
  void focus_on(const Url& url);
  // Nobody asks for it for so many seconds, unless who comes back to it.
  static void leave_alone(Url& url, double seconds);
  // One that is worth a write to it; null: any is. Empty: there is none such.
  std::function<Url*(Random& random)> pick_to_write;
  // Some of the next requests are for it.
  void come_back_to(const Url& url);
  // The body of a response to a GET of it is sent in pieces until then.
  void note_slow_body(Url& url, double until) { slow_bodies_.emplace_back(until, &url); }
  // One whose body is being sent so; null: there is none.
  Url* pick_slow(Random& random);
  // The first for which it holds, from any on; null: none.
  Url* find_active(Random& random, const std::function<bool(Url&)>& holds);
  Url* find_url(std::string_view path) const;
  Content& make_content(Url& url, const Selecting& selecting, int user, std::uint32_t bytes);
  Event& make_event(Url& url);
  const Event* event(std::uint64_t serial) const;
  const Content* content(std::uint64_t number) const;
  Content* find_content(std::uint64_t number);
  std::shared_ptr<Request> make_request(Url& url);
  std::shared_ptr<Request> request(std::uint64_t tag) const;
  void remember(Url& url, std::function<std::string()> happening);
  // Stands for the proxy's own paths.
  Url& own() noexcept { return own_; }
  void note_change(const Change& change) const {
    if (on_change) on_change(change);
  }
  // The proxy has read all of that response.
  void note_heard(std::uint64_t serial);
  void note_hit(const Request& request, std::uint64_t serial, double head_at);

  // Stored responses for a URL, as its clients ask for it, are gone, or `soft`: stale, from that
  // time on.
  void invalidate(Url& url, std::string_view query, double time, bool soft) const;
  // The same for all objects of each URL that `holds`. Returns those.
  std::vector<Url*> invalidate_where(const std::function<bool(const Url&)>& holds, double time,
                                     bool soft);

  RuleTable rules;
  // Tables that were in force before: what was stored by them stays.
  std::deque<RuleTable> earlier_rules;
  // No request is in progress.
  void replace_rules(RuleTable by) {
    earlier_rules.push_back(std::exchange(rules, std::move(by)));
    answered.tables.insert(earlier_rules.size());
    count("reloads: other rules");
  }
  // Identifies the client and the part of a URL, as the origin is asked whether he may have it.
  std::string asker_of(const Request& request) const;
  // True if origins are informed of its client.
  bool is_told(const Request& request) const { return reverse_ || request.listener == 1; }
  // By which a response to that request is stored; null: none.
  const Rule* storing_rule(const Request& request, std::string_view content_type) const;
  std::string host;  // that of all URLs, where it matters
  // The origin's under another name; empty: it has none.
  std::string other_host;
  // Requests that listener 1 refuses.
  std::string denied_path;                   // a glob; empty: nothing
  std::vector<std::string> allowed_methods;  // none: all are allowed
  // True if the servers of the origin come and go; then none of them ends a connection otherwise.
  bool has_servers = false;
  // One of them failed a request last.
  double last_failure = -1e9;

  // Seconds between two readings of our clocks that the proxy may have seen in another order.
  double slack = 0.3;
  // How many seconds what the origin did may be on its way to the proxy.
  double way = 0;
  // The largest object that may be stored, and the seconds for which the configuration allows what
  // has been fresh to be stale.
  Limit object_max, stale_while_revalidate, stale_if_error;
  // 1 where it is allowed.
  Limit heuristic_with_cookie;
  // Connections on which an origin has sent more than its answer, and which are open still; and
  // when the last one was closed. A request that crosses such bytes fails.
  std::size_t spoiled = 0;
  double last_spoiled = -1e9;
  // Percent of the answers of one URL in five.
  double surplus = 0;
  // An origin sent another body than the digest in its path says.
  double last_wrong = -1e9;
  // And each piece of what is sent, from a turn of the sender's to one of the receiver's.
  double piece = 0;
  // The network, or the system under the proxy, has failed it towards an origin last.
  double last_trouble = -1e9;
  // Or some connection, whichever it is with, was lost to it in the network.
  double last_break = -1e9;
  // The proxy was ending last: what reached it then may go unanswered.
  double last_ending = -1e9;
  // Answers that clients have in full, to requests sent since then: by rule, and under which tables
  // of rules, with those that have held since.
  struct Answered {
    std::map<std::string, std::uint64_t, std::less<>> by_rule;
    std::set<std::size_t> tables;
  };
  Answered answered;
  bool strips_tags = false;  // clients get none
  // The path of the last URL with a tag of which a part was sent without, for the proxy itself to
  // complete what it has; empty: none since somebody has looked.
  std::string untagged_part;
  // It has been ending since then; infinity: it is not.
  double ending_since = std::numeric_limits<double>::infinity();
  // Percent of the connections of origins with TLS that end within their handshake, and for how
  // many seconds behind that requests may fail: their servers are passed by, others waited for.
  double broken_handshakes = 0;
  double passed_by = 0;
  // How many answers it has cut because their clients were slow to take them, as far as it tells.
  std::uint64_t readers_cut = 0;
  // Asks a proxy that does not tell of itself for that number; empty: it tells.
  std::function<std::uint64_t()> ask_readers_cut;
  // Connections that it has revoked after a reload, as far as it counts them.
  std::uint64_t connections_revoked = 0;
  // By how many seconds its wall clock has been wrong at most.
  double clock_error = 0;
  // The wall clock was set back by so many seconds. To the next proxy, which has no other clock in
  // common with an earlier one, saved responses are younger by that.
  void note_set_back(double time, double seconds) { set_back_.emplace_back(time, seconds); }
  // By how many seconds the proxy may take what the origin said at that time for too young.
  double understated_since(double time) const;

  using Counters = std::map<std::string, std::uint64_t, std::less<>>;
  void count(std::string_view what, std::uint64_t by = 1) {
    const auto found = counters_.find(what);
    if (found != counters_.end()) {
      found->second += by;
    } else {
      counters_.emplace(what, by);
    }
  }
  const Counters& counters() const noexcept { return counters_; }

  // Tells a finding; the first one ends the run.
  void report(std::string_view kind, std::string_view what, const Request* request,
              std::string_view answer);
  std::function<void(const Finding&)> on_finding;
  std::function<void(const Change&)> on_change;
  // A client has the answer to a request that invalidates what was asked for before that time.
  std::function<void(const Url&, double time)> on_written;
  // An origin has ended the connection under a request.
  std::function<void(const Request&)> on_origin_gone;
  // Called if an object in the cache at `first_hit` still was there when the request was looked up.
  std::function<void(const Request&, double first_hit)> on_hit;

 private:
  void make_url(std::size_t slot);
  void make_blob(Url& url);
  void retire();

  std::uint64_t seed_;
  bool reverse_;
  Origins origins_;
  Random random_;
  std::vector<std::unique_ptr<Url>> active_;
  std::deque<std::pair<double, std::unique_ptr<Url>>> retired_;
  std::vector<std::unique_ptr<Url>> blobs_gone_;  // under another URL it may still be asked for
  const Url* last_blob_ = nullptr;
  std::map<std::string, Url*, std::less<>> by_path_;
  Url own_;
  std::size_t focus_ = 0;
  int focus_left_ = 0;
  std::vector<std::string> comes_back_;              // their paths
  std::deque<std::pair<double, Url*>> slow_bodies_;  // a URL is kept for longer
  std::uint64_t urls_made_ = 0;
  // By their numbers, which count from 1; null: gone with its URL.
  std::vector<std::unique_ptr<Event>> events_;
  std::vector<std::unique_ptr<Content>> contents_;
  std::vector<std::shared_ptr<Request>> requests_;
  Counters counters_;
  std::vector<std::pair<double, double>> set_back_;  // when, and by how many seconds
};

Character random_character(Random& random);
// Another Cache-Control for a URL that changes its mind.
std::string random_cache_control(Random& random);

}  // namespace encore::proxyfuzz
