// Where a fetch goes when an attempt has failed before an answer began (upstream.retries,
// upstream.set_aside).
#include <algorithm>

#include "proxy/server/fetch.h"
#include "proxy/server/worker.h"

namespace encore::server {

// RFC 9110 9.2.2: what has begun to be answered, or may have had an effect, is not sent again.
bool Fetch::may_repeat() const {
  if (got_bytes_ || upload_started_) return false;
  return request_sent_ == 0 || http::is_idempotent(request_->head.method);
}

// Tries another server, another address or another connection, whichever there is. False where the
// request may not be sent again, or there is nowhere left to go.
bool Fetch::try_again(AttemptFailure failure, const std::string& why) {
  const bool connected = failure == AttemptFailure::kClosed || failure == AttemptFailure::kSilent;
  // A kept connection that is closed says nothing of its server.
  const bool stale = failure == AttemptFailure::kClosed && reused_;
  if (!stale) note_failure(connected, why);
  if (connected && !may_repeat()) return false;
  // To be refused costs no attempt: nothing was sent, and no time has passed. Each server can
  // refuse but once.
  const bool counts = failure != AttemptFailure::kNotConnected;
  if (counts && retries_ >= request_->runtime->config.upstream.retries) return false;
  const bool other_server = choose_other_server(failure, stale);
  if (!other_server) {
    const bool same_server = failure == AttemptFailure::kClosed ||
                             (failure == AttemptFailure::kSilent && other_address_);
    if (!same_server) return false;
  }
  if (counts) ++retries_;
  if (connected) worker_.stats().origin_retries.add();
  query_.reset();
  connector_.reset();
  if (other_server) slot_.reset();
  reconnect();
  return true;
}

void Fetch::note_failure(bool connected, const std::string& why) {
  if (connected && !got_bytes_) tried_addresses_.push_back(stream_->peer());
  if (server_ == nullptr) return;
  const bool aside = !got_bytes_ && request_->route->group().set_aside(
                                        *server_, worker_.loop().now(),
                                        request_->runtime->config.upstream.set_aside);
  if (aside) worker_.stats().origins_set_aside.add();
  if (aside || !connected) warn(aside ? why + "; it is set aside" : why);
}

// Another server of the origin, if there is one that was not tried. Where the present one may be
// asked again, too, it is only left for one that nothing is known against.
bool Fetch::choose_other_server(AttemptFailure failure, bool stale) {
  if (server_ == nullptr) return false;
  tried_.push_back(server_);
  const OriginServer* next = request_->route->group().next(
      worker_.loop().now(),
      {.tried = tried_,
       .rest = request_->runtime->config.upstream.set_aside,
       .last_resort = failure != AttemptFailure::kClosed && failure != AttemptFailure::kBusy});
  if (stale) tried_.pop_back();
  if (next == nullptr) return false;
  choose_server(*next);
  tried_addresses_.clear();
  worker_.stats().origin_failovers.add();
  return true;
}

// Addresses that gave no answer come last.
void Fetch::prefer_untried(std::vector<net::Address>& addresses) {
  const auto tried = std::ranges::stable_partition(addresses, [&](const net::Address& address) {
    return std::ranges::find(tried_addresses_, address) == tried_addresses_.end();
  });
  other_address_ = addresses.size() - tried.size() > 1;
}

}  // namespace encore::server
