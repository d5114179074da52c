#include "proxy/origin/origin_pool.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace encore::server {
namespace {

constexpr std::size_t kSpareMax = 64;

}  // namespace

// Watches one idle connection: whatever comes on it ends it.
class OriginPool::Idle final : public net::StreamHandler {
 public:
  explicit Idle(OriginPool& pool) : pool_(pool) {}
  void watch(PooledConnection connection) {
    connection_ = std::move(connection);
    stream().set_handler(this);
    if (stream().is_reading_paused()) stream().resume_reading();
    connection_.slot.note_idle();
  }
  net::Stream& stream() { return *connection_.stream; }
  const PooledConnection& connection() const { return connection_; }
  PooledConnection release() { return std::move(connection_); }

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
  PooledConnection connection_;
};

OriginPool::OriginPool() = default;

OriginPool::~OriginPool() { close_all(); }

OriginPool::List* OriginPool::find(std::string_view key) {
  if (last_key_ != nullptr && *last_key_ == key) return last_list_;
  const auto found = lists_.find(key);
  if (found == lists_.end()) return nullptr;
  last_key_ = &found->first;
  last_list_ = &found->second;
  return last_list_;
}

PooledConnection OriginPool::take(std::string_view key,
                                  const std::function<bool(const PooledConnection&)>& accept) {
  List* found = find(key);
  if (found == nullptr) return {};
  List& list = *found;
  // The latest first: its server is least likely to have closed it meanwhile.
  for (auto it = list.begin(); it != list.end(); ++it) {
    if (!accept((*it)->connection())) continue;
    PooledConnection connection = (*it)->release();
    if (spare_.size() < kSpareMax) {
      spare_.splice(spare_.begin(), list, it);
    } else {
      list.erase(it);
    }
    ENCORE_CHECK(size_ != 0 && connection.stream != nullptr, "an idle connection was counted");
    --size_;
    connection.stream->touch();
    return connection;
  }
  return {};
}

void OriginPool::put(const std::string& key, PooledConnection connection, const Limits& limits) {
  const net::Stream& stream = *connection.stream;
  // Bytes behind the response answer nothing: the next request must not take them for its own.
  if (limits.per_server == 0 || !stream.is_open() || stream.is_eof() || stream.kept_bytes() != 0) {
    return;
  }
  List* found = find(key);
  List& list = found != nullptr ? *found : lists_[key];
  if (spare_.empty()) spare_.push_front(std::make_unique<Idle>(*this));
  list.splice(list.begin(), spare_, spare_.begin());
  list.front()->list = &list;
  list.front()->position = list.begin();
  list.front()->watch(std::move(connection));
  ++size_;
  if (list.size() > limits.per_server || size_ > limits.in_all) drop(*list.back());
}

bool OriginPool::give_up(std::string_view key) {
  List* found = find(key);
  if (found == nullptr || found->empty()) return http2_.give_up(key);
  drop(*found->back());
  return true;
}

void OriginPool::drop(Idle& idle) {
  ENCORE_CHECK(size_ != 0 && idle.position->get() == &idle, "an idle connection is dropped once");
  idle.list->erase(idle.position);
  --size_;
}

void OriginPool::close_idle_since(MonotonicTime time) {
  http2_.close_idle_since(time);
  last_key_ = nullptr;
  for (auto it = lists_.begin(); it != lists_.end();) {
    List& list = it->second;
    while (!list.empty() && list.back()->stream().last_activity() < time) drop(*list.back());
    it = list.empty() ? lists_.erase(it) : std::next(it);
  }
}

void OriginPool::close_made_before(MonotonicTime time) {
  http2_.close_made_before(time);
  for (auto& [key, list] : lists_) {
    for (auto it = list.begin(); it != list.end();) {
      Idle& idle = **it++;
      if (idle.connection().made < time) drop(idle);
    }
  }
}

void OriginPool::close_beyond(std::size_t count) {
  for (auto& [key, list] : lists_) {
    while (!list.empty() && size_ > count) drop(*list.back());
    if (size_ <= count) break;
  }
  http2_.close_beyond(count - std::min(count, size_));
}

void OriginPool::close_all() {
  http2_.close_all();
  last_key_ = nullptr;
  for (auto& [key, list] : lists_) {
    while (!list.empty()) drop(*list.back());
  }
  ENCORE_CHECK(size_ == 0, "the pool counts what its lists have");
  lists_.clear();
}

}  // namespace encore::server
