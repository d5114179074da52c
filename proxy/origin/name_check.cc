#include "proxy/origin/name_check.h"

#include <string>
#include <utility>

namespace encore::server {

NameCheck::NameCheck(net::Loop& loop, net::Resolver& resolver,
                     std::shared_ptr<const RequestContext> to, OnDone on_done)
    : to_(std::move(to)), begun_(loop.now()), on_done_(std::move(on_done)) {
  const std::string name = name_to_check(*to_).value_or("");
  query_ = resolver.resolve(
      {.host = name, .port = to_->target.port(), .client = to_->client},
      [this](std::expected<net::Resolved, net::ResolveFailure> result) {
        if (!result) return give_up();
        const RedirectRefusal why = check_addresses(*to_, std::move(result->addresses));
        finish({.to = why == RedirectRefusal::kNone ? to_ : nullptr, .why = why});
      });
}

void NameCheck::check_time(MonotonicTime now) {
  const Nanoseconds limit = to_->runtime->config.timeouts.dns;
  if (limit.count() != 0 && now - begun_ >= limit) give_up();
}

// This may be gone when the call returns.
void NameCheck::finish(Redirection redirection) {
  OnDone on_done = std::move(on_done_);
  on_done(std::move(redirection));
}

}  // namespace encore::server
