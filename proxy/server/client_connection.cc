#include "proxy/server/client_connection.h"

#include <algorithm>

#include "proxy/http/hop_by_hop.h"
#include "proxy/http/interim.h"
#include "proxy/http/stored_meta.h"
#include "proxy/server/exchange.h"
#include "proxy/server/reply_text.h"
#include "proxy/server/response.h"
#include "proxy/server/tunnel_exchange.h"
#include "proxy/server/worker.h"

namespace encore::server {
namespace {

// What a client will have taken in so many seconds comes free by itself.
constexpr std::uint64_t kSlowSeconds = 2;
// Over which the least pace is measured where a client may take nothing for any time.
constexpr Nanoseconds kPaceWindow = std::chrono::seconds(60);

std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

// The large hit that is pending, for its record.
struct PendingHit {
  std::shared_ptr<const RequestContext> request;
  RequestRecord record;
  store::ObjectRef object;  // whose content type the record names
};

ClientConnection::ClientConnection(Worker& worker, const ListenerContext& listener,
                                   net::Socket socket, const net::Address& peer)
    : worker_(worker), listener_(listener), stream_(worker.loop(), std::move(socket), peer, this) {
  // One past the largest head is what shows that it is too large.
  stream_.keep_at_least(worker.runtime().head_limits.head_bytes_max + 1);
}

ClientConnection::~ClientConnection() = default;

void ClientConnection::resume() {
  if (!closing_ && stream_.is_open()) stream_.resume_reading();
}

std::size_t ClientConnection::on_data(net::Stream&, std::span<const std::byte> bytes) {
  worker_.stats().bytes_from_clients.add(bytes.size());
  presenting_ = true;
  const std::size_t used = handle_input(as_text(bytes));
  presenting_ = false;
  // The client's end came while these bytes were kept: with the last of them used it counts.
  if (!closing_ && used == bytes.size()) {
    if (exchange_ != nullptr && peer_ended_) {
      exchange_->on_client_eof();
    } else if (is_idle() && ends_when_idle()) {
      close(After::kClose);
    }
  }
  // What is kept is counted again when it is presented again.
  worker_.stats().bytes_from_clients.subtract(bytes.size() - used);
  return used;
}

// Answers as many requests as can be answered at once, in one write at the end.
std::size_t ClientConnection::handle_input(std::string_view input) {
  std::size_t used = 0;
  std::uint32_t answered = 0;
  while (used < input.size() && !closing_) {
    if (tunnel_ != nullptr) break;
    if (exchange_ != nullptr) {
      const std::size_t taken = exchange_->on_body(input.substr(used));
      used += taken;
      if (taken == 0) break;
      continue;
    }
    if (pending_ != nullptr) break;
    if (close_after_) {
      used = input.size();  // nothing that follows is a request
      break;
    }
    if (answered++ == worker_.runtime().config.limits.pipeline) {
      continue_later();  // others have their turn
      break;
    }
    http::RequestHead& head = worker_.request_head();
    http::ParseError error;
    const std::string_view rest = input.substr(used);
    const auto status =
        http::parse_request(rest, worker_.runtime().head_limits, progress_, head, error);
    if (status == http::ParseStatus::kIncomplete) {
      if (head_since_ == MonotonicTime{}) head_since_ = worker_.loop().now();
      worker_.note_unfinished_head(*this, rest.size());
      if (peer_ended_) close(After::kClose);  // its rest will not come
      break;
    }
    progress_ = {};
    if (head_since_ != MonotonicTime{}) end_unfinished_head();
    if (status == http::ParseStatus::kBad) {
      refuse(error.status, Outcome::kBadRequest, http::to_string(error.reason),
             "The request is malformed.");
      used = input.size();
      break;
    }
    const std::string_view head_bytes = rest.substr(0, head.head_size);
    used += head.head_size;
    handle_request(head_bytes);
  }
  if (!worker_.batch().empty()) (void)flush_batch();
  return used;
}

void ClientConnection::end_unfinished_head() {
  worker_.drop_unfinished_head(*this);
  head_since_ = {};
}

void ClientConnection::refuse_unfinished_head() {
  end_unfinished_head();
  refuse(408, Outcome::kBadRequest, "unfinished-heads", "Too many requests do not end.");
}

void ClientConnection::handle_request(std::string_view head_bytes) {
  const http::RequestHead& head = worker_.request_head();
  RequestView view;
  const auto fault = worker_.make_view(head, listener_, stream_.peer(), view);
  if (fault.status != 0) {
    refuse(fault.status, fault.outcome, fault.detail, "The request is not accepted.");
    return;
  }
  if (head.method == http::Method::kGet && !view.key.empty()) {
    try_hit(view, head_bytes);
  } else {
    start_exchange(view, head_bytes, {});
  }
}

// A fresh stored response to a plain GET is on its way at the end of this read; everything else
// goes the long way.
void ClientConnection::try_hit(const RequestView& view, std::string_view head_bytes) {
  const http::RequestHead& head = *view.head;
  const Runtime& runtime = worker_.runtime();
  const auto& vary = view.route == nullptr ? runtime.forward_vary : runtime.reverse_vary;
  CacheView found = worker_.lookup(view.key, view.hash, head.fields, vary, stream_.peer());
  const bool plain =
      found.object && meta_of(*found.object).plain != 0 &&
      !head.fields.has_any(http::kRequestExtras) && !head.fields.has(http::FieldId::kExpect) &&
      !head.fields.has(http::FieldId::kUpgrade) &&
      (view.framing.kind == http::BodyKind::kNone ||
       (view.framing.kind == http::BodyKind::kLength && view.framing.length == 0)) &&
      !runtime.config.cache.cache_status_key && worker_.loop().now() < found.fresh_until &&
      http::is_fresh(meta_of(*found.object).http, worker_.loop().now());
  if (!plain) {
    start_exchange(view, head_bytes, std::move(found));
    return;
  }
  reply_hit(view, head_bytes, found);
}

void ClientConnection::reply_hit(const RequestView& view, std::string_view head_bytes,
                                 CacheView& found) {
  const http::RequestHead& head = *view.head;
  const store::Object& object = *found.object;
  const MonotonicTime now = worker_.loop().now();
  const http::StoredMeta& meta = meta_of(object).http;
  if (!http::keep_alive(head) || worker_.is_draining()) close_after_ = true;
  ReplyBatch& batch = worker_.batch();
  const std::string& via = worker_.runtime().via_field_11;
  const std::size_t tail_max = kHitTailBytesMax + via.size();
  if (!batch.has_room(tail_max) && !flush_batch()) return;
  const std::size_t tail =
      write_hit_tail(http::current_age(meta, now), http::remaining_ttl(meta, now), via,
                     head.version, !close_after_, batch.text_room());
  RequestRecord record;
  record.outcome = Outcome::kHit;
  record.started = now;
  record.status = meta.status;
  record.body_bytes = object.body_size();
  const store::ObjectRef logged = worker_.logs_requests() ? found.object : store::ObjectRef();
  if (logged) record.content_type = content_type_of(*logged);
  record.sent_bytes = meta.head_bytes + tail + object.body_size();
  if (object.body() != nullptr) {
    send_large(found, std::string_view(batch.text_room(), tail));
    if (pending_ != nullptr && !closing_) {
      // What becomes of it is known when the client has taken it, or has not.
      pending_hit_ = std::make_unique<PendingHit>(
          RequestContext::make(worker_.runtime_pointer(), view, head_bytes, stream_.peer()), record,
          logged);
      return;
    }
  } else {
    batch.add_stored(stored_head_of(object));
    batch.commit_text(tail);
    batch.add_stored(object.inline_body());
    batch.hold(std::move(found.object));
    if (close_after_ && !flush_batch()) return;
  }
  worker_.record(record, &head, stream_.peer());
  if (close_after_ && pending_ == nullptr && !closing_) close(After::kClose);
}

// Bodies of more than a slot go by themselves, after what was gathered before them.
void ClientConnection::send_large(CacheView& found, std::string_view tail) {
  const std::string own_tail(tail);
  if (!worker_.batch().empty() && !flush_batch()) return;
  const bool blocked = pending_ != nullptr;
  if (!blocked) pending_ = std::make_unique<Sender>();
  pending_->add_text(std::string(stored_head_of(*found.object)));
  pending_->add_text(own_tail);
  (void)pending_->set_body(store::BodyRef::share(found.object->body()));
  pending_->add_range(0, found.object->body_size());
  pending_->hold(std::move(found.object));
  if (!blocked) pump_pending();
}

bool ClientConnection::flush_batch() {
  ReplyBatch& batch = worker_.batch();
  // Behind what the client has not taken yet nothing is written out of turn.
  net::WriteResult result{.status = net::WriteStatus::kBlocked};
  if (pending_ == nullptr) result = stream_.write(batch.parts());
  if (result.status == net::WriteStatus::kBlocked) {
    if (pending_ == nullptr) pending_ = std::make_unique<Sender>();
    std::size_t skip = result.bytes;
    std::string rest;
    for (const iovec& part : batch.parts()) {
      const std::size_t from = std::min(skip, part.iov_len);
      skip -= from;
      rest.append(static_cast<const char*>(part.iov_base) + from, part.iov_len - from);
    }
    pending_->add_text(rest);
    pending_->set_blocked();
    account(*pending_);
  }
  batch.clear();
  if (result.status == net::WriteStatus::kError) {
    close(After::kAbort);
    return false;
  }
  return true;
}

void ClientConnection::pump_pending() {
  const Sender::Status status = pending_->pump(stream_);
  account(*pending_);
  switch (status) {
    case Sender::Status::kDone:
      end_pending(Outcome::kHit);
      if (close_after_ && exchange_ == nullptr && !closing_) close(After::kClose);
      return;
    case Sender::Status::kBlocked:
    case Sender::Status::kWaiting:
      return;
    case Sender::Status::kMore:
      continue_later();
      return;
    case Sender::Status::kAborted:
      close(After::kClose);  // its length shows that it is not whole
      return;
    case Sender::Status::kError:
      close(After::kAbort);
      return;
  }
}

// The large hit among what was pending, if there was one, came to this.
void ClientConnection::end_pending(Outcome outcome) {
  const auto sender = std::move(pending_);
  const auto hit = std::move(pending_hit_);
  if (hit == nullptr) return;
  if (outcome != Outcome::kHit) {
    hit->record.outcome = outcome;
    hit->record.body_bytes = sender->body_bytes();
    hit->record.sent_bytes = std::min(hit->record.sent_bytes, sender->sent_bytes());
  }
  worker_.record(hit->record, &hit->request->head, stream_.peer());
}

// Takes up, in a later turn of the loop, what this one leaves.
void ClientConnection::continue_later() {
  if (alive_ == nullptr) alive_ = std::make_shared<int>(0);
  worker_.loop().post([this, alive = std::weak_ptr<int>(alive_)] {
    if (alive.expired() || closing_) return;
    if (pending_ == nullptr) {
      if (is_idle()) resume();
      return;
    }
    pump_pending();
    after_pending();
  });
}

// The client has taken what it was slow to take: what waited behind that goes on.
void ClientConnection::after_pending() {
  if (closing_ || pending_ != nullptr) return;
  if (exchange_ != nullptr) {
    exchange_->start();
  } else if (tunnel_ != nullptr) {
    tunnel_->start();
  } else {
    next_request();
  }
}

bool ClientConnection::ends_when_idle() const { return peer_ended_ || worker_.is_draining(); }

// Nothing is under way: looks at what the client has sent meanwhile, or closes.
void ClientConnection::next_request() {
  if (presenting_) return;  // what follows is being looked at
  if (ends_when_idle() && stream_.kept_bytes() == 0) {
    close(After::kClose);
  } else {
    resume();
  }
}

void ClientConnection::start_exchange(const RequestView& view, std::string_view head_bytes,
                                      CacheView found) {
  // Replies keep the order of requests: what was gathered goes first.
  if (!worker_.batch().empty() && !flush_batch()) return;
  worker_.shared().inflight.prefetch_unshared(view.hash);
  auto context = RequestContext::make(worker_.runtime_pointer(), view, head_bytes, stream_.peer());
  if (view.head->method == http::Method::kConnect) {
    tunnel_ = std::make_unique<TunnelExchange>(*this, std::move(context));
    if (pending_ == nullptr) tunnel_->start();
    return;
  }
  exchange_ = std::make_unique<Exchange>(*this, std::move(context), std::move(found));
  if (pending_ == nullptr) exchange_->start();
}

// Answers with an error and closes: after a refusal the next request's beginning is not certain.
void ClientConnection::refuse(int status, Outcome outcome, std::string_view detail,
                              std::string_view text) {
  if (!worker_.batch().empty() && !flush_batch()) return;
  const http::RequestHead* head =
      outcome == Outcome::kBadRequest ? nullptr : &worker_.request_head();
  const bool with_body = head == nullptr || head->method != http::Method::kHead;
  http::CacheStatus cache_status;
  cache_status.detail = detail;
  const std::string explained = std::string(text) + " Reason: " + std::string(detail) + ".";
  const std::string reply = make_error_reply(status, explained, worker_.loop().http_date(), false,
                                             with_body, cache_status);
  close_after_ = true;
  RequestRecord record;
  record.outcome = outcome;
  record.started = worker_.loop().now();
  record.status = status;
  record.sent_bytes = reply.size();
  worker_.record(record, head, stream_.peer());
  if (pending_ == nullptr) pending_ = std::make_unique<Sender>();
  pending_->add_text(reply);
  pump_pending();
}

void ClientConnection::finish_exchange(After after) {
  if (closing_) return;
  if (after != After::kNext || worker_.is_draining()) {
    close(after == After::kNext ? After::kClose : after);
    return;
  }
  // Not destroyed here: it is what calls.
  worker_.retire_exchange(std::move(exchange_));
  next_request();
}

void ClientConnection::become_tunnel(std::unique_ptr<TunnelExchange> tunnel) {
  tunnel_ = std::move(tunnel);
}

void ClientConnection::close(After how) {
  if (closing_) return;
  closing_ = true;
  if (pending_ != nullptr) end_pending(Outcome::kClientAborted);
  worker_.drop_unfinished_head(*this);
  if (exchange_ != nullptr) exchange_->on_connection_closing();
  if (stream_.is_open()) {
    if (how == After::kAbort) {
      stream_.abort();
    } else if (how == After::kDrop) {
      stream_.close();
    } else {
      stream_.close_gracefully();
    }
  }
  worker_.retire_connection(*this);
}

void ClientConnection::cut() {
  After how = tunnel_ != nullptr ? After::kAbort : After::kClose;
  if (exchange_ != nullptr) how = exchange_->after_cut();
  close(how);
}

void ClientConnection::on_writable(net::Stream&) {
  if (closing_) return;
  if (pending_ != nullptr) {
    pump_pending();
    after_pending();
    return;
  }
  if (exchange_ != nullptr) exchange_->on_writable();
}

void ClientConnection::on_eof(net::Stream&) {
  peer_ended_ = true;
  if (tunnel_ != nullptr) return;
  if (is_idle()) {
    next_request();
  } else if (exchange_ != nullptr) {
    exchange_->on_client_eof();
  }
}

void ClientConnection::on_error(net::Stream&, net::CloseReason, int) { close(After::kAbort); }

Sender* ClientConnection::sender() const {
  if (pending_ != nullptr) return pending_.get();
  return exchange_ != nullptr ? &exchange_->sender() : nullptr;
}

void ClientConnection::count_held(const Sender& sender) {
  holding_.set(worker_.shared().transfer_memory, stream_.peer(),
               sender.is_blocked() ? sender.held_bytes() : 0);
}

bool ClientConnection::is_over_share() const {
  return holding_.is_over(worker_.runtime().config.limits.transfer_memory_per_client_bytes);
}

void ClientConnection::look_at_reader(MonotonicTime now) {
  Sender* sender = this->sender();
  if (closing_ || sender == nullptr) return;
  if (!sender->is_blocked()) {
    sender->pace().look_at_unblocked();
    return;
  }
  const std::uint64_t written = stream_.bytes_written();
  const std::uint64_t taken = written - std::min(written, stream_.bytes_in_kernel());
  if (sender->pace().look_at_blocked(now, taken)) sender->note_taking(now);
  account(*sender);  // what the cache had a moment ago may be kept for this client alone now
  const config::Config& config = worker_.runtime().config;
  Nanoseconds window = config.timeouts.client_write;
  if (window.count() == 0) window = kPaceWindow;
  if (sender->pace().is_below({config.limits.client_write_rate_min, window})) cut_reader();
}

std::optional<SlowReader> ClientConnection::slow_reader() const {
  const Sender* sender = this->sender();
  if (closing_ || sender == nullptr || !sender->pace().is_known()) return std::nullopt;
  const std::uint64_t rate = sender->pace().bytes_per_second();
  if (holding_.bytes() / kSlowSeconds <= rate) return std::nullopt;
  return SlowReader{rate, holding_.bytes(), is_over_share()};
}

void ClientConnection::cut_reader() {
  if (closing_) return;
  if (pending_ == nullptr && exchange_ != nullptr) {
    exchange_->cut();
    return;
  }
  worker_.stats().slow_readers_cut.add();
  if (pending_ != nullptr) end_pending(Outcome::kSlowReader);
  close(After::kAbort);
}

void ClientConnection::drain() {
  if (is_idle() && stream_.kept_bytes() == 0) close(After::kClose);
}

void ClientConnection::check_timeouts(MonotonicTime now) {
  if (closing_) return;
  const config::Timeouts& timeouts = worker_.runtime().config.timeouts;
  const Nanoseconds silent = now - stream_.last_activity();
  const auto over = [](Nanoseconds time, Nanoseconds limit) {
    return limit.count() != 0 && time >= limit;
  };
  if (pending_ != nullptr) {
    if (over(pending_->stalled_for(now), timeouts.client_write)) close(After::kAbort);
    return;
  }
  if (tunnel_ != nullptr) {
    tunnel_->check_timeouts(now);
    return;
  }
  if (exchange_ != nullptr) {
    exchange_->check_timeouts(now);
    return;
  }
  if (head_since_ != MonotonicTime{} && over(now - head_since_, timeouts.client_header)) {
    refuse(408, Outcome::kBadRequest, "request-timeout", "The request did not arrive in time.");
    return;
  }
  if (head_since_ == MonotonicTime{} && over(silent, timeouts.client_idle)) close(After::kClose);
}

}  // namespace encore::server
