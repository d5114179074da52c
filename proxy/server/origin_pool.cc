#include "proxy/server/origin_pool.h"

#include <utility>

namespace encore::server {

// Watches one idle connection: whatever comes on it ends it.
class OriginPool::Idle final : public net::StreamHandler {
 public:
  Idle(OriginPool& pool, std::unique_ptr<net::Stream> stream)
      : pool_(pool), stream_(std::move(stream)) {
    stream_->set_handler(this);
    if (stream_->is_reading_paused()) stream_->resume_reading();
  }
  net::Stream& stream() { return *stream_; }
  std::unique_ptr<net::Stream> release() { return std::move(stream_); }

  List* list = nullptr;
  List::iterator position;

 private:
  // Nothing was asked for, so this is not an answer to anything.
  std::size_t on_data(net::Stream&, std::span<const std::byte>) override {
    pool_.drop(*this);
    return 0;
  }
  void on_writable(net::Stream&) override {}
  void on_eof(net::Stream&) override { pool_.drop(*this); }
  void on_error(net::Stream&, net::CloseReason, int) override { pool_.drop(*this); }

  OriginPool& pool_;
  std::unique_ptr<net::Stream> stream_;
};

OriginPool::OriginPool(WorkerStats& stats) : stats_(stats) {}

OriginPool::~OriginPool() { close_all(); }

std::unique_ptr<net::Stream> OriginPool::take(
    std::string_view key, const std::function<bool(const net::Address&)>& accept) {
  const auto found = lists_.find(key);
  if (found == lists_.end()) return nullptr;
  List& list = found->second;
  for (auto it = list.begin(); it != list.end(); ++it) {
    if (!accept((*it)->stream().peer())) continue;
    std::unique_ptr<net::Stream> stream = (*it)->release();
    list.erase(it);
    --size_;
    stream->touch();
    return stream;
  }
  return nullptr;
}

void OriginPool::put(const std::string& key, std::unique_ptr<net::Stream> stream,
                     std::size_t limit) {
  if (limit == 0 || !stream->is_open() || stream->is_eof() || stream->kept_bytes() != 0) {
    stats_.origin_connections.subtract();
    return;
  }
  List& list = lists_[key];
  list.push_front(std::make_unique<Idle>(*this, std::move(stream)));
  list.front()->list = &list;
  list.front()->position = list.begin();
  ++size_;
  if (list.size() > limit) drop(*list.back());
}

void OriginPool::drop(Idle& idle) {
  idle.list->erase(idle.position);
  --size_;
  stats_.origin_connections.subtract();
}

void OriginPool::close_idle_since(MonotonicTime time) {
  for (auto it = lists_.begin(); it != lists_.end();) {
    List& list = it->second;
    while (!list.empty() && list.back()->stream().last_activity() < time) drop(*list.back());
    it = list.empty() ? lists_.erase(it) : std::next(it);
  }
}

void OriginPool::close_all() {
  for (auto& [key, list] : lists_) {
    while (!list.empty()) drop(*list.back());
  }
  lists_.clear();
}

}  // namespace encore::server
