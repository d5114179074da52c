#include "proxy/process/graceful_drain.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "proxy/client/client_connection.h"

namespace encore::server {
namespace {

// Idle connections are closed in so many parts.
constexpr int kLooks = 50;

}  // namespace

GracefulDrain::GracefulDrain(Parts parts, const DrainPlan& plan)
    : parts_(std::move(parts)),
      looks_left_(kLooks),
      closing_(parts_.loop,
               [this, idle = plan.gentle->idle] {
                 if (looks_left_ == kLooks) return begin_closing(idle);
                 close_some();
               }),
      limit_(parts_.loop, [this, plan] { cut_requests(plan.gentle->tunnels - plan.limit); }),
      tunnels_(parts_.loop, [this] { parts_.end(); }) {
  if (plan.gentle->idle.count() != 0) {
    closing_.start(plan.gentle->idle);
  } else {
    looks_left_ = 0;
  }
  if (plan.limit.count() != 0) limit_.start(plan.limit);
}

void GracefulDrain::begin() {
  for (ClientConnection* each = parts_.connections(); each != nullptr;) {
    ClientConnection* const following = each->next;
    if (closes_untold()) {
      each->drain();
    } else {
      each->announce_drain();
    }
    each = following;
  }
}

void GracefulDrain::begin_closing(Nanoseconds time) {
  closing_.start_periodic(std::max<Nanoseconds>(time / kLooks, std::chrono::milliseconds(1)));
  close_some();
}

// With the last look all that is idle goes, and later ones go immediately.
void GracefulDrain::close_some() {
  std::vector<ClientConnection*> idle;
  for (ClientConnection* each = parts_.connections(); each != nullptr; each = each->next) {
    if (each->may_be_given_up() && !each->stream().has_unread()) idle.push_back(each);
  }
  const std::size_t share = (idle.size() + static_cast<std::size_t>(looks_left_) - 1) /
                            static_cast<std::size_t>(looks_left_);
  // Before they are closed: those that are left untold are, too, with the last look.
  if (--looks_left_ == 0) closing_.cancel();
  for (std::size_t i = 0; i < share && i < idle.size(); ++i) idle[i]->drain();
}

void GracefulDrain::cut_requests(Nanoseconds tunnels) {
  for (ClientConnection* each = parts_.connections(); each != nullptr;) {
    ClientConnection* const following = each->next;
    if (!each->is_tunnel()) each->cut();
    each = following;
  }
  parts_.cut_fetches();
  if (tunnels.count() > 0) {
    tunnels_.start(tunnels);
  } else {
    parts_.end();
  }
}

}  // namespace encore::server
