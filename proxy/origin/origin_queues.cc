#include "proxy/origin/origin_queues.h"

#include <algorithm>

#include "base/check.h"

namespace encore::server {

void OriginQueues::Slot::give_back() {
  Server* server = std::exchange(server_, nullptr);
  ENCORE_CHECK(server->connections != 0, "a slot that is given back was counted");
  --server->connections;
  server->lines->note_room(*server);
  server->lines->forget_if_unused(*server);
}

void OriginQueues::Slot::note_idle() const {
  if (server_ != nullptr) server_->lines->note_room(*server_);
}

void OriginQueues::Share::give_back() {
  Client& client = *std::exchange(client_, nullptr);
  Server& server = *client.server;
  ENCORE_CHECK(client.shares != 0 && server.shares != 0, "a share that is given back was counted");
  --client.shares;
  --server.shares;
  server.lines->queue_or_not(client);
  server.lines->note_room(server);
  server.lines->forget_if_unused(server);
}

void OriginQueues::Waiter::leave() {
  if (ousted_ != nullptr) {
    std::exchange(ousted_, nullptr)->ousted_.erase(position_);
    return;
  }
  if (client_ == nullptr) return;
  Client& client = *client_;
  Server& server = *client.server;
  server.lines->take_from_line(*this);
  server.lines->queue_or_not(client);
  server.lines->forget_if_unused(server);
}

OriginQueues::Server& OriginQueues::server_of(std::string_view key) {
  if (last_ != nullptr && *last_->key == key) return *last_;
  auto found = servers_.find(key);
  if (found == servers_.end()) {
    found = servers_.try_emplace(std::string(key)).first;
    found->second.lines = this;
    found->second.key = &found->first;
  }
  last_ = &found->second;
  return found->second;
}

// Records of clients that have nothing any more stay for their next request, as far as there is
// room for them.
OriginQueues::Client& OriginQueues::client_of(Server& server, const Party& party) {
  const auto found = server.clients.find(party);
  if (found != server.clients.end()) return found->second;
  if (server.clients.size() >= server.clients_kept) drop_unused_clients(server);
  return server.clients.try_emplace(party, server, party).first->second;
}

void OriginQueues::drop_unused_clients(Server& server) {
  std::erase_if(server.clients, [](const auto& entry) {
    const Client& client = entry.second;
    return client.shares == 0 && client.line.empty() && client.turn == Turn::kNone;
  });
  // Twice what is in use: so all of it is seldom checked.
  server.clients_kept = std::max(kClientsKept, 2 * server.clients.size());
}

bool OriginQueues::has_share_left(const Client& client) const {
  return client.party.is_many || client.shares < limits_.per_client;
}

// Puts it among the turns, or takes it from there, as is right for it now.
void OriginQueues::queue_or_not(Client& client) {
  if (client.turn == Turn::kNow) return;  // give_turns() sees to it
  std::list<Client*>& turns = client.server->turns;
  const bool wanted = !client.line.empty() && has_share_left(client);
  if (wanted == (client.turn == Turn::kQueued)) return;
  if (wanted) {
    client.place = turns.insert(turns.end(), &client);
    client.turn = Turn::kQueued;
  } else {
    turns.erase(client.place);
    client.turn = Turn::kNone;
  }
}

void OriginQueues::note_room(Server& server) {
  if (server.turns.empty() || server.is_ready) return;
  server.is_ready = true;
  ready_.push_back(&server);
  on_room_();
}

void OriginQueues::look_again(std::string_view key) {
  const auto found = servers_.find(key);
  if (found != servers_.end()) note_room(found->second);
}

void OriginQueues::forget_if_unused(const Server& server) {
  if (server.connections != 0 || server.shares != 0 || server.waiting != 0 || server.is_ready) {
    return;
  }
  if (last_ == &server) last_ = nullptr;
  servers_.erase(servers_.find(*server.key));
}

OriginQueues::Share OriginQueues::enter(std::string_view key, const Party& party) {
  Server& server = server_of(key);
  Client& client = client_of(server, party);
  if (!has_share_left(client)) return {};
  ++client.shares;
  ++server.shares;
  queue_or_not(client);
  return Share(client);
}

bool OriginQueues::has_share_left(std::string_view key, const Party& party) const {
  const auto server = servers_.find(key);
  if (server == servers_.end()) return true;
  const auto client = server->second.clients.find(party);
  return client == server->second.clients.end() || has_share_left(client->second);
}

OriginQueues::Slot OriginQueues::claim(std::string_view key) {
  if (limits_.connections == 0) return {};
  Server& server = server_of(key);
  if (server.connections >= limits_.connections) return {};
  ++server.connections;
  return Slot(server);
}

bool OriginQueues::must_wait(std::string_view key, const Party& party) const {
  if (waiting_ == 0) return false;
  const auto found = servers_.find(key);
  if (found == servers_.end()) return false;
  const Server& server = found->second;
  if (!server.turns.empty()) return true;
  const auto client = server.clients.find(party);
  return client != server.clients.end() && !client->second.line.empty();
}

void OriginQueues::add_to_line(Client& client, Waiter& waiter, std::list<Waiter*>::iterator where) {
  Server& server = *client.server;
  server.lengths.erase({client.line.size(), client.party});
  waiter.position_ = client.line.insert(where, &waiter);
  server.lengths.emplace(client.line.size(), client.party);
  waiter.client_ = &client;
  ++server.waiting;
  ++waiting_;
}

void OriginQueues::take_from_line(Waiter& waiter) {
  Client& client = *std::exchange(waiter.client_, nullptr);
  Server& server = *client.server;
  server.lengths.erase({client.line.size(), client.party});
  client.line.erase(waiter.position_);
  if (!client.line.empty()) server.lengths.emplace(client.line.size(), client.party);
  ENCORE_CHECK(server.waiting != 0 && waiting_ >= server.waiting, "who leaves a line stood in it");
  --server.waiting;
  --waiting_;
}

bool OriginQueues::wait(std::string_view key, const Party& party, Waiter& waiter) {
  ENCORE_CHECK(!waiter.is_waiting() && waiter.ousted_ == nullptr, "nobody stands in two lines");
  if (limits_.waiting == 0) return false;
  Client& client = client_of(server_of(key), party);
  if (client.server->waiting >= limits_.waiting && !oust_for(client)) return false;
  add_to_line(client, waiter, client.line.end());
  queue_or_not(client);
  return true;
}

// Removes the last request of the client that fills the line; else the next client's would be
// refused instead. Moving a place to a client that has but one fewer would change nothing.
bool OriginQueues::oust_for(Client& client) {
  Server& server = *client.server;
  if (server.lengths.empty()) return false;
  const auto& [length, party] = *server.lengths.rbegin();
  if (length < client.line.size() + 2) return false;
  Client& longest = server.clients.find(party)->second;
  Waiter& last = *longest.line.back();
  take_from_line(last);
  last.ousted_ = this;
  last.position_ = ousted_.insert(ousted_.end(), &last);
  on_room_();
  return true;
}

void OriginQueues::tell_ousted() {
  while (!ousted_.empty()) {
    Waiter& waiter = *ousted_.front();
    waiter.leave();
    waiter.owner_.on_ousted();
  }
}

void OriginQueues::wake() {
  tell_ousted();
  const auto ready = std::exchange(ready_, {});
  for (Server* server : ready) {
    // It is not forgotten while it is ready, whatever those do whose turn it is.
    give_turns(*server);
    server->is_ready = false;
    forget_if_unused(*server);
  }
}

void OriginQueues::give_turns(Server& server) {
  while (!server.turns.empty()) {
    Client& client = *server.turns.front();
    server.turns.pop_front();
    client.turn = Turn::kNow;
    Waiter& first = *client.line.front();
    take_from_line(first);
    // It has left its line by now, for what it does calls back into this class.
    const bool taken = first.owner_.on_turn();
    if (!taken) add_to_line(client, first, client.line.begin());
    client.turn = Turn::kNone;
    if (taken) {
      queue_or_not(client);
      continue;
    }
    client.place = server.turns.insert(server.turns.begin(), &client);
    client.turn = Turn::kQueued;
    break;
  }
}

std::size_t OriginQueues::clients_known(std::string_view key) const {
  const auto found = servers_.find(key);
  return found == servers_.end() ? 0 : found->second.clients.size();
}

void OriginQueues::use(const Limits& limits) {
  limits_ = limits;
  for (auto& [key, server] : servers_) {
    for (auto& [party, client] : server.clients) queue_or_not(client);
    note_room(server);
  }
}

}  // namespace encore::server
