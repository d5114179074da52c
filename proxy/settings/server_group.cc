#include "proxy/settings/server_group.h"

#include <algorithm>

#include "base/check.h"
#include "filter/hash.h"

namespace encore::server {

void ServerGroup::add(OriginServer server) {
  const auto same = std::ranges::find(servers_, server.url, &OriginServer::url);
  const auto index = static_cast<std::size_t>(same - servers_.begin());
  counters_.push_back(same == servers_.end() ? std::make_shared<ServerCounters>(options_.workers)
                                             : counters_[index]);
  others_.emplace_back();
  servers_.push_back(std::move(server));
  suspect_.push_back(std::make_unique<std::atomic<bool>>(false));
  const MutexLock lock(mutex_);
  states_.push_back({.health = {}, .active = std::make_shared<std::atomic<std::uint32_t>>(0)});
}

void ServerGroup::begin(const ServerGroup* before, Checks checks) {
  std::vector<cache::HashRing::Server> named;
  std::string names;
  for (const OriginServer& server : servers_) {
    named.push_back({.name = server.pool_key, .weight = server.weight});
    names += server.pool_key + " ";
  }
  if (is_hashed()) ring_ = cache::HashRing(named);
  begin_hot(before);
  const MutexLock lock(mutex_);
  turns_ = RoundRobin(servers_.size());
  // The choices are not secret, but differ between two groups.
  random_ = filter::hash_key(filter::HashFamily::kXxh3, filter::Seed{}, names).lo;
  if (before == nullptr) return;
  const MutexLock lock_before(before->mutex_);
  for (std::size_t i = 0; i < servers_.size(); ++i) {
    // By what people and series call it: other TLS settings make it another one to be asked, and
    // the same to be counted.
    const auto counted = std::ranges::find(before->servers_, servers_[i].url, &OriginServer::url);
    if (counted != before->servers_.end()) {
      counters_[i] =
          before->counters_[static_cast<std::size_t>(counted - before->servers_.begin())];
    }
    const auto known =
        std::ranges::find(before->servers_, servers_[i].pool_key, &OriginServer::pool_key);
    if (known == before->servers_.end()) continue;
    const auto index = static_cast<std::size_t>(known - before->servers_.begin());
    states_[i] = before->states_[index];
    if (checks == Checks::kForgotten) states_[i].health.set_down(false, {});
    suspect_[i]->store(!states_[i].health.is_clean(), std::memory_order_relaxed);
  }
}

// A reload forgets no hot key, unless the share is another.
void ServerGroup::begin_hot(const ServerGroup* before) {
  if (options_.balance != config::Balance::kHash || options_.hot_share <= 0) return;
  const MutexLock lock(hot_mutex_);
  hot_.emplace(options_.hot_share);
  if (before == nullptr || before->options_.hot_share != options_.hot_share) return;
  const MutexLock lock_before(before->hot_mutex_);
  if (before->hot_) hot_ = before->hot_;
}

bool ServerGroup::count_hot(std::uint64_t hash) const {
  if (options_.balance != config::Balance::kHash || servers_.size() == 1) return false;
  const MutexLock lock(hot_mutex_);
  return hot_ && hot_->count(hash);
}

void ServerGroup::count_others(const std::function<bool(const OriginServer&)>& has_series,
                               const std::shared_ptr<ServerCounters>& others) {
  for (std::size_t i = 0; i < servers_.size(); ++i) {
    if (!has_series(servers_[i])) others_[i] = others;
  }
}

std::size_t ServerGroup::index_of(const OriginServer& server) const {
  const auto index = static_cast<std::size_t>(&server - servers_.data());
  ENCORE_CHECK(index < servers_.size(), "a server is asked about in its own group");
  return index;
}

ServerLease ServerGroup::lease(std::size_t index) const {
  return {servers_[index], *states_[index].active};
}

bool ServerGroup::is_tried(std::size_t index, std::span<const OriginServer* const> tried) const {
  return std::ranges::find(tried, &servers_[index]) != tried.end();
}

// SplitMix64 (Steele, Lea, Flood 2014).
std::uint64_t ServerGroup::random() const {
  random_ += 0x9e3779b97f4a7c15U;
  std::uint64_t mixed = random_;
  mixed = (mixed ^ (mixed >> 30U)) * 0xbf58476d1ce4e5b9U;
  mixed = (mixed ^ (mixed >> 27U)) * 0x94d049bb133111ebU;
  return mixed ^ (mixed >> 31U);
}

ServerLease ServerGroup::next(MonotonicTime now, const Choice& choice) const {
  const MutexLock lock(mutex_);
  if (servers_.size() == 1 && choice.tried.empty()) return lease(0);
  for (const Rank rank : {Rank::kFirst, Rank::kBackup}) {
    ServerLease found = next_of(rank, now, choice);
    if (found) return found;
  }
  return choice.last_resort ? last_resort(choice) : ServerLease();
}

ServerLease ServerGroup::next_of(Rank rank, MonotonicTime now, const Choice& choice) const {
  std::vector<ServerCandidate> candidates;
  for (std::size_t i = 0; i < servers_.size(); ++i) {
    if (servers_[i].backup != (rank == Rank::kBackup) || is_tried(i, choice.tried)) continue;
    State& state = states_[i];
    if (state.health.is_due(now, choice.trier)) {
      state.health.begin_probe(now);
      return lease(i);
    }
    if (!state.health.is_in_turn()) continue;
    candidates.push_back(
        {.server = i,
         .weight = servers_[i].weight * state.health.share(now, options_.slow_start),
         .active = state.active->load(std::memory_order_relaxed)});
  }
  if (candidates.empty()) return {};
  return lease(candidates[pick(candidates, choice)].server);
}

std::size_t ServerGroup::pick(std::span<const ServerCandidate> candidates,
                              const Choice& choice) const {
  switch (options_.balance) {
    case config::Balance::kLeastRequests:
      return pick_least_requests(candidates, random());
    case config::Balance::kHash:
      if (choice.is_hot) return pick_least_requests(candidates, random());
      return ring_.pick(choice.hash, candidates, cache::HashRing::Load::kBounded);
    case config::Balance::kClient:
      // A client's session is on one server, however busy.
      return ring_.pick(choice.hash, candidates, cache::HashRing::Load::kAny);
    case config::Balance::kRoundRobin:
      break;
  }
  // A second choice takes nobody's turn.
  return turns_.pick(candidates,
                     choice.tried.empty() ? RoundRobin::Turn::kTaken : RoundRobin::Turn::kLeft);
}

// Among the servers that are out: set aside before down, then the one whose time ends first.
ServerLease ServerGroup::last_resort(const Choice& choice) const {
  std::size_t best = servers_.size();
  const auto out_of = [this](std::size_t index) ENCORE_REQUIRES(mutex_) {
    const ServerHealth& health = states_[index].health;
    return std::pair(health.is_down(), health.is_ejected() ? health.until() : MonotonicTime{});
  };
  for (std::size_t i = 0; i < servers_.size(); ++i) {
    if (is_tried(i, choice.tried)) continue;
    if (best == servers_.size() || out_of(i) < out_of(best)) best = i;
  }
  return best == servers_.size() ? ServerLease() : lease(best);
}

bool ServerGroup::note_failure(const OriginServer& server, MonotonicTime now) const {
  const std::size_t index = index_of(server);
  const MutexLock lock(mutex_);
  auto others = ServerHealth::Others::kNone;
  for (std::size_t i = 0; i < servers_.size(); ++i) {
    if (i != index && states_[i].health.is_in_turn()) others = ServerHealth::Others::kAreInTurn;
  }
  // Two proxies that begin alike part ways by the time.
  const std::uint64_t jitter =
      random() ^ static_cast<std::uint64_t>(now.time_since_epoch().count());
  ServerHealth& health = states_[index].health;
  const bool aside = health.fail(now, options_.ejection, jitter, others);
  suspect_[index]->store(!health.is_clean(), std::memory_order_relaxed);
  return aside;
}

bool ServerGroup::note_answer(const OriginServer& server, MonotonicTime now) const {
  const std::size_t index = index_of(server);
  if (!suspect_[index]->load(std::memory_order_relaxed)) return false;
  const MutexLock lock(mutex_);
  suspect_[index]->store(false, std::memory_order_relaxed);
  return states_[index].health.succeed(now);
}

bool ServerGroup::set_down(const OriginServer& server, bool down, MonotonicTime now) const {
  const std::size_t index = index_of(server);
  const MutexLock lock(mutex_);
  ServerHealth& health = states_[index].health;
  const bool news = health.set_down(down, now);
  suspect_[index]->store(!health.is_clean(), std::memory_order_relaxed);
  return news;
}

std::vector<ServerGroup::Seen> ServerGroup::look() const {
  std::vector<Seen> seen;
  const MutexLock lock(mutex_);
  for (const State& state : states_) {
    Seen each{.standing = Standing::kUp, .active = state.active->load(std::memory_order_relaxed)};
    if (state.health.is_ejected()) each.standing = Standing::kAside;
    if (state.health.is_down()) each.standing = Standing::kDown;
    seen.push_back(each);
  }
  return seen;
}

}  // namespace encore::server
