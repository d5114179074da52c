// The server that a link asks, and its next step when an attempt has failed before an answer began
// (upstream.retries, upstream.set_aside).

#include <algorithm>

#include "base/check.h"
#include "proxy/observe/log.h"
#include "proxy/observe/request_steps.h"
#include "proxy/origin/origin_link.h"

namespace encore::server {
namespace {

ServerFailure kind_of(OriginLink::AttemptFailure failure) {
  using AttemptFailure = OriginLink::AttemptFailure;
  switch (failure) {
    case AttemptFailure::kNotConnected:
      return ServerFailure::kConnect;
    case AttemptFailure::kConnectTimeout:
      return ServerFailure::kConnectTimeout;
    case AttemptFailure::kClosed:
    case AttemptFailure::kReset:
    case AttemptFailure::kRefused:
      return ServerFailure::kClosed;
    case AttemptFailure::kSilent:
      return ServerFailure::kSilent;
    case AttemptFailure::kBusy:
    case AttemptFailure::kShare:
      return ServerFailure::kBusy;
  }
  return ServerFailure::kClosed;
}

// The same server may be asked once more.
bool is_worth_another(OriginLink::AttemptFailure failure) {
  using AttemptFailure = OriginLink::AttemptFailure;
  return failure == AttemptFailure::kClosed || failure == AttemptFailure::kReset ||
         failure == AttemptFailure::kRefused;
}

ServerTally tally_of(const OriginServices& services, const RequestContext& request,
                     const OriginServer& server) {
  return request.route->group().tally(server, services.stats.number);
}

}  // namespace

OriginLink::Progress OriginLink::reconnect() {
  ENCORE_CHECK(is_open(), "what is open is replaced");
  OriginQueues::Share share = std::move(share_);
  OriginQueues::Slot slot = std::move(slot_);
  release(Fate::kDrop);
  share_ = std::move(share);
  slot_ = std::move(slot);
  need_ = Need::kNew;
  return acquire_here();
}

std::optional<OriginLink::Progress> OriginLink::try_again(const Attempt& attempt) {
  ENCORE_CHECK(is_open(), "an attempt is made on an open connection");
  if (OriginHttp2Stream* const http2 = stream().http2();
      http2 != nullptr && attempt.failure == AttemptFailure::kSilent) {
    http2->distrust_silence();
  }
  if (!move_on(attempt)) return std::nullopt;
  services_.stats.origin_retries.add();
  return reconnect();
}

// Decides whether and where to go on. Slot and share go with the server that they are of.
bool OriginLink::move_on(const Attempt& attempt) {
  const AttemptFailure failure = attempt.failure;
  const bool connected = is_open();
  // A kept connection that is closed says nothing of its server, and neither does one that takes
  // no more requests.
  const bool was_kept =
      failure == AttemptFailure::kRefused ||
      (failure == AttemptFailure::kClosed && connected && std::get<Open>(state_).reused);
  if (!was_kept) note_failure(attempt);
  if (connected && !attempt.repeatable) return false;
  // To be refused costs no attempt: nothing was sent, and no time has passed. Each server can
  // refuse but once. Why other failures cost one: docs/decisions/0070.
  const bool counts = failure != AttemptFailure::kNotConnected;
  if (counts && retries_ >= request_.runtime->config.upstream.retries) return false;
  const OriginServer* before = server_;
  const bool other_server = choose_other_server(failure, was_kept);
  ENCORE_CHECK(other_server == (server_ != before), "another server is another one");
  if (!other_server) {
    const bool same_server =
        is_worth_another(failure) || (failure == AttemptFailure::kSilent && other_address_);
    if (!same_server) return false;
  }
  if (before != nullptr) tally_of(services_, request_, *before).add(&ServerCounts::retries);
  if (counts) ++retries_;
  if (other_server) {
    slot_.reset();
    share_.reset();
  }
  return true;
}

void OriginLink::note_failure(const Attempt& attempt) {
  const bool connected = is_open();
  if (connected && !attempt.answered) tried_addresses_.push_back(stream().peer());
  if (request_.runtime->follows_requests) [[unlikely]] {
    log_step(request_.request_id, {"origin: ", host(), ": ", attempt.why});
  }
  if (server_ == nullptr) {
    if (!attempt.answered) warn(std::string(attempt.why));
    return;
  }
  const ServerTally counted = tally();
  counted.add_failure(attempt.kind.value_or(kind_of(attempt.failure)));
  counted.note_failure(attempt.why, services_.loop.wall_now());
  const bool aside =
      !attempt.answered && request_.route->group().note_failure(*server_, services_.loop.now());
  if (aside) services_.stats.origins_set_aside.add();
  const std::string why(attempt.why);
  if (aside || !connected) warn(aside ? why + "; it is ejected" : why);
}

ServerTally OriginLink::tally() const {
  return server_ == nullptr ? ServerTally() : tally_of(services_, request_, *server_);
}

void OriginLink::note_answer() {
  if (server_ == nullptr || !request_.route->group().note_answer(*server_, services_.loop.now())) {
    return;
  }
  log::info("origin {}: responds again", server_->url);
}

ServerLease OriginLink::next_server(LastResort last_resort) const {
  const ServerGroup& group = request_.route->group();
  const bool can_go_on =
      http::is_idempotent(request_.head.method) && request_.framing.kind == http::BodyKind::kNone;
  return group.next(services_.loop.now(),
                    {.tried = tried_,
                     .hash = place_,
                     .is_hot = is_hot_,
                     .trier = can_go_on ? ServerHealth::ProbeFailover::kCanGoOn
                                        : ServerHealth::ProbeFailover::kCannot,
                     .last_resort = last_resort == LastResort::kYes});
}

// Another server of the origin, if there is one that was not tried. If the present one may be asked
// again, too, it is only left for one that nothing is known against; once it was asked again, for
// any.
bool OriginLink::choose_other_server(AttemptFailure failure, bool was_kept) {
  if (server_ == nullptr) return false;
  const bool again = std::ranges::find(tried_, server_) != tried_.end();
  tried_.push_back(server_);
  const bool untried = failure == AttemptFailure::kBusy || failure == AttemptFailure::kShare;
  const bool same_will_do = (is_worth_another(failure) && !again) || untried;
  ServerLease next = next_server(same_will_do ? LastResort::kNo : LastResort::kYes);
  if (was_kept) tried_.pop_back();
  if (!next) return false;
  choose_server(std::move(next));
  tried_addresses_.clear();
  if (failure != AttemptFailure::kShare) services_.stats.origin_failovers.add();
  return true;
}

// Addresses that gave no answer come last.
void OriginLink::prefer_untried(std::vector<net::Address>& addresses) {
  const auto tried = std::ranges::stable_partition(addresses, [&](const net::Address& address) {
    return std::ranges::find(tried_addresses_, address) == tried_addresses_.end();
  });
  other_address_ = addresses.size() - tried.size() > 1;
}

}  // namespace encore::server
