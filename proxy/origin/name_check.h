// NameCheck: looks up the name that a redirection leads to, before it is followed. Confined to its
// worker.
#pragma once

#include <expected>
#include <functional>
#include <memory>

#include "base/time.h"
#include "proxy/net/loop.h"
#include "proxy/net/resolver.h"
#include "proxy/origin/redirection.h"
#include "proxy/request/request_context.h"

namespace encore::server {

class NameCheck {
 public:
  // With the request, where it may be followed; else why not. Comes from the loop, or from within
  // the functions below, and may destroy this.
  using OnDone = std::move_only_function<void(Redirection)>;

  // REQUIRES: name_to_check(*to).
  NameCheck(net::Loop& loop, net::Resolver& resolver, std::shared_ptr<const RequestContext> to,
            OnDone on_done);
  NameCheck(const NameCheck&) = delete;
  NameCheck& operator=(const NameCheck&) = delete;

  // For a sweep: what has taken too long goes on as after give_up().
  void check_time(MonotonicTime now);
  // It is followed without an answer: the one that connects checks the addresses, and says why
  // there are none.
  void give_up() { finish({.to = to_, .why = RedirectRefusal::kNone}); }

 private:
  void finish(Redirection redirection);

  const std::shared_ptr<const RequestContext> to_;
  const MonotonicTime begun_;
  OnDone on_done_;
  std::unique_ptr<net::Resolver::Query> query_;
};

}  // namespace encore::server
