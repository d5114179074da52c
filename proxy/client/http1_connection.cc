#include "proxy/client/http1_connection.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "proxy/client/http1_text.h"
#include "proxy/http/hop_by_hop.h"
#include "proxy/intake/plain_hit.h"
#include "proxy/intake/revocation.h"
#include "proxy/net/proxy_header.h"

namespace encore::server {
namespace {

std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Refusals one behind the other that leave the connection open. More would spare a client who asks
// for nothing else the connections that it costs him. Why a connection survives a refusal at all:
// docs/decisions/0232.
constexpr std::uint8_t kRefusalsInRowMax = 3;

// True if the next request follows its head, and nothing else was sent ahead: not by a client that
// has asked for a tunnel or another protocol, and may speak it already without waiting.
bool ends_with_its_head(const RequestView& view) {
  const http::RequestHead& head = *view.head;
  const bool has_content =
      view.framing.kind != http::BodyKind::kNone &&
      (view.framing.kind != http::BodyKind::kLength || view.framing.length != 0);
  return !has_content && head.method != http::Method::kConnect &&
         !head.fields.has(http::FieldId::kUpgrade) && http::keep_alive(head);
}

}  // namespace

Http1Connection::Http1Connection(const ClientServices& services, const ListenerContext& listener,
                                 net::Socket socket, const net::Address& peer,
                                 net::TlsSessionPointer tls)
    : services_(services),
      listener_(listener),
      own_stream_(new net::Stream(services.loop, std::move(socket), peer, this, std::move(tls))),
      stream_(*own_stream_),
      identity_(peer, [this] { resume(); }),
      replies_(services, listener, identity_, stream_, *this) {
  // One past the largest head is what shows that it is too large.
  stream_.keep_at_least(
      std::max(services.runtime->head_limits.head_bytes_max, net::kProxyHeaderBytesMax) + 1);
}

Http1Connection::~Http1Connection() = default;

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
    } else if (is_idle() && (has_peer_ended() || closes_untold())) {
      close(After::kClose);
    }
  }
  // Kept input is counted when it is used.
  services_.stats.bytes_from_clients.add(used);
  listener_.counts->received_bytes.add(used);
  return used;
}

// Answers as many requests as can be answered now, in one write at the end.
std::size_t Http1Connection::handle_input(std::string_view input) {
  std::size_t used = 0;
  if (identity_.awaits_header()) {
    used = take_header(input);
    if (used == 0) return is_closed() ? input.size() : 0;
    if (handshake_ != nullptr) return used;  // TLS follows
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
    if (replies_.is_pending()) break;
    if (phase_ == Phase::kLast) {
      used = input.size();  // nothing that follows is a request
      break;
    }
    if (answered++ == services_.runtime->config.limits.pipeline) {
      later().schedule();  // others have their turn
      break;
    }
    if (may_be_preface_ && look_at_preface(input.substr(used)) == Preface::kWhole) {
      speak_http2();
      return used;
    }
    const auto taken = parse(input.substr(used));
    if (!taken) break;
    may_be_preface_ = false;
    used += *taken;
  }
  (void)replies_.flush();
  return used;
}

