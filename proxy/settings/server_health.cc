#include "proxy/settings/server_health.h"

#include <algorithm>

namespace encore::server {
namespace {

constexpr std::uint32_t kWhole = 100;
constexpr std::uint32_t kFirstShare = 10;

}  // namespace

Nanoseconds back_off(const EjectionPolicy& policy, std::uint32_t times, std::uint64_t random) {
  Nanoseconds rest = policy.rest;
  for (std::uint32_t i = 0; i < times && rest < policy.rest_max; ++i) {
    rest = std::min(2 * rest, policy.rest_max);
  }
  const std::uint64_t tenth = static_cast<std::uint64_t>(rest.count()) / 10;
  return rest + Nanoseconds(static_cast<std::int64_t>(random % (tenth + 1)));
}

bool ServerHealth::is_due(MonotonicTime now, ProbeFailover trier) const {
  if (down_ || !is_ejected()) return false;
  return now >= (trier == ProbeFailover::kCanGoOn ? until_ : until_ + rest_);
}

void ServerHealth::begin_probe(MonotonicTime now) {
  trying_ = true;
  until_ = now + rest_;
}

bool ServerHealth::fail(MonotonicTime now, const EjectionPolicy& policy, std::uint64_t random,
                        Others others) {
  if (policy.rest.count() == 0) return false;
  const bool was_aside = is_ejected();
  // The requests that were in progress when it was set aside fail, too, which says nothing new.
  if (was_aside && !trying_) return false;
  if (failures_ < policy.after) ++failures_;
  if (!was_aside && (failures_ < policy.after || others == Others::kNone)) return false;
  trying_ = false;
  rest_ = back_off(policy, times_, random);
  until_ = now + rest_;
  if (times_ < 64) ++times_;  // far beyond what any maximum lets grow
  return !was_aside;
}

bool ServerHealth::succeed(MonotonicTime now) {
  failures_ = 0;
  if (!is_ejected()) return false;
  come_back(now);
  return true;
}

bool ServerHealth::set_down(bool down, MonotonicTime now) {
  if (down_ == down) return false;
  down_ = down;
  if (!down) come_back(now);
  return true;
}

void ServerHealth::come_back(MonotonicTime now) {
  trying_ = false;
  failures_ = 0;
  times_ = 0;
  until_ = {};
  back_since_ = now;
}

std::uint32_t ServerHealth::share(MonotonicTime now, Nanoseconds slow_start) const {
  // Another worker's clock may be a little ahead.
  if (now < back_since_) now = back_since_;
  if (back_since_ == MonotonicTime{} || now >= back_since_ + slow_start) return kWhole;
  const auto grown = static_cast<std::uint32_t>((now - back_since_) * kWhole / slow_start);
  return std::max(kFirstShare, grown);
}

}  // namespace encore::server
