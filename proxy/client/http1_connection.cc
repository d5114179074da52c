#include "proxy/client/http1_connection.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "proxy/client/http1_pending.h"
#include "proxy/client/http1_text.h"
#include "proxy/exchange/decide.h"
#include "proxy/http/head_text.h"
#include "proxy/http/hop_by_hop.h"
#include "proxy/http/reply_text.h"
#include "proxy/intake/hit_record.h"
#include "proxy/intake/plain_hit.h"
#include "proxy/intake/revocation.h"
#include "proxy/net/proxy_header.h"
#include "proxy/net/tls_server.h"
#include "proxy/observe/request_steps.h"

namespace encore::server {
namespace {

std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

Refusal no_longer_decrypted() {
  return {.status = 421,
          .outcome = Outcome::kDenied,
          .detail = "no-longer-decrypted",
          .text = "Connect again."};
}

Refusal refusal_of(const ViewFault& fault) {
  return {.status = fault.status,
          .outcome = fault.outcome,
          .detail = fault.detail,
          .text = "The request is not accepted.",
          .rule = fault.rule,
          .is_head_read = true};
}

// Whether a host that is decrypted would be so today.
bool is_named(const Runtime& runtime, const Inside& inside, const net::Address& client,
              MonotonicTime now) {
  if (runtime.interception == nullptr) return false;
  const Splice splice =
      runtime.interception->at_connect(client, inside.host, inside.port, false, now);
  return splice == Splice::kNone || splice == Splice::kRejected;
}

}  // namespace

Http1Connection::Http1Connection(const ClientServices& services, const ListenerContext& listener,
                                 net::Socket socket, const net::Address& peer,
                                 net::TlsSessionPointer tls)
    : services_(services),
      listener_(listener),
      stream_(services.loop, std::move(socket), peer, this, std::move(tls)),
      client_(peer) {
  // One past the largest head is what shows that it is too large.
  stream_.keep_at_least(
      std::max(services.runtime->head_limits.head_bytes_max, net::kProxyHeaderBytesMax) + 1);
}

Http1Connection::~Http1Connection() = default;

void Http1Connection::begin() {
  const ListenerPolicy* const policy = services_.runtime->policy(listener_.index);
  if (policy != nullptr && policy->proxy_protocol) {
    gate_ = std::make_unique<ClientGate>(client_, [this] { resume(); });
    gate_->await_header();
    // It is due at once, as the rest of a head is.
    head_since_ = services_.loop.now();
    services_.keeper.note_unfinished_head(*this, 0);
  }
  if (stream_.is_tls() && !shake_hands()) return;
  resume();
}

// False: the connection has ended.
bool Http1Connection::shake_hands() {
  handshake_ = std::make_unique<ClientHandshake>(
      ClientHandshake::Parts{.stats = services_.stats,
                             .handshakes = services_.handshakes,
                             .keeper = services_.keeper,
                             .connection = *this,
                             .handler = *this},
      [this](bool done) {
        handshake_.reset();
        if (!done) return close(After::kAbort);
        const ListenerPolicy* const policy = services_.runtime->policy(listener_.index);
        const bool is_told = policy != nullptr && !policy->client_field.empty();
        if (is_told || services_.log.is_logging()) tls_ = client_tls_of(stream_);
        if (is_draining()) close(After::kClose);
      });
  const ListenerPolicy* const policy = services_.runtime->policy(listener_.index);
  const bool counted = policy == nullptr || !policy->trusts(client_);
  const std::uint32_t limit = services_.runtime->config.limits.tls_handshakes_per_client;
  if (handshake_->begin(client_, counted ? limit : 0, services_.loop.now())) return true;
  close(After::kDrop);
  return false;
}

// Takes the PROXY header in front of all requests. Returns the bytes used; none: it is not all
// there, or the connection ends.
std::size_t Http1Connection::take_header(std::string_view input) {
  const ListenerPolicy* const policy = services_.runtime->policy(listener_.index);
  ClientGate::Intake intake;
  if (policy != nullptr) intake = gate_->take_header(*policy, input);
  if (intake.header == ClientGate::Header::kIncomplete && !has_peer_ended()) {
    services_.keeper.note_unfinished_head(*this, input.size());
    return 0;
  }
  if (intake.header != ClientGate::Header::kTaken) {
    refuse({});
    return 0;
  }
  end_unfinished_head();
  client_ = gate_->from();
  const std::uint32_t limit = client_limit(*services_.runtime->config.limits.connections_per_client,
                                           services_.keeper.connections_allowed());
  seat.leave();  // the peer was counted where a reload has made it one who speaks for others
  if (limit != 0 && !policy->trusts(client_) && !seat.take(services_.clients, client_, limit)) {
    services_.stats.connections_refused.add();
    close(After::kClose);
    return 0;
  }
  if (listener_.tls == nullptr) return intake.used;
  net::TlsSessionPointer session = listener_.tls->session();
  if (session == nullptr || !stream_.start_tls(std::move(session))) {
    services_.stats.connections_refused.add();
    close(After::kDrop);
    return 0;
  }
  return shake_hands() ? intake.used : 0;
}

void Http1Connection::resume() {
  if (!is_closed() && stream_.is_open()) stream_.resume_reading();
}

std::size_t Http1Connection::on_data(net::Stream&, std::span<const std::byte> bytes) {
  ENCORE_CHECK(!is_closed(), "a closed connection reads nothing");
  input_ = Input::kPresented;
  const std::size_t used = handle_input(as_text(bytes));
  input_ = Input::kKept;
  // The client's end came while these bytes were kept: with the last of them used it counts.
  if (!is_closed() && used == bytes.size()) {
    if (request_ != nullptr && has_peer_ended()) {
      request_->on_peer_end();
    } else if (is_idle() && (has_peer_ended() || is_draining())) {
      close(After::kClose);
    }
  }
  // What is kept is counted when it is used.
  services_.stats.bytes_from_clients.add(used);
  listener_.counts->received_bytes.add(used);
  return used;
}

// Answers as many requests as can be answered at once, in one write at the end.
std::size_t Http1Connection::handle_input(std::string_view input) {
  std::size_t used = 0;
  if (gate_ != nullptr && gate_->awaits_header()) {
    used = take_header(input);
    if (used == 0) return is_closed() ? input.size() : 0;
    if (handshake_ != nullptr) return used;  // what follows is TLS
  }
  std::uint32_t answered = 0;
  while (used < input.size() && !is_closed()) {
    if (tunnel_ != nullptr || interceptor_ != nullptr) break;
    if (request_ != nullptr) {
      const std::size_t taken = request_->on_data(input.substr(used));
      used += taken;
      if (taken == 0) break;
      continue;
    }
    if (pending_ != nullptr) break;
    if (phase_ == Phase::kLast) {
      used = input.size();  // nothing that follows is a request
      break;
    }
    if (answered++ == services_.runtime->config.limits.pipeline) {
      later().schedule();  // others have their turn
      break;
    }
    const auto taken = parse(input.substr(used));
    if (!taken) break;
    used += *taken;
  }
  if (!services_.http1.batch.empty()) (void)flush_batch();
  return used;
}

// Takes the next request. Returns the bytes used; nothing: it is not all there.
std::optional<std::size_t> Http1Connection::parse(std::string_view input) {
  http::RequestHead& head = services_.http1.head;
  http::ParseError error;
  std::string encoded;  // all that follows sees the target so
  const auto status = http::parse_lax_request(input, services_.runtime->head_limits, progress_,
                                              head, error, encoded);
  if (status == http::ParseStatus::kIncomplete) {
    if (head_since_ == MonotonicTime{}) head_since_ = services_.loop.now();
    services_.keeper.note_unfinished_head(*this, input.size());
    if (!has_peer_ended()) return std::nullopt;
    // Its rest will not come. What was answered before comes to its client, however slowly it is
    // taken.
    if (!services_.http1.batch.empty() && !flush_batch()) return std::nullopt;
    phase_ = Phase::kLast;
    if (pending_ == nullptr) {
      close(After::kClose);
    } else {
      end_unfinished_head();
    }
    return std::nullopt;
  }
  progress_ = {};
  if (head_since_ != MonotonicTime{}) end_unfinished_head();
  if (status == http::ParseStatus::kBad) {
    refuse({.status = error.status,
            .outcome = Outcome::kBadRequest,
            .detail = http::to_string(error.reason),
            .text = "The request is malformed."});
    return input.size();
  }
  const std::size_t head_size = head.head_size;
  is_last_read_ = head_size == input.size();
  const std::string_view sent = input.substr(0, head_size);
  if (!handle_request(encoded.empty() ? sent : encoded)) return std::nullopt;
  return head_size;
}

void Http1Connection::end_unfinished_head() {
  services_.keeper.drop_unfinished_head(*this);
  head_since_ = {};
}

void Http1Connection::refuse_unfinished_head() {
  ENCORE_CHECK(!is_closed() && head_place, "the head that is refused is under way");
  if (handshake_ != nullptr) {
    handshake_->count_failure();
    close(After::kDrop);
    return;
  }
  end_unfinished_head();
  if (interceptor_ != nullptr) {
    close(After::kAbort);  // it speaks no HTTP yet
    return;
  }
  refuse({.status = 408,
          .outcome = Outcome::kBadRequest,
          .detail = "unfinished-heads",
          .text = "Too many requests do not end."});
}

// A plain hit is on its way at the end of this read; everything else goes the long way. False: it
// is to be looked at again when it is known whose it is.
bool Http1Connection::handle_request(std::string_view head_bytes) {
  http::RequestHead& head = services_.http1.head;
  const Runtime& runtime = *services_.runtime;
  RequestView view;
  // To a forward proxy what is asked for says it, not how it is asked.
  view.secure = inside_ || (stream_.is_tls() && listener_.mode == config::Mode::kReverse);
  if (tls_ != nullptr) view.tls = &tls_;
  view.counts = &listener_.counts;
  const ListenerPolicy* const policy = runtime.policy(listener_.index);
  if (policy != nullptr && gate_ == nullptr) {
    gate_ = std::make_unique<ClientGate>(stream_.peer(), [this] { resume(); });
  }
  if (inside_ != nullptr) {
    // Whose it is is known since the CONNECT; what stands in it is the client's own word.
    view.policy = policy;
    view.inside = inside_.get();
    inside_->use->go_on(services_.loop.now());
    if (named_by_ != runtime.number &&
        !is_named(runtime, *inside_, client_, services_.loop.now())) {
      refuse(no_longer_decrypted());
      return true;
    }
    named_by_ = runtime.number;
  } else if (gate_ != nullptr) {
    // Several clients may send by way of one proxy's connection.
    client_ = gate_->identify(policy, head.fields, view);
    if (holding_.bytes() == 0) holding_.reset();
  }
  const auto fault = services_.views.make(head, listener_, client_, view);
  if (fault.status != 0) {
    refuse(refusal_of(fault));
    return true;
  }
  if (policy != nullptr) {
    const std::optional<Refusal> refusal = gate_->check({.loop = services_.loop,
                                                         .passwords = services_.passwords,
                                                         .runtime = runtime,
                                                         .stats = services_.stats},
                                                        *policy, head, view, client_);
    if (!refusal) return false;
    if (refusal->status != 0) {
      refuse(*refusal, &view);
      return true;
    }
    view.user = gate_->user();
    view.login = gate_->login();
  }
  if (runtime.identifies_all) {
    view.request_id =
        request_id(services_.ids, inside_ == nullptr ? gate_.get() : nullptr, policy, &head);
  }
  if (!may_be_hit(view)) {
    start_request(view, head_bytes, {});
    return true;
  }
  CacheView found =
      services_.cache.lookup(view.key, view.hash, head.fields, view.treatment->vary, client_);
  if (is_plain_hit(view, found, runtime, services_.loop.now())) {
    HitForm form = HitForm::kIdentity;
    if (runtime.compression) [[unlikely]] {
      form = choose_hit_form(view, *runtime.compression, *services_.exchange.coders, found);
    }
    if (form != HitForm::kUnknown) {
      refusals_in_row_ = 0;
      reply_hit(view, head_bytes, found, form);
      return true;
    }
  }
  start_request(view, head_bytes, std::move(found));
  return true;
}

void Http1Connection::start_request(RequestView& view, std::string_view head_bytes,
                                    CacheView found) {
  ENCORE_CHECK(request_ == nullptr && tunnel_ == nullptr, "one request follows the other");
  // Replies keep the order of requests: what was gathered goes first.
  if (!services_.http1.batch.empty() && !flush_batch()) {
    return record_unsent(services_.log, {.view = view,
                                         .client = client_,
                                         .listener = listener_.counts.get(),
                                         .listener_name = listener_.name,
                                         .tls = tls_.get(),
                                         .now = services_.loop.now()});
  }
  const std::uint32_t limit = client_limit(*services_.runtime->config.limits.transfers_per_client,
                                           services_.keeper.connections_allowed());
  // Whoever speaks for others is not counted.
  const bool counted = limit != 0 && (view.policy == nullptr || !view.policy->trusts(client_));
  if (counted && !transfer_.take(services_.transfers, client_, limit)) {
    services_.stats.transfers_refused.add();
    Refusal refusal = too_many("transfers-per-client", Nanoseconds(0));
    refusal.further = Refusal::Further::kMayStay;
    refuse(refusal, &view);
    return;
  }
  refusals_in_row_ = 0;
  const Runtime& runtime = *services_.runtime;
  const bool is_told = runtime.config.log.request_id >= config::RequestIds::kForward;
  if (is_told && view.route != nullptr && view.request_id.empty()) {
    view.request_id = request_id(services_.ids, inside_ == nullptr ? gate_.get() : nullptr,
                                 runtime.policy(listener_.index), view.head);
  }
  services_.exchange.inflight.prefetch_unshared(view.hash);
  auto context = RequestContext::make(services_.runtime, view, head_bytes, client_,
                                      gate_ == nullptr ? client_ : gate_->from());
  if (runtime.follows_requests) [[unlikely]] {
    std::string storage;
    tell_step(context->request_id,
              {view.head->method_text, " ", runtime.redaction.url(view.head->target, storage),
               " of ", client_.to_string(), " on ", listener_.name, ", ",
               found.object ? "stored" : "not in memory"});
  }
  if (view.head->method == http::Method::kConnect) {
    // A circle is refused before any handshake inside it.
    if (!is_circle(*context)) {
      interceptor_ = Interceptor::make(services_.intercept, *this, stream_, context);
    }
    if (interceptor_ != nullptr) {
      if (pending_ == nullptr) interceptor_->start();
      return;
    }
    tunnel_.reset(new TunnelExchange(services_.tunnel, *this, std::move(context)));
    if (pending_ == nullptr) tunnel_->start();
    return;
  }
  request_.reset(new Http1Stream(*this, services_.exchange, std::move(context), std::move(found)));
  if (pending_ == nullptr) request_->start();
}

// Goes on at the end of this turn or in the next (schedule), or with the next share
// (wait_for_share).
net::Deferred& Http1Connection::later() {
  if (later_ == nullptr) {
    later_ = std::make_unique<net::Deferred>(services_.loop, [this] {
      if (is_closed()) return;
      if (pending_ == nullptr) {
        if (is_idle()) resume();
        return;
      }
      pump_pending();
      after_pending();
    });
  }
  return *later_;
}

// Nothing is under way: looks at what the client has sent meanwhile, or closes.
void Http1Connection::next_request() {
  if (input_ == Input::kPresented) return;  // what follows is being looked at
  if ((has_peer_ended() || is_draining()) && stream_.kept_bytes() == 0) {
    close(After::kClose);
  } else {
    resume();
  }
}

void Http1Connection::on_stream_end(After after) {
  transfer_.leave();
  if (is_closed()) return;
  if (after != After::kNext || is_draining()) {
    close(after == After::kNext ? After::kClose : after);
    return;
  }
  services_.retired.add(std::move(request_));
  next_request();
}

void Http1Connection::on_switched(std::shared_ptr<const RequestContext> request, Http1Writer writer,
                                  Switched switched) {
  if (is_closed()) return;
  services_.retired.add(std::move(request_));
  tunnel_.reset(new TunnelExchange(services_.tunnel, *this, std::move(request)));
  tunnel_->start_switched(std::move(writer), std::move(switched));
}

void Http1Connection::on_unfinished(std::size_t bytes) {
  services_.keeper.note_unfinished_head(*this, bytes);
}

void Http1Connection::on_hands_shaken() {
  end_unfinished_head();
  if (is_draining()) close(After::kClose);
}

void Http1Connection::on_splice(std::shared_ptr<const RequestContext> connect) {
  if (is_closed()) return;
  end_unfinished_head();
  services_.retired.add(std::move(interceptor_));
  stream_.set_handler(this);
  tunnel_.reset(new TunnelExchange(services_.tunnel, *this, std::move(connect)));
  tunnel_->start_answered();
}

void Http1Connection::on_inside(Inside inside) {
  if (is_closed()) return;
  end_unfinished_head();
  transfer_.leave();
  services_.retired.add(std::move(interceptor_));
  inside_ = std::make_unique<const Inside>(std::move(inside));
  if (services_.log.is_logging()) tls_ = client_tls_of(stream_);
  stream_.set_handler(this);
  resume();
}

void Http1Connection::on_intercept_end(After after) {
  if (!is_closed()) close(after);
}

// `why` is of what is under way.
void Http1Connection::close(After how, ClientGone why) {
  if (is_closed()) return;
  why.unsent = unsent_after(how);
  ENCORE_CHECK(how != After::kNext, "a connection that is closed serves nobody");
  phase_ = Phase::kClosed;
  transfer_.leave();
  if (pending_ != nullptr) end_pending(why);
  handshake_.reset();
  services_.keeper.drop_unfinished_head(*this);
  if (request_ != nullptr) request_->on_gone(why);
  if (tunnel_ != nullptr) tunnel_->on_gone(why);
  if (interceptor_ != nullptr) interceptor_->on_gone(why);
  if (stream_.is_open()) {
    if (how == After::kAbort) {
      stream_.abort();
    } else if (how == After::kDrop) {
      stream_.close();
    } else {
      stream_.close_gracefully();
    }
  }
  services_.keeper.retire(*this);
}

bool Http1Connection::revoke() {
  if (is_closed()) return false;
  if (listener_.closed) return revoked_;
  Activity activity{.inside = inside_.get(), .client = client_};
  if (tunnel_ != nullptr) {
    activity.request = &tunnel_->request();
    if (tunnel_->origin() != nullptr) activity.origin = &tunnel_->origin()->peer();
  } else if (interceptor_ != nullptr) {
    activity.request = &interceptor_->connect();
  } else if (request_ != nullptr) {
    activity.request = &request_->request();
  } else if (pending_ != nullptr && pending_->request != nullptr) {
    activity.request = pending_->request.get();
  } else if (inside_ == nullptr) {
    activity.client = gate_ == nullptr ? stream_.peer() : gate_->from();
    activity.is_client_known = gate_ == nullptr || !gate_->awaits_header();
    if (gate_ != nullptr) activity.login = gate_->login();
  }
  const bool was_revoked =
      std::exchange(revoked_, !why_revoked(*services_.runtime, listener_, activity).empty());
  if (!revoked_) return false;
  if (!was_revoked) services_.stats.connections_revoked.add();
  // A request that has come already is read, and told why.
  if (is_idle() && stream_.kept_bytes() == 0) close(After::kClose);
  return !is_closed();
}

void Http1Connection::on_writable(net::Stream&) {
  if (is_closed()) return;
  if (pending_ != nullptr) {
    pump_pending();
    after_pending();
    return;
  }
  if (request_ != nullptr) request_->on_writable();
  if (tunnel_ != nullptr) tunnel_->on_writable();
}

void Http1Connection::on_eof(net::Stream&) {
  ENCORE_CHECK(!has_peer_ended(), "a client ends once");
  peer_ = Peer::kEnded;
  if (tunnel_ != nullptr) return;
  if (is_idle()) {
    next_request();
  } else if (request_ != nullptr) {
    request_->on_peer_end();
  }
}

void Http1Connection::on_error(net::Stream&, net::CloseReason reason, int) {
  close(After::kAbort, {.detail = net::to_string(reason)});
}

void Http1Connection::drain() {
  if (is_idle() && stream_.kept_bytes() == 0) close(After::kClose);
}

void Http1Connection::end_if_quiet() {
  if (is_closed()) return;
  std::uint64_t moved = net::moved_bytes(stream_);
  if (tunnel_ != nullptr) moved += tunnel_->moved_bytes();
  const bool is_quiet = quiet_.look(moved);
  // Bytes from the origin may reach the client later.
  if (is_quiet && (request_ == nullptr || !request_->is_origin_active())) cut();
}

void Http1Connection::check_timeouts(MonotonicTime now) {
  if (is_closed()) return;
  const config::Timeouts& timeouts = services_.runtime->config.timeouts;
  const auto over = [](Nanoseconds time, Nanoseconds limit) {
    return limit.count() != 0 && time >= limit;
  };
  if (handshake_ != nullptr) {
    if (!over(handshake_->lasts(now), timeouts.tls_handshake)) return;
    handshake_->count_failure();
    close(After::kDrop);
    return;
  }
  if (pending_ != nullptr) {
    if (over(pending_->writer.stalled_for(now, stream_), timeouts.client_write)) {
      close(After::kAbort, {.detail = "client-write"});
    }
    return;
  }
  if (tunnel_ != nullptr) {
    tunnel_->check_timeouts(now);
    return;
  }
  if (request_ != nullptr) {
    request_->check_timeouts(now);
    return;
  }
  if (interceptor_ != nullptr) {
    interceptor_->check_timeouts(now);
    return;
  }
  if (head_since_ == MonotonicTime{}) {
    if (over(now - stream_.last_activity(), timeouts.client_idle)) close(After::kClose);
  } else if (over(now - head_since_, timeouts.client_header)) {
    refuse({.status = 408,
            .outcome = Outcome::kBadRequest,
            .detail = "request-timeout",
            .text = "The request did not arrive in time."});
  }
}

}  // namespace encore::server
