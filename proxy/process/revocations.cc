#include "proxy/process/revocations.h"

#include <utility>

namespace encore::server {

Revocations::Revocations(net::Loop& loop, std::function<ClientConnection*()> connections)
    : loop_(loop), connections_(std::move(connections)), timer_(loop, [this] { end_all(); }) {}

// Reloads in quick succession put nothing off: the earliest end holds for all that is left.
void Revocations::look(Nanoseconds drain) {
  bool is_left = false;
  for (ClientConnection* connection = connections_(); connection != nullptr;) {
    ClientConnection* following = connection->next;  // the look may retire this one
    is_left |= connection->revoke();
    connection = following;
  }
  const MonotonicTime until = loop_.now() + drain;
  if (is_left && timer_.is_running() && ends_ <= until) return;
  timer_.cancel();
  if (!is_left) return;
  if (drain.count() == 0) return end_all();
  ends_ = until;
  timer_.start(drain);
}

void Revocations::end_all() {
  for (ClientConnection* connection = connections_(); connection != nullptr;) {
    ClientConnection* following = connection->next;
    if (connection->is_revoked()) {
      connection->cut_revoked({.outcome = Outcome::kDenied, .detail = "revoked"});
    }
    connection = following;
  }
}

}  // namespace encore::server
