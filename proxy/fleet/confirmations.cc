#include "proxy/fleet/confirmations.h"

#include <algorithm>
#include <utility>

namespace encore::fleet {

void Confirmations::add(std::uint64_t number, Awaited nodes, std::string node, MonotonicTime end,
                        Done done) {
  Waiting waiting{.missing = std::move(nodes.present),
                  .away = std::move(nodes.away),
                  .confirmed = {},
                  .id = {},
                  .end = end,
                  .done = std::move(done)};
  waiting.confirmed.push_back(std::move(node));
  waiting_.emplace(number, std::move(waiting));
}

// Nodes may confirm before the publisher has learnt the place.
void Confirmations::take_known(Waiting& waiting) const {
  std::erase_if(waiting.missing, [&](const std::string& node) {
    const auto found = positions_.find(node);
    const bool has_done = found != positions_.end() && found->second >= *waiting.id;
    if (has_done) waiting.confirmed.push_back(node);
    return has_done;
  });
}

Confirmations::Place Confirmations::finish(Place place, bool is_dropped) {
  Waiting waiting = std::move(place->second);
  const Place next = waiting_.erase(place);
  if (!waiting.missing.empty() || !waiting.id) ++missed_;
  auto unconfirmed = std::move(waiting.missing);
  unconfirmed.insert(unconfirmed.end(), waiting.away.begin(), waiting.away.end());
  std::ranges::sort(unconfirmed);
  std::ranges::sort(waiting.confirmed);
  waiting.done({.is_published = waiting.id.has_value(),
                .is_dropped = is_dropped,
                .confirmed = std::move(waiting.confirmed),
                .unconfirmed = std::move(unconfirmed)});
  return next;
}

void Confirmations::published(std::uint64_t number, const StreamId& id, MonotonicTime now) {
  const auto found = waiting_.find(number);
  if (found == waiting_.end()) return;
  found->second.id = id;
  take_known(found->second);
  if (found->second.missing.empty() || now >= found->second.end) finish(found);
}

void Confirmations::unpublished(std::uint64_t number, bool is_dropped) {
  const auto found = waiting_.find(number);
  if (found != waiting_.end()) finish(found, is_dropped);
}

void Confirmations::drop_unpublished() {
  for (auto place = waiting_.begin(); place != waiting_.end();) {
    place = place->second.id ? std::next(place) : finish(place, true);
  }
}

void Confirmations::confirmed(const std::string& node, const StreamId& position) {
  // Nodes come and go. One that has to confirm once more delays a response, and nothing else.
  if (positions_.size() >= kNodesMax && !positions_.contains(node)) positions_.clear();
  positions_[node] = position;  // not the highest: a stream that is lost begins again
  for (auto place = waiting_.begin(); place != waiting_.end();) {
    Waiting& waiting = place->second;
    const bool has_done = waiting.id && position >= *waiting.id;
    if (has_done && std::erase(waiting.missing, node) != 0) waiting.confirmed.push_back(node);
    place = waiting.id && waiting.missing.empty() ? finish(place) : std::next(place);
  }
}

// A purge whose publication is in progress is reported by its result, which comes soon.
void Confirmations::expire(MonotonicTime now) {
  for (auto place = waiting_.begin(); place != waiting_.end();) {
    const bool is_over = place->second.id && now >= place->second.end;
    place = is_over ? finish(place) : std::next(place);
  }
}

std::optional<MonotonicTime> Confirmations::next_end() const {
  std::optional<MonotonicTime> next;
  for (const auto& [number, waiting] : waiting_) {
    if (waiting.id && (!next || waiting.end < *next)) next = waiting.end;
  }
  return next;
}

}  // namespace encore::fleet
