#include "proxy/client/client_handshake.h"

#include <string_view>
#include <utility>

#include "base/check.h"
#include "proxy/observe/log.h"

namespace encore::server {
namespace {

// To one who has begun with HTTP where TLS is spoken.
constexpr std::string_view kPlainRefusal =
    "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\n"
    "Content-Length: 49\r\nConnection: close\r\n\r\n"
    "This port speaks TLS: ask it by https, not http.\n";
static_assert(kPlainRefusal.size() - kPlainRefusal.find("This port") == 49);

}  // namespace

ClientHandshake::~ClientHandshake() { leave(); }

bool ClientHandshake::begin(const net::Address& client, std::uint32_t limit, MonotonicTime now) {
  if (limit != 0 && !seat_.take(parts_.handshakes, client, limit)) {
    parts_.stats.tls_refused.add();
    return false;
  }
  since_ = now;
  parts_.stats.tls_handshaking.add();
  parts_.keeper.note_unfinished_head(parts_.connection, 0);
  parts_.connection.stream().set_handler(this);
  return true;
}

void ClientHandshake::leave() {
  if (!is_under_way()) return;
  since_ = {};
  seat_.leave();
  parts_.stats.tls_handshaking.subtract();
  parts_.keeper.drop_unfinished_head(parts_.connection);
  parts_.connection.stream().set_handler(&parts_.handler);
}

void ClientHandshake::on_ready(net::Stream& stream) {
  leave();
  parts_.stats.tls_handshakes.add();
  if (stream.is_tls_resumed()) parts_.stats.tls_resumed.add();
  OnEnd on_end = std::move(on_end_);
  on_end(true);
}

void ClientHandshake::on_error(net::Stream& stream, net::CloseReason reason, int) {
  leave();
  count_failure();
  const std::string why = stream.tls_error();
  log::debug("TLS with {} failed: {}", stream.peer().ip_string(),
             why.empty() ? to_string(reason) : std::string_view(why));
  if (reason == net::CloseReason::kTlsPlainHttp) {
    parts_.stats.tls_plain_http.add();
    parts_.stats.bytes_to_clients.add(kPlainRefusal.size());
    stream.refuse_plain(kPlainRefusal);
  }
  OnEnd on_end = std::move(on_end_);
  on_end(false);
}

// Until it is done a stream has nothing else to tell.
std::size_t ClientHandshake::on_data(net::Stream&, std::span<const std::byte>) {
  ENCORE_CHECK(false, "bytes come behind a handshake");
  return 0;
}
void ClientHandshake::on_writable(net::Stream&) {
  ENCORE_CHECK(false, "nothing is written before a handshake is done");
}
void ClientHandshake::on_eof(net::Stream&) {
  ENCORE_CHECK(false, "an end within a handshake is an error");
}

std::shared_ptr<const ClientTls> client_tls_of(const net::Stream& stream) {
  net::TlsFacts facts = stream.tls_facts();
  return std::make_shared<const ClientTls>(ClientTls{.version = std::string(facts.version),
                                                     .cipher = std::string(facts.cipher),
                                                     .server_name = std::string(facts.server_name),
                                                     .resumed = facts.resumed,
                                                     .subject = std::move(facts.subject),
                                                     .fingerprint = std::move(facts.fingerprint)});
}

}  // namespace encore::server
