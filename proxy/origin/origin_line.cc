#include "proxy/origin/origin_line.h"

namespace encore::server {

void OriginLines::Slot::give_back() {
  Server* server = std::exchange(server_, nullptr);
  --server->connections;
  server->lines->note_room(*server);
  server->lines->forget_if_unused(*server);
}

void OriginLines::Slot::note_idle() const {
  if (server_ != nullptr) server_->lines->note_room(*server_);
}

void OriginLines::Waiter::leave_line() {
  Server* server = std::exchange(server_, nullptr);
  server->line.erase(position_);
  --server->lines->waiting_;
  server->lines->forget_if_unused(*server);
}

OriginLines::Server& OriginLines::server_of(std::string_view key) {
  auto found = servers_.find(key);
  if (found == servers_.end()) {
    found = servers_.try_emplace(std::string(key)).first;
    found->second.lines = this;
    found->second.key = &found->first;
  }
  return found->second;
}

void OriginLines::note_room(Server& server) {
  if (server.line.empty() || server.is_ready) return;
  server.is_ready = true;
  ready_.push_back(&server);
  on_room_();
}

void OriginLines::forget_if_unused(const Server& server) {
  if (server.connections != 0 || !server.line.empty() || server.is_ready) return;
  servers_.erase(servers_.find(*server.key));
}

OriginLines::Slot OriginLines::claim(std::string_view key, std::size_t limit) {
  if (limit == 0) return {};
  Server& server = server_of(key);
  if (server.connections >= limit) return {};
  ++server.connections;
  return Slot(server);
}

bool OriginLines::is_awaited(std::string_view key) const {
  if (waiting_ == 0) return false;
  const auto found = servers_.find(key);
  return found != servers_.end() && !found->second.line.empty();
}

bool OriginLines::wait(std::string_view key, Waiter& waiter, std::size_t limit) {
  if (limit == 0) return false;
  Server& server = server_of(key);
  if (server.line.size() >= limit) return false;
  waiter.position_ = server.line.insert(server.line.end(), &waiter);
  waiter.server_ = &server;
  ++waiting_;
  return true;
}

void OriginLines::wake() {
  const auto ready = std::exchange(ready_, {});
  for (Server* server : ready) {
    // It is not forgotten while it is ready, whatever those do whose turn it is.
    while (!server->line.empty()) {
      Waiter& first = *server->line.front();
      first.leave();
      if (first.on_turn_()) continue;
      first.position_ = server->line.insert(server->line.begin(), &first);
      first.server_ = server;
      ++waiting_;
      break;
    }
    server->is_ready = false;
    forget_if_unused(*server);
  }
}

void OriginLines::look_again() {
  for (auto& [key, server] : servers_) note_room(server);
}

}  // namespace encore::server
