// The first half of a fetch: getting a connection and sending the request. What is done where that
// fails is in fetch_retry.cc.
#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "proxy/http/chunked.h"
#include "proxy/http/conditional.h"
#include "proxy/server/fetch.h"
#include "proxy/server/names.h"
#include "proxy/server/worker.h"

namespace encore::server {
namespace {

// Errors that say nothing of the server: it is this process that can open no connection.
bool is_own_want(int os_error) {
  return os_error == EMFILE || os_error == ENFILE || os_error == ENOBUFS || os_error == ENOMEM ||
         os_error == EADDRNOTAVAIL;
}

}  // namespace

Fetch::Fetch(Worker& worker, std::shared_ptr<Transfer> transfer,
             std::shared_ptr<const RequestContext> request, FetchPlan plan)
    : worker_(worker),
      transfer_(std::move(transfer)),
      request_(std::move(request)),
      plan_(std::move(plan)),
      waiter_([this] { return take_connection(); }),
      request_text_(take_text()),
      upload_done_(!plan_.has_upload),
      head_(worker.response_head()),
      readers_changed_(worker.loop(), [this] { look_after_readers(); }) {}

Fetch::~Fetch() { give_text(std::move(request_text_)); }

void Fetch::start(Worker& worker, std::shared_ptr<Transfer> transfer,
                  std::shared_ptr<const RequestContext> request, FetchPlan plan) {
  std::unique_ptr<Fetch> fetch(
      new Fetch(worker, std::move(transfer), std::move(request), std::move(plan)));
  Fetch* raw = fetch.get();
  worker.add_fetch(std::move(fetch));
  raw->transfer_->set_fetch(raw);
  raw->choose_destination();
  // What cannot be sent twice goes on a connection that is not about to be closed by its origin: of
  // a body, nothing is kept.
  raw->acquire(raw->plan_.has_upload || !http::is_idempotent(raw->request_->head.method));
}

void Fetch::choose_destination() {
  if (request_->route != nullptr) {
    const Nanoseconds rest = request_->runtime->config.upstream.set_aside;
    choose_server(*request_->route->group().next(worker_.loop().now(), {.rest = rest}));
    return;
  }
  const http::Target& target = request_->target;
  host_ = target.authority.host;
  port_ = target.port();
  std::ranges::transform(host_, host_.begin(), http::to_lower);
  const bool tls = target.scheme == http::Scheme::kHttps;
  if (tls) {
    tls_ = request_->runtime->router.forward_tls();
    tls_name_ = host_;
  }
  forward_pool_key_ =
      (tls ? "forward+https://" : "forward+http://") + host_ + ":" + std::to_string(port_);
}

void Fetch::choose_server(const OriginServer& server) {
  server_ = &server;
  host_ = server.host;
  port_ = server.port;
  tls_ = server.tls;
  tls_name_ = server.tls_name;
}

void Fetch::acquire(bool fresh) {
  state_ = State::kConnecting;
  since_ = worker_.loop().now();
  fresh_ = fresh;
  // Who comes later does not go first.
  if (slot_ || !worker_.origin_lines().is_awaited(pool_key())) {
    if (take_connection()) return;
  }
  if (worker_.origin_lines().wait(pool_key(), waiter_, worker_.origin_limits().waiting)) {
    worker_.stats().origin_waits.add();
  } else {
    end_wait();
  }
}

// One that is idle, or a new one where there may be one more; false: neither.
bool Fetch::take_connection() {
  if (!fresh_ && is_of_present_settings()) {
    auto [stream, slot] = worker_.pool().take(pool_key(), [this](const net::Address& address) {
      return !request_->is_forward() ||
             request_->runtime->destinations.check(request_->client, address) ==
                 DestinationVerdict::kAllowed;
    });
    if (stream != nullptr) {
      worker_.stats().origin_reuses.add();
      slot_ = std::move(slot);
      use(std::move(stream), true);
      return true;
    }
  }
  const std::size_t limit = worker_.origin_limits().connections;
  if (!slot_) slot_ = worker_.origin_lines().claim(pool_key(), limit);
  // Idle ones that will not do give way.
  while (!slot_ && worker_.pool().give_up(pool_key())) {
    slot_ = worker_.origin_lines().claim(pool_key(), limit);
  }
  if (!slot_) return false;
  since_ = worker_.loop().now();
  resolve();
  return true;
}

// The same server is asked once more, on a new connection: it comes in place of the present one.
void Fetch::reconnect() {
  OriginLines::Slot slot = std::move(slot_);
  release_connection(false);
  slot_ = std::move(slot);
  acquire(true);
}

// No connection was to be had, which is no failure of the server: another may have one.
void Fetch::end_wait() {
  waiter_.leave();
  if (choose_other_server(AttemptFailure::kBusy, false)) {
    acquire(fresh_);
    return;
  }
  worker_.stats().origin_busy.add();
  fail_later(503, Outcome::kOriginUnreachable, "origin-busy");
}

void Fetch::resolve() {
  net::Resolver::Name name{.host = host_, .port = port_};
  if (request_->is_forward()) name.client = request_->client;
  query_ = worker_.resolver().resolve(
      name, [this](std::expected<net::Resolved, net::ResolveFailure> result) {
        on_resolved(std::move(result));
      });
}

void Fetch::on_resolved(std::expected<net::Resolved, net::ResolveFailure> result) {
  const auto query = std::move(query_);  // ends when this call does
  if (!result) {
    const net::ResolveOutcome outcome = result.error().outcome;
    if (outcome == net::ResolveOutcome::kNoDescriptors && worker_.pool().size() != 0) {
      worker_.pool().close_all();  // idle connections give way to a question that is needed
      resolve();
      return;
    }
    const NameFault fault = name_fault(outcome);
    const std::string why = "cannot resolve " + host_ + ": " + std::string(to_string(outcome));
    if (fault.is_own_want) {
      warn(why);
    } else if (try_again(outcome == net::ResolveOutcome::kTimeout ? AttemptFailure::kConnectTimeout
                                                                  : AttemptFailure::kNotConnected,
                         why)) {
      return;
    }
    fail(fault.status, fault.outcome, fault.detail);
    return;
  }
  std::vector<net::Address> addresses = std::move(result->addresses);
  if (request_->is_forward()) {
    // The addresses that are connected to are the ones that are checked here.
    const auto verdict =
        request_->runtime->destinations.restrict_to_allowed(request_->client, addresses);
    if (verdict != DestinationVerdict::kAllowed) {
      fail(403, Outcome::kDenied, to_string(verdict));
      return;
    }
  }
  prefer_untried(addresses);
  connect(std::move(addresses));
}

void Fetch::connect(std::vector<net::Address> addresses) {
  net::Connector::Options options;
  options.addresses = std::move(addresses);
  const Nanoseconds timeout = request_->runtime->config.timeouts.origin_connect;
  options.timeout = timeout.count() == 0 ? Nanoseconds(std::chrono::hours(1)) : timeout;
  options.tls = tls_;
  options.tls_host = tls_name_;
  connector_ = std::make_unique<net::Connector>(
      worker_.loop(), std::move(options),
      [this](std::expected<std::unique_ptr<net::Stream>, net::ConnectFailure> result) {
        on_connected(std::move(result));
      });
}

void Fetch::on_connected(std::expected<std::unique_ptr<net::Stream>, net::ConnectFailure> result) {
  const auto connector = std::move(connector_);  // ends when this call does
  if (!result) {
    if (result.error().os_error == EMFILE &&
        (worker_.pool().size() != 0 || worker_.give_up_idle())) {
      worker_.pool().close_all();  // idle connections give way to one that is needed
      resolve();
      return;
    }
    const bool timeout = result.error().outcome == net::ConnectOutcome::kTimeout;
    if (is_own_want(result.error().os_error)) {
      warn(result.error().message);
    } else if (try_again(timeout ? AttemptFailure::kConnectTimeout : AttemptFailure::kNotConnected,
                         result.error().message)) {
      return;
    }
    fail(timeout ? 504 : 502, timeout ? Outcome::kOriginTimeout : Outcome::kOriginUnreachable,
         "connect-" + std::string(to_string(result.error().outcome)));
    return;
  }
  worker_.stats().origin_connects.add();
  worker_.stats().origin_connections.add();
  use(std::move(*result), false);
}

// Of origins that a client chose nobody here is to be told.
void Fetch::warn(const std::string& why) {
  if (server_ == nullptr) return;
  const std::string origin =
      (server_->tls != nullptr ? "https://" : "http://") + host_ + ":" + std::to_string(port_);
  const std::string line = worker_.origin_warnings().line(origin, why, worker_.loop().now());
  if (!line.empty()) spdlog::warn("{}", line);
}

void Fetch::use(std::unique_ptr<net::Stream> stream, bool reused) {
  stream_ = std::move(stream);
  reused_ = reused;
  got_bytes_ = false;
  request_broken_ = false;
  stream_->set_handler(this);
  stream_->keep_at_least(request_->runtime->head_limits.head_bytes_max + 1);
  if (stream_->is_reading_paused()) stream_->resume_reading();
  send_request();
}

void Fetch::send_request() {
  OriginRequestOptions options;
  options.whole = plan_.whole;
  options.drop_expect = !plan_.has_upload || request_->head.version == http::Version::kHttp10;
  std::string validation;
  if (plan_.stored) {
    http::append_validation_fields(
        http::stored_validators(meta_of(*plan_.stored).http, stored_head_of(*plan_.stored)),
        validation);
    options.validation_fields = validation;
    if (!validation.empty()) worker_.stats().revalidations.add();
  } else if (plan_.completes) {
    validation = completion_fields();
    options.validation_fields = validation;
  }
  asked_condition_ =
      plan_.stored
          ? !validation.empty()
          : !plan_.whole && request_->head.fields.has_any(
                                {http::FieldId::kIfNoneMatch, http::FieldId::kIfModifiedSince});
  build_origin_request(*request_, server_, options, request_text_);
  request_sent_ = 0;
  progress_ = {};
  state_ = State::kSending;
  request_time_ = worker_.loop().now();
  invalidations_seen_ = worker_.shared().inflight.invalidations().count();
  since_ = request_time_;
  worker_.stats().origin_requests.add();
  flush_what_waited();
}

// Writes what is left of the request's head and body. False when the fetch has ended by it.
bool Fetch::flush_request() {
  std::array<iovec, 2> parts;
  std::size_t count = 0;
  const std::size_t head_left = request_text_.size() - request_sent_;
  if (head_left != 0) parts[count++] = {request_text_.data() + request_sent_, head_left};
  const std::size_t upload_left = upload_pending_.size() - upload_sent_;
  if (upload_left != 0) parts[count++] = {upload_pending_.data() + upload_sent_, upload_left};
  if (count == 0) return true;
  const net::WriteResult result = stream_->write(std::span(parts.data(), count));
  worker_.stats().bytes_to_origins.add(result.bytes);
  const std::size_t from_head = std::min(result.bytes, head_left);
  request_sent_ += from_head;
  upload_sent_ += result.bytes - from_head;
  if (result.status == net::WriteStatus::kError) {
    if (try_again(AttemptFailure::kClosed, "resets the connection")) return false;
    // It may have answered before it closed, as with 413 to a body that it does not want.
    if (stream_->read_rest()) {
      request_broken_ = true;
      since_ = worker_.loop().now();
      return true;
    }
    fail_later(502, Outcome::kOriginAborted, "origin-closed");
    return false;
  }
  if (result.status == net::WriteStatus::kBlocked) return true;
  upload_pending_.clear();
  upload_sent_ = 0;
  if (state_ == State::kSending) {
    state_ = State::kHead;
    since_ = worker_.loop().now();
  }
  return true;
}

// The origin was waited for. Where it takes the rest of the request now, it is the client's turn.
void Fetch::flush_what_waited() {
  if (flush_request() && !upload_done_ && accepts_upload()) transfer_->publish_upload_ready();
}

bool Fetch::accepts_upload() const {
  return stream_ != nullptr && state_ != State::kConnecting && state_ != State::kEnded &&
         !request_broken_ && request_sent_ == request_text_.size() && upload_pending_.empty();
}

void Fetch::upload(std::string_view content, bool last, std::string_view trailers) {
  upload_started_ = true;
  const bool chunked = request_->framing.kind == http::BodyKind::kChunked;
  if (chunked && !content.empty()) {
    std::array<char, http::kChunkHeadMax> size;
    upload_pending_.append(size.data(), http::write_chunk_head(content.size(), size.data()));
  }
  upload_pending_ += content;
  if (chunked && !content.empty()) upload_pending_ += http::kChunkEnd;
  if (last) {
    upload_done_ = true;
    if (chunked) {
      upload_pending_ += http::kLastChunk;
      upload_pending_ += trailers;
      upload_pending_ += http::kChunkEnd;
    }
  }
  since_ = worker_.loop().now();
  (void)flush_request();
}

void Fetch::on_writable(net::Stream&) {
  if (state_ != State::kEnded) flush_what_waited();
}

// What was connected, and verified, under other settings than those of the requests to come is
// nothing for them.
bool Fetch::is_of_present_settings() const {
  return request_->runtime == worker_.runtime_pointer();
}

// An origin may answer before it has read the request. What it has not got of it would come in
// front of the next one.
bool Fetch::is_wholly_sent() const {
  return request_sent_ == request_text_.size() && upload_done_ && upload_pending_.empty() &&
         !request_broken_;
}

// The pool gets it where it is in step (`reusable`: the response has ended as it should).
void Fetch::release_connection(bool reusable) {
  OriginLines::Slot slot = std::move(slot_);
  if (stream_ == nullptr) return;
  std::unique_ptr<net::Stream> stream = std::move(stream_);
  stream->set_handler(nullptr);
  if (reusable && is_wholly_sent() && is_of_present_settings() && !worker_.is_draining()) {
    worker_.pool().put(pool_key(), {std::move(stream), std::move(slot)},
                       {.per_server = request_->runtime->config.upstream.pool_per_server,
                        .in_all = worker_.shared().idle_connections_max()});
    return;
  }
  worker_.stats().origin_connections.subtract();
  stream->pause_reading();
  stream->close();
  // It may be what calls.
  worker_.loop().defer([gone = std::move(stream)] {});
}

void Fetch::check_timeouts(MonotonicTime now) {
  const config::Timeouts& timeouts = request_->runtime->config.timeouts;
  const auto over = [&](Nanoseconds limit) { return limit.count() != 0 && now - since_ >= limit; };
  switch (state_) {
    case State::kConnecting:
      if (waiter_.is_waiting()) {
        if (over(timeouts.origin_connect)) end_wait();
        return;
      }
      // The connector has its own limit; this one is for the name.
      if (query_ != nullptr && over(timeouts.dns) &&
          !try_again(AttemptFailure::kConnectTimeout, "cannot resolve " + host_ + ": timeout")) {
        fail(504, Outcome::kOriginTimeout, "dns-timeout");
      }
      return;
    case State::kSending:
    case State::kHead:
      // While the client still sends its body, the wait is for the client.
      if (!upload_done_ && upload_pending_.empty() && !request_broken_) return;
      if (over(timeouts.origin_response) &&
          !try_again(AttemptFailure::kSilent, "does not answer")) {
        fail(504, Outcome::kOriginTimeout, "response-timeout");
      }
      return;
    case State::kBody:
      check_body(now);
      return;
    case State::kEnded:
      return;
  }
}

}  // namespace encore::server
