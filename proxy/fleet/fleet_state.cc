#include "proxy/fleet/fleet_state.h"

#include <algorithm>
#include <utility>

#include "proxy/observe/log.h"

namespace encore::fleet {

FleetState::FleetState(const FleetOptions& options)
    : engine_(config::shown(options.engine)), publications_(options.limits) {
  const MonotonicTime now = monotonic_now();
  for (Link& each : links_) each.current = now;
  engine_read_ = now;
  if (options.position) position_ = options.position->id;
  for (const Publication& each : options.waiting) {
    if (!publications_.add(each)) overflow_ = overflow_.value_or(true) && each.is_soft;
  }
  if (overflow_) overflow_ = *overflow_ && publications_.are_soft();
  counts_.filter.state = options.filter;
}

void FleetState::note_current(Part part) {
  const MutexLock lock(mutex_);
  Link& one = link(part);
  one.current = monotonic_now();
  one.was_current = true;
  changed_.notify_all();
}

void FleetState::note_fault(Part part, const std::string& fault) {
  std::string before;
  {
    const MutexLock lock(mutex_);
    before = std::exchange(link(part).fault, fault);
    changed_.notify_all();
  }
  if (before == fault) return;
  const std::string_view what = part == Part::kFollower ? "reading" : "publishing";
  if (fault.empty()) {
    log::info("fleet: {} purges by {}", what, engine_);
  } else {
    log::warn("fleet: not {} purges: {}", what, fault);
  }
}

void FleetState::note_applied(std::uint64_t purges, const StreamId& position) {
  const MutexLock lock(mutex_);
  counts_.applied += purges;
  position_ = position;
}

void FleetState::note_refused(std::uint64_t entries) {
  const MutexLock lock(mutex_);
  counts_.refused += entries;
}

void FleetState::note_gap() {
  const MutexLock lock(mutex_);
  ++counts_.gaps;
}

StreamId FleetState::position() const {
  const MutexLock lock(mutex_);
  return position_;
}

bool FleetState::wait_until_current(Nanoseconds patience, Nanoseconds reading) {
  const MonotonicTime begin = monotonic_now();
  const MutexLock lock(mutex_);
  for (;;) {
    const Link& follower = link(Part::kFollower);
    if (follower.was_current) return true;
    const Nanoseconds passed = monotonic_now() - begin;
    const Nanoseconds left = (follower.fault.empty() ? reading : patience) - passed;
    if (left <= Nanoseconds(0)) return false;
    changed_.wait_for(mutex_, left);
  }
}

bool FleetState::add(Publication publication) {
  const bool is_soft = publication.is_soft;
  {
    const MutexLock lock(mutex_);
    changed_.notify_all();
    if (!overflow_ && publications_.add(std::move(publication))) return true;
  }
  return drop(is_soft);
}

bool FleetState::drop(bool is_soft) {
  const MutexLock lock(mutex_);
  if (!overflow_) {
    ++counts_.overflows;
    is_soft = is_soft && publications_.are_soft();
  }
  overflow_ = overflow_.value_or(true) && is_soft;
  changed_.notify_all();
  return false;
}

std::uint64_t FleetState::next_number() {
  const MutexLock lock(mutex_);
  return ++number_;
}

std::optional<bool> FleetState::take_overflow() {
  const MutexLock lock(mutex_);
  return std::exchange(overflow_, std::nullopt);
}

void FleetState::replace_all(Publication publication) {
  const MutexLock lock(mutex_);
  publications_.replace_all(std::move(publication));
}

// The queue's limit is not for it.
void FleetState::add_last(Publication publication) {
  const MutexLock lock(mutex_);
  publications_.add_beyond_limits(std::move(publication));
}

std::vector<Publication> FleetState::front(std::size_t count, std::size_t bytes) const {
  const MutexLock lock(mutex_);
  return publications_.front(count, bytes);
}

void FleetState::published(const StreamId& id) {
  const MutexLock lock(mutex_);
  publications_.published(id);
  ++counts_.published;
}

std::vector<Publication> FleetState::take_unkept() {
  const MutexLock lock(mutex_);
  std::vector<Publication> some;
  for (Publication& each : publications_.waiting()) {
    if (each.is_kept) continue;
    each.is_kept = true;
    some.push_back(each);
  }
  return some;
}

bool FleetState::republish_recent() {
  const MutexLock lock(mutex_);
  return publications_.republish_recent();
}

StreamId FleetState::last_published() const {
  const MutexLock lock(mutex_);
  return publications_.last_id();
}

std::size_t FleetState::pending() const {
  const MutexLock lock(mutex_);
  return publications_.size();
}

void FleetState::wait_for_work(Nanoseconds time, bool has_engine) {
  const MonotonicTime end = monotonic_now() + time;
  const MutexLock lock(mutex_);
  const auto has_work = [&]() ENCORE_REQUIRES(mutex_) {
    if (is_woken_ || overflow_) return true;
    if (has_engine && is_presence_due_) return true;
    return has_engine ? !publications_.empty() : publications_.has_unkept();
  };
  while (!has_work()) {
    const Nanoseconds left = end - monotonic_now();
    if (left <= Nanoseconds(0)) return;
    changed_.wait_for(mutex_, left);
  }
}

void FleetState::wake() {
  const MutexLock lock(mutex_);
  is_woken_ = true;
  changed_.notify_all();
}

void FleetState::note_time(std::uint64_t engine_ms) {
  const MutexLock lock(mutex_);
  engine_ms_ = engine_ms;
  engine_read_ = monotonic_now();
}

std::uint64_t FleetState::engine_ms_locked() const {
  const auto passed =
      std::chrono::floor<std::chrono::milliseconds>(monotonic_now() - engine_read_).count();
  return engine_ms_ + static_cast<std::uint64_t>(passed);
}

std::uint64_t FleetState::engine_ms() const {
  const MutexLock lock(mutex_);
  return engine_ms_locked();
}

void FleetState::set_nodes(NodeTable nodes) {
  const MutexLock lock(mutex_);
  nodes_ = std::move(nodes);
  ++tables_;
  changed_.notify_all();
}

void FleetState::set_wish(std::optional<FilterWish> wish) {
  const MutexLock lock(mutex_);
  wish_ = std::move(wish);
  is_presence_due_ = true;
  changed_.notify_all();
}

std::optional<FilterWish> FleetState::wish() const {
  const MutexLock lock(mutex_);
  return wish_;
}

bool FleetState::take_presence_due() {
  const MutexLock lock(mutex_);
  return std::exchange(is_presence_due_, false);
}

std::optional<NodeTable> FleetState::wait_for_nodes(std::uint64_t& seen, Nanoseconds time) {
  const MonotonicTime end = monotonic_now() + time;
  const MutexLock lock(mutex_);
  while (tables_ == seen && !is_woken_) {
    const Nanoseconds left = end - monotonic_now();
    if (left <= Nanoseconds(0)) return std::nullopt;
    changed_.wait_for(mutex_, left);
  }
  if (is_woken_) return std::nullopt;
  seen = tables_;
  return nodes_;
}

void FleetState::note_filter(server::FleetFilter filter) {
  const MutexLock lock(mutex_);
  filter.given = counts_.filter.given;
  counts_.filter = std::move(filter);
}

void FleetState::note_given() {
  const MutexLock lock(mutex_);
  ++counts_.filter.given;
}

void FleetState::note_namesake(bool has_namesake) {
  const MutexLock lock(mutex_);
  counts_.has_namesake = has_namesake;
}

std::vector<std::string> FleetState::present(std::string_view self) const {
  const MutexLock lock(mutex_);
  return nodes_.present(self, engine_ms_locked());
}

std::vector<std::string> FleetState::away(std::string_view self) const {
  const MutexLock lock(mutex_);
  return nodes_.away(self, engine_ms_locked());
}

void FleetState::confirmed(std::string node, const StreamId& position) {
  const MutexLock lock(mutex_);
  if (nodes_.find(node) != nullptr) confirmed_[std::move(node)] = position;
}

std::map<std::string, StreamId> FleetState::take_confirmed() {
  const MutexLock lock(mutex_);
  return std::exchange(confirmed_, {});
}

Nanoseconds FleetState::lag() const {
  const MonotonicTime now = monotonic_now();
  return now - std::min(links_[0].current, links_[1].current);
}

double FleetState::lag_seconds() const {
  const MutexLock lock(mutex_);
  const Nanoseconds since = lag();
  return since < kUsualLag ? 0 : std::chrono::duration<double>(since).count();
}

server::FleetReport FleetState::report(std::string_view self, Nanoseconds late) const {
  const MutexLock lock(mutex_);
  server::FleetReport out = counts_;
  const Nanoseconds since = lag();
  out.engine = engine_;
  for (const Link& each : links_) {
    if (out.fault.empty()) out.fault = each.fault;
  }
  out.connected = out.fault.empty();
  out.is_late = since >= kUsualLag || (!out.connected && since >= std::chrono::seconds(1));
  out.lag_seconds = out.is_late ? std::chrono::duration<double>(since).count() : 0;
  out.fails_ready = out.is_late && late.count() != 0 && since >= late;
  out.pending = publications_.size();
  out.nodes = nodes_.report(self, engine_ms_locked());
  return out;
}

}  // namespace encore::fleet