// Takes the next request. Returns the bytes used; nothing: it is not all there.
std::optional<std::size_t> Http1Connection::parse(std::string_view input) {
  http::RequestHead& head = services_.http1.head;
  http::ParseError error;
  std::string encoded;  // all that follows sees the target so
  auto status = http::ParseStatus::kIncomplete;
  if (!may_be_preface_ || look_at_preface(input) == Preface::kNone) {
    status = http::parse_lax_request(input, services_.runtime->head_limits, progress_, head, error,
                                     encoded);
  }
  if (status == http::ParseStatus::kIncomplete) {
    if (head_since_ == MonotonicTime{}) head_since_ = services_.loop.now();
    services_.keeper.note_unfinished_head(*this, input.size());
    if (!has_peer_ended()) return std::nullopt;
    // Its rest will not come. Earlier responses reach the client, however slowly it takes them.
    if (!replies_.flush()) return std::nullopt;
    phase_ = Phase::kLast;
    if (!replies_.is_pending()) {
      close(After::kClose);
    } else {
      end_unfinished_head();
    }
    return std::nullopt;
  }
  progress_ = {};
  if (head_since_ != MonotonicTime{}) end_unfinished_head();
  if (status == http::ParseStatus::kBad) {
    refuse(malformed(error));
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
  refuse(unfinished_heads());
}

// A plain hit is on its way at the end of this read; everything else goes the long way. False: it
// is to be looked at again when it is known whose it is.
bool Http1Connection::handle_request(std::string_view head_bytes) {
  if (identity_.may_change()) replies_.forget_client();
  RequestView view;
  CacheView found;
  Intake::Outcome outcome = services_.intake.take({.head = services_.http1.head,
                                                   .text = head_bytes,
                                                   .listener = listener_,
                                                   .identity = identity_,
                                                   .seat = transfer_,
                                                   .is_tls = stream_.is_tls()},
                                                  view, found);
  if (const auto* hit = std::get_if<Intake::Hit>(&outcome)) [[likely]] {
    refusals_in_row_ = 0;
    if (!http::keep_alive(*view.head) || is_draining()) phase_ = Phase::kLast;
    const bool is_kept = phase_ == Phase::kOpen;
    replies_.add_hit({.view = view,
                      .text = head_bytes,
                      .form = hit->form,
                      .is_kept = is_kept,
                      .is_last_read = is_last_read_ || !is_kept},
                     found);
    if (phase_ == Phase::kLast && !replies_.is_pending()) close(After::kClose);
    return true;
  }
  if (std::holds_alternative<Intake::Wait>(outcome)) return false;
  if (const auto* refused = std::get_if<Intake::Refuse>(&outcome)) {
    refuse(refused->refusal, &view);
    return true;
  }
  refusals_in_row_ = 0;
  ENCORE_CHECK(request_ == nullptr && tunnel_ == nullptr, "one request follows the other");
  // Replies keep the order of requests: what was gathered goes first.
  if (!replies_.flush()) {
    replies_.record_unsent(view);
  } else if (auto* start = std::get_if<Intake::Start>(&outcome)) {
    request_.reset(
        new Http1Stream(*this, services_.exchange, std::move(start->request), std::move(found)));
    if (!replies_.is_pending()) request_->start();
  } else {
    open(std::get<Intake::Tunnel>(outcome));
  }
  return true;
}

void Http1Connection::open(Intake::Tunnel& tunnel) {
  if (tunnel.is_decrypted) {
    const bool takes_http2 = services_.runtime->config.intercept.http2 &&
                             services_.runtime->takes_http2(listener_.index);
    interceptor_.reset(new Interceptor(services_.intercept, *this, stream_,
                                       std::move(tunnel.request),
                                       takes_http2 ? InterceptHttp2::kOn : InterceptHttp2::kOff));
  } else {
    tunnel_.reset(new TunnelExchange(services_.tunnel, *this, std::move(tunnel.request)));
  }
  if (!replies_.is_pending()) start_next();
}

// Answers with an error, and closes where the next request's beginning is not certain, or where
// nothing but what is refused comes.
void Http1Connection::refuse(const Refusal& refusal, const RequestView* view) {
  if (identity_.awaits_header()) {
    // The client did not begin with a PROXY header.
    services_.stats.proxy_headers_bad.add();
    return close(After::kClose);
  }
  bool is_gone = !replies_.flush();
  const Intake::Refused refused{.listener = listener_, .identity = identity_, .view = view};
  Intake::Reply reply = services_.intake.reply_to(refusal, refused);
  const bool stays = refusal.further == Refusal::Further::kMayStay && view != nullptr &&
                     ends_with_its_head(*view) && !is_draining() &&
                     refusals_in_row_ < kRefusalsInRowMax;
  ++refusals_in_row_;
  std::string& text = reply.text.head;
  text += connection_field(view == nullptr ? http::Version::kHttp11 : view->head->version, stays);
  const std::size_t fields_bytes = text.size() - kHeadEnd.size();
  text += kHeadEnd;
  text += reply.text.body;
  if (!stays && !is_gone) phase_ = Phase::kLast;
  reply.record.sent_bytes = text.size();
  if (stays) reply.record.connection = ClientConnectionEnd::kKept;
  std::string fields;
  if (services_.runtime->logs_response_fields) fields = text.substr(0, fields_bytes);
  reply.record.response_fields = fields;
  if (!is_gone) {
    const std::uint64_t before = stream_.bytes_written();
    replies_.send(std::move(text));
    is_gone = is_closed() && stream_.bytes_written() - before < reply.record.sent_bytes;
  }
  if (is_gone) set_unsent(reply.record);
  services_.intake.record(reply);
}

// Goes on at the end of this turn or in the next (schedule), or with the next share
// (wait_for_share).
net::Deferred& Http1Connection::later() {
  if (later_ == nullptr) {
    later_ = std::make_unique<net::Deferred>(services_.loop, [this] {
      if (is_closed()) return;
      if (replies_.is_pending()) {
        pump_replies();
      } else if (is_idle()) {
        resume();
      }
    });
  }
  return *later_;
}

// Nothing is in progress: reads what the client has sent meanwhile, or closes.
void Http1Connection::next_request() {
  if (input_ == Input::kPresented) return;  // the rest of the input is being read
  if ((has_peer_ended() || closes_untold()) && stream_.kept_bytes() == 0) {
    close(After::kClose);
  } else {
    resume();
  }
}

void Http1Connection::on_stream_end(After after) {
  transfer_.leave();
  if (is_closed()) return;
  if (after != After::kNext || closes_untold()) {
    close(after == After::kNext ? After::kClose : after);
    return;
  }
  services_.retired.add(std::move(request_));
  next_request();
}

void Http1Connection::on_switched(std::shared_ptr<const RequestContext> request, Http1Writer writer,
                                  SwitchedConnection switched) {
  ENCORE_CHECK(!is_closed(), "the request of a closed connection has ended");
  services_.retired.add(std::move(request_));
  tunnel_.reset(new TunnelExchange(services_.tunnel, *this, std::move(request)));
  tunnel_->start_switched(std::move(writer), std::move(switched));
}

void Http1Connection::on_unfinished(std::size_t bytes) {
  services_.keeper.note_unfinished_head(*this, bytes);
}

void Http1Connection::on_hands_shaken() {
  end_unfinished_head();
  if (closes_untold()) close(After::kClose);
}

void Http1Connection::on_splice(std::shared_ptr<const RequestContext> connect,
                                std::uint64_t answer_bytes) {
  if (is_closed()) return;
  end_unfinished_head();
  services_.retired.add(std::move(interceptor_));
  stream_.set_handler(this);
  tunnel_.reset(new TunnelExchange(services_.tunnel, *this, std::move(connect)));
  tunnel_->start_answered(answer_bytes);
}

void Http1Connection::on_inside(InterceptedConnect inside) {
  if (is_closed()) return;
  end_unfinished_head();
  transfer_.leave();
  services_.retired.add(std::move(interceptor_));
  identity_.enter(std::move(inside));
  if (services_.log.is_logging()) identity_.set_tls(client_tls_of(stream_));
  if (stream_.tls_facts().alpn == "h2") return speak_http2();
  stream_.set_handler(this);
  resume();
}

void Http1Connection::on_intercept_end(After after) {
  if (!is_closed()) close(after);
}

// `why` belongs to what is in progress.
void Http1Connection::close(After how, ClientGone why) {
  if (is_closed()) return;
  why.unsent = unsent_after(how);
  ENCORE_CHECK(how != After::kNext, "a connection that is closed serves nobody");
  phase_ = Phase::kClosed;
  transfer_.leave();
  replies_.end(why);
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
  Activity activity{.identity = identity_};
  if (tunnel_ != nullptr) {
    activity.request = &tunnel_->request();
    if (tunnel_->origin() != nullptr) activity.origin = &tunnel_->origin()->peer();
  } else if (interceptor_ != nullptr) {
    activity.request = &interceptor_->connect();
  } else if (request_ != nullptr) {
    activity.request = &request_->request();
  } else {
    activity.request = replies_.request();
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
  if (replies_.is_pending()) return pump_replies();
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
  if (handshake_ != nullptr) {
    if (!has_passed(handshake_->lasts(now), timeouts.tls_handshake)) return;
    handshake_->count_failure();
    close(After::kDrop);
    return;
  }
  if (replies_.is_pending()) {
    if (has_passed(replies_.writer()->stalled_for(now, stream_), timeouts.client_write)) {
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
    if (has_passed(now - stream_.last_activity(), timeouts.client_idle)) close(After::kClose);
  } else if (has_passed(now - head_since_, timeouts.client_header)) {
    refuse(request_timeout());
  }
}

void Http1Connection::on_pumped(Http1Writer::Status status) {
  switch (status) {
    case Http1Writer::Status::kDone:
      if (phase_ == Phase::kLast && request_ == nullptr) close(After::kClose);
      return;
    case Http1Writer::Status::kBlocked:
    case Http1Writer::Status::kWaiting:
      return;
    case Http1Writer::Status::kMore:
      later().wait_for_share();
      return;
    case Http1Writer::Status::kBroken:
      close(After::kClose);  // its length shows that it is not whole
      return;
    case Http1Writer::Status::kDead:
      close(After::kAbort, {.detail = "reset"});
      return;
  }
}

// When the client has taken what it was slow to take, what waited behind that goes on.
void Http1Connection::pump_replies() {
  replies_.pump();
  if (!is_closed() && !replies_.is_pending()) start_next();
}

void Http1Connection::start_next() {
  if (request_ != nullptr) {
    request_->start();
  } else if (tunnel_ != nullptr) {
    tunnel_->start();
  } else if (interceptor_ != nullptr) {
    interceptor_->start();
  } else {
    next_request();
  }
}

Http1Writer* Http1Connection::writer() const {
  if (replies_.is_pending()) return replies_.writer();
  return request_ != nullptr ? &request_->writer() : nullptr;
}

void Http1Connection::check_read_rate(MonotonicTime now) {
  Http1Writer* const writer = this->writer();
  if (!is_closed() && writer != nullptr && replies_.is_too_slow(*writer, now)) cut_reader();
}

std::optional<SlowReader> Http1Connection::slow_reader() const {
  const Http1Writer* const writer = this->writer();
  return is_closed() || writer == nullptr ? std::nullopt : replies_.slow_reader(*writer);
}

bool Http1Connection::may_be_given_up() const {
  return is_idle() && !is_closed() && head_since_ == MonotonicTime{} && stream_.kept_bytes() == 0;
}

void Http1Connection::cut(const ClientGone& why) {
  After how = After::kClose;
  if (request_ != nullptr) how = request_->after_cut();
  if (tunnel_ != nullptr) how = tunnel_->after_cut();
  close(how, why);
}

void Http1Connection::cut_reader() {
  if (is_closed()) return;
  if (!replies_.is_pending() && request_ != nullptr) {
    request_->cut();
    return;
  }
  services_.stats.slow_readers_cut.add();
  replies_.end({.outcome = Outcome::kSlowReader});
  close(After::kAbort);
}

}  // namespace encore::server
