#include "proxy/observe/recent.h"

#include <algorithm>

namespace encore::server {
namespace {

constexpr std::string_view kOther = "other";

void count(std::vector<OutcomeReport::Reason>& reasons, std::string_view name,
           std::uint64_t weight) {
  const auto known = std::ranges::find(reasons, name, &OutcomeReport::Reason::name);
  if (known != reasons.end()) {
    known->count += weight;
  } else if (name == kOther || reasons.size() + 1 < RecentRequests::kReasons) {
    reasons.push_back({std::string(name), weight});
  } else {
    count(reasons, kOther, weight);
  }
}

// "host[:port]" of an absolute target; empty where it is none.
std::string_view authority_of(std::string_view target) {
  if (target.starts_with('/')) return {};
  const std::size_t scheme = target.find("://");
  constexpr std::size_t kSchemeBytesMax = 5;
  if (scheme > kSchemeBytesMax) return {};  // no scheme, or further on than one may be
  target.remove_prefix(scheme + 3);
  return target.substr(0, target.find_first_of("/?#"));
}

// No longer than one byte more than is shown: the room stays.
void write_shown_url(const RecentRequests::Note& note, std::string& url) {
  constexpr std::size_t kMost = RecentRequests::kUrlBytes + 1;
  url.clear();
  if (note.target.starts_with('/') || note.target == "*") url = note.host.substr(0, kMost);
  const std::size_t query = note.show_query ? std::string_view::npos : note.target.find('?');
  url += note.target.substr(0, std::min(query, kMost - url.size()));
  if (query != std::string_view::npos) url += "?...";
  if (url.size() > RecentRequests::kUrlBytes) {
    url.resize(RecentRequests::kUrlBytes - 3);
    url += "...";
  }
}

}  // namespace

RecentRequests::RecentRequests() : random_(0x9e3779b97f4a7c15U) { draw(); }

// xorshift64 (Marsaglia 2003). Between 1 and 2 * kHitSample - 1, kHitSample on average: what comes
// in a rhythm is not met, or missed, each time.
void RecentRequests::draw() noexcept {
  random_ ^= random_ << 13U;
  random_ ^= random_ >> 7U;
  random_ ^= random_ << 17U;
  until_sample_ = 1 + static_cast<std::uint32_t>(random_ % (2 * kHitSample - 1));
}

void RecentRequests::note(const Note& note, WallTime when) {
  const std::string_view named = authority_of(note.target);
  const std::string_view host = named.empty() ? note.host : named;
  const std::string_view reason =
      note.reason.empty() ? to_string(note.outcome) : note.reason.substr(0, kReasonBytes);
  const MutexLock lock(mutex_);
  OfOutcome& outcome = outcomes_[static_cast<std::size_t>(note.outcome)];
  count(outcome.reasons, reason, note.weight);
  if (outcome.latest.size() < kLatest) outcome.latest.emplace_back();
  // In the place of the oldest, whose texts leave their room.
  RecentRequest& request = outcome.latest[outcome.next];
  outcome.next = outcome.next + 1 == kLatest ? 0 : outcome.next + 1;
  request.when = when;
  request.method = note.method.substr(0, kReasonBytes);
  write_shown_url(note, request.url);
  request.reason = reason;
  request.status = note.status;
  note_names(note, host, when);
}

void RecentRequests::note_names(const Note& note, std::string_view host, WallTime when) {
  const OutcomeClass group = class_of(note.outcome);
  const std::uint64_t bytes = note.body_bytes * note.weight;
  if (!note.client.empty()) {
    top_.client_requests.add(note.client, note.weight, when);
    top_.client_bytes.add(note.client, bytes, when);
  }
  // Only hosts that something was got of: what clients make up does not push them out.
  if (host.empty() || group == OutcomeClass::kError) return;
  bytes_.add(host, bytes);
  if (group == OutcomeClass::kHit) hits_.add(host, note.weight);
  top_.host_requests.add(host, note.weight, when);
  top_.host_bytes.add(host, bytes, when);
}

void RecentRequests::add_to(OutcomeReport& report, Outcome outcome) const {
  const MutexLock lock(mutex_);
  const OfOutcome& known = outcomes_[static_cast<std::size_t>(outcome)];
  for (const OutcomeReport::Reason& reason : known.reasons) {
    count(report.reasons, reason.name, reason.count);
  }
  report.latest.insert(report.latest.end(), known.latest.begin(), known.latest.end());
}

void RecentRequests::add_hosts(HeavyHitters& by_bytes, HeavyHitters& by_hits) const {
  const MutexLock lock(mutex_);
  by_bytes.merge(bytes_);
  by_hits.merge(hits_);
}

void RecentRequests::add_top(TopNames<HeavyHitters>& sum, WallTime now) const {
  const MutexLock lock(mutex_);
  top_.host_requests.add_to(sum.host_requests, now);
  top_.host_bytes.add_to(sum.host_bytes, now);
  top_.client_requests.add_to(sum.client_requests, now);
  top_.client_bytes.add_to(sum.client_bytes, now);
}

void finish(OutcomeReport& report, std::size_t latest_max) {
  std::ranges::stable_sort(report.reasons, std::ranges::greater(), &OutcomeReport::Reason::count);
  std::ranges::stable_sort(report.latest, std::ranges::greater(), &RecentRequest::when);
  if (report.latest.size() > latest_max) report.latest.resize(latest_max);
}

}  // namespace encore::server
