// The beginning of a client's connection, in front of its first request: the PROXY header, the TLS
// handshake, and which protocol follows.
#include <utility>

#include "proxy/client/http1_connection.h"
#include "proxy/client/http2_connection.h"
#include "proxy/net/tls_server.h"

namespace encore::server {

void Http1Connection::begin() {
  if (policy() != nullptr && policy()->proxy_protocol) {
    identity_.await_header();
    // It is due immediately, as the rest of a head is.
    head_since_ = services_.loop.now();
    services_.keeper.note_unfinished_head(*this, 0);
  }
  if (stream_.is_tls()) (void)shake_hands();
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
        const bool is_told = policy() != nullptr && !policy()->client_field.empty();
        if (is_told || services_.log.is_logging()) identity_.set_tls(client_tls_of(stream_));
        if (stream_.tls_facts().alpn == "h2") return speak_http2();
        if (closes_untold()) close(After::kClose);
      });
  const net::Address& client = identity_.client();
  const bool counted = policy() == nullptr || !policy()->trusts(client);
  const std::uint32_t limit = services_.runtime->config.limits.tls_handshakes_per_client;
  if (handshake_->begin(client, counted ? limit : 0, services_.loop.now())) return true;
  close(After::kDrop);
  return false;
}

// Takes the PROXY header in front of all requests. Returns the bytes used; none: it is not all
// there, or the connection ends.
std::size_t Http1Connection::take_header(std::string_view input) {
  using Header = ClientIdentity::Header;
  ClientIdentity::HeaderTaken taken;
  if (policy() != nullptr) taken = identity_.take_header(*policy(), input);
  if (taken.header == Header::kIncomplete && !has_peer_ended()) {
    services_.keeper.note_unfinished_head(*this, input.size());
    return 0;
  }
  if (taken.header != Header::kTaken) {
    refuse({});
    return 0;
  }
  end_unfinished_head();
  const net::Address& client = identity_.client();
  const std::uint32_t limit = client_limit(*services_.runtime->config.limits.connections_per_client,
                                           services_.keeper.connections_allowed());
  seat.leave();  // the peer was counted where a reload has made it one who speaks for others
  if (limit != 0 && !policy()->trusts(client) && !seat.take(services_.clients, client, limit)) {
    services_.stats.connections_refused.add();
    close(After::kClose);
    return 0;
  }
  if (listener_.tls == nullptr) return taken.used;
  net::TlsSessionPointer session = listener_.tls->session();
  if (session == nullptr || !stream_.start_tls(std::move(session))) {
    services_.stats.connections_refused.add();
    close(After::kDrop);
    return 0;
  }
  return shake_hands() ? taken.used : 0;
}

// By TLS, ALPN has said what the client speaks.
Http1Connection::Preface Http1Connection::look_at_preface(std::string_view input) const {
  if (input.front() != kHttp2Preface.front() || stream_.is_tls() ||
      !services_.runtime->takes_http2(listener_.index)) {
    return Preface::kNone;
  }
  if (input.starts_with(kHttp2Preface)) return Preface::kWhole;
  return kHttp2Preface.starts_with(input) ? Preface::kBegun : Preface::kNone;
}

void Http1Connection::speak_http2() {
  end_unfinished_head();
  phase_ = Phase::kClosed;
  auto made = std::make_unique<Http2Connection>(services_, listener_, std::move(own_stream_),
                                                std::move(identity_));
  Http2Connection& connection = *made.release();
  services_.keeper.replace(*this, connection);
  connection.begin();
}

}  // namespace encore::server
