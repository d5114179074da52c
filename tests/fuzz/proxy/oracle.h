// Judges what a client got against what is true. Each rule stands next to the clause that it comes
// from. If timing leaves a doubt, the rule is on the proxy's side. A request's start is taken
// before its first byte was written, a response's time before its first byte was sent; anything
// within the world's slack of a bound is let pass.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "tests/fuzz/proxy/message.h"
#include "tests/fuzz/proxy/world.h"

namespace encore::proxyfuzz {

// State of an answer that a client has so far.
struct Answer {
  int status = 0;
  Head head;
  std::string raw;  // the head's bytes, for reports
  BodyReader body;
  double head_at = 0;
  std::uint64_t content_bytes = 0;
  // Start of the content within its representation; set by judge_head.
  const Content* content = nullptr;
  const Event* event = nullptr;
  std::uint64_t offset = 0;
  std::uint64_t expected = 0;  // content bytes, where content is known
  bool multipart = false;
  bool own = false;  // made by the proxy
  std::string kept;  // a multipart's body, or the beginning of one of the proxy's own
};

enum class Ending : std::uint8_t { kComplete, kClosed, kReset, kLeft };  // kLeft: by the client

class Oracle {
 public:
  explicit Oracle(World& world) : world_(world) {}

  // Origins speak HTTP/2, whose names of fields are in lower case.
  bool has_lower_names = false;

  void judge_interim(const Request& request, const Head& head);
  // Sets what the body must be. False where the answer makes no sense, so that it ends here.
  bool judge_head(const Request& request, Answer& answer);
  bool judge_content(const Request& request, Answer& answer, std::string_view bytes);
  // True if one more answer may be missing: the proxy has cut so many readers for their memory.
  bool may_be_cut();
  // True for at most as many connections as the proxy has revoked.
  bool may_be_revoked() { return ++unanswered_ <= world_.connections_revoked; }
  void judge_end(const Request& request, Answer& answer, Ending ending);

 private:
  // One answer under judgement.
  struct Case {
    const Request& request;
    Answer& answer;
    // True if the response was made for this very request.
    bool direct() const { return answer.event->request.get() == &request; }
    // The rule that it was stored by; null: none.
    const Rule* maker() const {
      return answer.event->request == nullptr ? nullptr : answer.event->rule;
    }
    // True if that overrides it.
    bool ignores(std::string_view what) const {
      return maker() != nullptr && maker()->ignores(what);
    }
  };
  void judge_own(const Case& at);
  bool is_not_tried_again(const Case& at, double since) const;
  bool judge_own_by_rule(const Case& at);
  void judge_own_end(const Case& at);
  void judge_edits(const Case& at);
  void judge_listener(const Case& at);
  // The request's object is that of a digest, which the event's URL has as well.
  static bool shares_digest(const Case& at);
  // Its content is not what the digest of the request's URL says, by which it is an object.
  static bool is_wrong(const Case& at);
  // It may have met such.
  bool may_be_wrong(const Case& at) const;
  void judge_digest(const Case& at);
  void judge_permission(const Case& at);
  static bool is_asked_otherwise(const Case& at);
  void judge_key(const Case& at);
  void judge_limits(const Case& at);
  // How stale an answer is, and what its request has met at the origin.
  struct Staleness {
    double lifetime = 0;
    double beyond = 0;
    bool met_error = false;
    bool met_failure = false;
  };
  // A rule may have said how long it is fresh, whatever its origin says.
  bool says_lifetime(const Case& at) const;
  bool is_guess_barred(const Case& at, const Fields& fields) const;
  double lifetime_by_origin(const Case& at, const Directives& merged) const;
  bool is_staleness_allowed(const Case& at, const Directives& merged,
                            const Staleness& staleness) const;
  // True: it is a rule's, so that it counts from when the response came.
  bool apply_lifetime(const Case& at, double& lifetime) const;
  void judge_status(const Case& at);
  void judge_condition(const Case& at);
  void judge_fields(const Case& at);
  void judge_location(const Case& at, const Field& field);
  void judge_cookies(const Case& at);
  void judge_reuse(const Case& at);
  void judge_storing(const Case& at, const Directives& merged);
  void judge_selection(const Case& at);
  void judge_freshness(const Case& at, const Directives& merged);
  void judge_age(const Case& at);
  void note_gone(const Case& at);
  void judge_trailers(const Case& at);
  void set_bounds(const Case& at);
  void judge_parts(const Case& at);
  void count_outcome(const Case& at);
  // The network or the system has failed the proxy since.
  bool had_trouble(double since) const {
    return world_.last_trouble >= since || world_.spoiled != 0 || world_.last_spoiled >= since;
  }
  void fault(const Case& at, std::string_view kind, const std::string& what);

  World& world_;
  std::uint64_t lost_ = 0;        // answers that did not end, for no reason that we know
  std::uint64_t unanswered_ = 0;  // requests behind the response of a revoked connection
};

}  // namespace encore::proxyfuzz
