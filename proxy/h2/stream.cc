#include "proxy/h2/stream.h"

#include <algorithm>

#include "base/check.h"

namespace encore::h2 {
namespace {

auto place_of(const std::vector<std::unique_ptr<Stream>>& streams, StreamId id) {
  return std::lower_bound(streams.begin(), streams.end(), id,
                          [](const auto& stream, StreamId wanted) { return stream->id < wanted; });
}

// True if `a` is served before `b`, wherever they stand.
bool goes_first(const Stream& a, const Stream& b) {
  if (a.priority.urgency != b.priority.urgency) return a.priority.urgency < b.priority.urgency;
  if (a.priority.is_incremental != b.priority.is_incremental) return b.priority.is_incremental;
  return !a.priority.is_incremental && a.id < b.id;
}

}  // namespace

Stream* StreamTable::find(StreamId id) const {
  if (streams_.empty()) return nullptr;
  if (streams_.back()->id == id) return streams_.back().get();
  const auto place = place_of(streams_, id);
  return place != streams_.end() && (*place)->id == id ? place->get() : nullptr;
}

Stream& StreamTable::add(StreamId id) {
  ENCORE_CHECK(streams_.empty() || streams_.back()->id < id, "ids of streams only grow");
  streams_.emplace_back(new Stream)->id = id;
  return *streams_.back();
}

void StreamTable::erase(StreamId id) {
  const auto place = place_of(streams_, id);
  ENCORE_CHECK(place != streams_.end() && (*place)->id == id, "only what is there is erased");
  if ((*place)->is_over()) --over_;
  streams_.erase(place);
  // An idle connection keeps little.
  if (streams_.empty()) streams_.shrink_to_fit();
}

std::vector<StreamId> StreamTable::ids() const {
  std::vector<StreamId> ids;
  ids.reserve(streams_.size());
  for (const auto& each : streams_) ids.push_back(each->id);
  return ids;
}

void ReadyList::add(Stream& stream) {
  ENCORE_CHECK(!stream.is_queued, "a stream is queued once");
  Stream* before = last_;
  while (before != nullptr && goes_first(stream, *before)) before = before->before;
  stream.before = before;
  stream.behind = before == nullptr ? first_ : before->behind;
  (before == nullptr ? first_ : before->behind) = &stream;
  (stream.behind == nullptr ? last_ : stream.behind->before) = &stream;
  stream.is_queued = true;
}

void ReadyList::remove(Stream& stream) {
  if (!stream.is_queued) return;
  (stream.before == nullptr ? first_ : stream.before->behind) = stream.behind;
  (stream.behind == nullptr ? last_ : stream.behind->before) = stream.before;
  stream.before = stream.behind = nullptr;
  stream.is_queued = false;
}

void EndedStreams::add_reset(StreamId id) {
  if (reset_.size() < kResetMax) {
    reset_.push_back(id);
    return;
  }
  reset_[next_reset_] = id;
  next_reset_ = static_cast<std::uint8_t>((next_reset_ + 1U) % kResetMax);
}

void EndedStreams::add_other(StreamId id) {
  other_[next_other_] = id;
  next_other_ = static_cast<std::uint8_t>((next_other_ + 1U) % kOtherMax);
}

bool EndedStreams::was_reset(StreamId id) const {
  return std::find(reset_.begin(), reset_.end(), id) != reset_.end();
}

bool EndedStreams::was_other(StreamId id) const {
  return std::find(other_.begin(), other_.end(), id) != other_.end();
}

}  // namespace encore::h2
