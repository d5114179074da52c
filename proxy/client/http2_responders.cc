#include "proxy/client/http2_responders.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "base/check.h"

namespace encore::server {

Http2Responder* Http2Responders::keep(std::unique_ptr<Http2Responder> work) {
  work->place = works_.size();
  works_.push_back(std::move(work));
  return works_.back().get();
}

void Http2Responders::retire(Http2Responder& work) {
  const std::size_t place = work.place;
  ENCORE_CHECK(place < works_.size() && works_[place].get() == &work, "a work ends once");
  retired_.add(std::move(works_[place]));
  if (place + 1 != works_.size()) {
    works_[place] = std::move(works_.back());
    works_[place]->place = place;
  }
  works_.pop_back();
}

void Http2Responders::resume(h2::StreamId stream) {
  const auto found = std::ranges::find(works_, stream, [](const auto& work) { return work->id(); });
  if (found != works_.end()) (*found)->resume();
}

std::optional<SlowReader> Http2Responders::slow_reader() const {
  SlowReader all;
  for (const auto& work : works_) {
    if (!work->is_slow()) continue;
    all.bytes_per_second += work->pace().bytes_per_second();
    all.held_bytes += work->held_bytes();
    all.over_share |= work->is_over_share();
  }
  if (all.held_bytes == 0) return std::nullopt;
  return all;
}

}  // namespace encore::server
