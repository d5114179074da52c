#include "proxy/origin/origin_http2_connection.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/check.h"

namespace encore::server {
namespace {

constexpr std::size_t kPartsMax = 64;
// Bytes that are written immediately; the rest waits for its share of a turn.
constexpr std::size_t kLittleBytes = std::size_t{64} * 1024;

// The session is on the stack as long as it lives.
class Call {
 public:
  explicit Call(bool& mark) : mark_(mark), before_(std::exchange(mark, true)) {}
  ~Call() { mark_ = before_; }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

 private:
  bool& mark_;
  const bool before_;
};

}  // namespace

OriginHttp2Connection::OriginHttp2Connection(Parts parts, const h2::Options& options,
                                             h2::Counters& counters, WorkerStats& stats,
                                             OriginHttp2Keeper& keeper)
    : stream_(std::move(parts.stream)),
      slot_(std::move(parts.slot)),
      count_(std::move(parts.count)),
      made_(parts.made),
      named_until_(parts.named_until),
      counters_(counters),
      stats_(stats),
      keeper_(keeper),
      session_(options, counters, *this),
      later_(stream_->loop(), [this] { on_later(); }),
      idle_since_(stream_->loop().now()) {
  stats_.origin_http2_connections.add();
  stats_.origin_http2_open.add();
  stream_->set_handler(this);
  stream_->resume_reading();
  later_.schedule();
}

OriginHttp2Connection::~OriginHttp2Connection() {
  ENCORE_CHECK(streams_.empty(), "a connection outlives its streams");
  if (!is_closed_) stats_.origin_http2_open.subtract();
}

bool OriginHttp2Connection::has_room() const {
  return !is_closed_ && !is_retired_ && session_.can_request();
}

std::unique_ptr<OriginHttp2Stream> OriginHttp2Connection::open() {
  ENCORE_CHECK(has_room(), "a request goes where there is room for it");
  OriginHttp2Carrier& carrier = *this;
  const bool is_first = !std::exchange(has_carried_, true);
  auto stream = std::make_unique<OriginHttp2Stream>(carrier, !is_first);
  streams_.push_back(stream.get());
  // Requests that wait may have the room that the one that made it leaves.
  if (is_first && has_room()) slot_.note_idle();
  stats_.origin_http2_streams.add();
  stats_.origin_http2_streams_open.add();
  return stream;
}

OriginHttp2Stream* OriginHttp2Connection::find(h2::StreamId id) const {
  const auto found = std::ranges::find(streams_, id, &OriginHttp2Stream::id);
  return found == streams_.end() ? nullptr : *found;
}

// --- bytes ---

std::size_t OriginHttp2Connection::on_data(net::Stream&, std::span<const std::byte> bytes) {
  ENCORE_CHECK(!is_closed_, "a closed connection reads nothing");
  const bool had_room = has_room();
  std::size_t used = 0;
  {
    const Call call(is_called_);
    used = session_.receive({reinterpret_cast<const char*>(bytes.data()), bytes.size()},
                            stream_->loop().now());
  }
  // The server may take more requests than before.
  if (!had_room && has_room()) slot_.note_idle();
  flush();
  return used;
}

void OriginHttp2Connection::on_writable(net::Stream&) {
  if (is_closed_) return;
  is_blocked_ = false;
  flush();
}

void OriginHttp2Connection::on_eof(net::Stream&) { close("closed"); }

void OriginHttp2Connection::on_error(net::Stream&, net::CloseReason reason, int) {
  close(net::to_string(reason));
}

void OriginHttp2Connection::flush() {
  if (is_closed_) return;
  const std::uint64_t cost = stream_->is_tls() ? net::TurnShares::kTlsCost : 1;
  const std::size_t bytes_max =
      std::max<std::size_t>(stream_->loop().shares().allowance() / cost, kLittleBytes);
  const bool was_paused = session_.is_paused();
  std::size_t bytes = 0;
  while (!is_blocked_ && session_.has_output()) {
    if (bytes >= bytes_max) {
      later_.wait_for_share();
      break;
    }
    const Call call(is_called_);
    std::array<iovec, kPartsMax> parts;
    const h2::Batch batch = session_.gather(parts, bytes_max - bytes);
    net::WriteResult result;
    if (batch.parts != 0) result = stream_->write(std::span(parts).first(batch.parts));
    session_.sent(result.bytes, stream_->loop().now());
    bytes += result.bytes;
    is_blocked_ = result.status == net::WriteStatus::kBlocked;
    if (result.status != net::WriteStatus::kError) continue;
    close(net::to_string(result.reason));
    return;
  }
  stats_.origin_http2.set(counters_);
  if (session_.is_finished()) return close("closed");
  // The rest of what was read waits until the server takes what is there for it.
  if (was_paused && !session_.is_paused()) stream_->resume_reading();
}

void OriginHttp2Connection::on_later() {
  {
    const Call call(is_called_);
    while (!resumed_.empty()) {
      OriginHttp2Stream* const stream = resumed_.back();
      resumed_.pop_back();
      stream->deliver();
    }
  }
  flush();
  if (is_closed_) {
    if (!streams_.empty()) return;
    later_.cancel();
    keeper_.on_end(*this);
  } else if (is_over()) {
    close_idle();
  }
}

void OriginHttp2Connection::deliver_later(OriginHttp2Stream& stream) {
  if (std::ranges::find(resumed_, &stream) == resumed_.end()) resumed_.push_back(&stream);
  later_.schedule();
}

// --- responses ---

void OriginHttp2Connection::on_interim(h2::StreamId id, const h2::Response& response) {
  if (OriginHttp2Stream* const stream = find(id)) stream->on_head(response.text, false, true);
}

void OriginHttp2Connection::on_response(h2::StreamId id, const h2::Response& response) {
  if (OriginHttp2Stream* const stream = find(id)) {
    stream->on_head(response.text, true, response.has_content);
  }
}

// --- its end ---

void OriginHttp2Connection::on_connection_end(const h2::ConnectionEnd&) { later_.schedule(); }

StreamFailure OriginHttp2Connection::failure() const {
  using Kind = StreamFailure::Kind;
  if (is_closed_) return {.kind = Kind::kLost, .why = why_closed_};
  return {.kind = Kind::kInvalid, .why = session_.end()->why};
}

void OriginHttp2Connection::on_released(OriginHttp2Stream& stream) {
  std::erase(streams_, &stream);
  std::erase(resumed_, &stream);
  stats_.origin_http2_streams_open.subtract();
  if (streams_.empty()) idle_since_ = stream_->loop().now();
  if (has_room()) slot_.note_idle();
  later_.schedule();
}

void OriginHttp2Connection::retire() {
  is_retired_ = true;
  later_.schedule();
}

// Nothing is in progress, and nothing may come.
bool OriginHttp2Connection::is_over() const {
  return is_idle() && (is_retired_ || session_.is_peer_draining() || session_.is_ended());
}

void OriginHttp2Connection::close_idle() {
  ENCORE_CHECK(is_idle(), "a connection with requests is not idle");
  session_.finish_drain();
  flush();
  if (!is_closed_) close("closed");
}

void OriginHttp2Connection::check_timeouts(MonotonicTime now) {
  if (is_closed_) return;
  {
    const Call call(is_called_);
    session_.check_timeouts(now);
  }
  flush();
}

void OriginHttp2Connection::close(std::string_view why) {
  if (is_closed_) return;
  is_closed_ = true;
  why_closed_ = why;
  if (session_.is_finished()) {
    stream_->close_gracefully();  // the last frame that was written says why
  } else {
    stream_->close();
  }
  stats_.origin_http2_open.subtract();
  slot_.reset();
  count_ = {};
  {
    const Call call(is_called_);
    session_.drop();
  }
  stats_.origin_http2.set(counters_);
  later_.schedule();
}

}  // namespace encore::server
