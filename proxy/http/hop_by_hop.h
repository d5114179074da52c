// Which fields end at this proxy (RFC 9110 7.6.1), and whether a connection persists (RFC 9112
// 9.3). Pure, thread-compatible.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "proxy/http/message.h"

namespace encore::http {

// The hop-by-hop fields of one head: those of the protocol, and those its Connection field lists.
// Connection cannot remove a field that messages depend on (Host, Content-Length, Cache-Control,
// Authorization, ...): a sender that lists one is ignored in that. Cheap to build: without a
// Connection field there is nothing to read. A Connection that lists more than kListedNamesMax
// names we do not know costs the head all such fields, rather than us the search. Borrows the head.
class HopByHop {
 public:
  static constexpr std::size_t kListedNamesMax = 64;

  explicit HopByHop(const Fields& fields) noexcept;
  // True if the field must be neither forwarded nor stored. Also true for Content-Length's
  // counterpart Transfer-Encoding: the framing of the next hop is written anew. Trailer is kept:
  // it describes the trailers, which are forwarded.
  bool drops(const Field& field) const noexcept {
    return field.id != FieldId::kOther ? dropped_.has(field.id) : others_ != 0 && is_listed(field);
  }

 private:
  bool is_listed(const Field& field) const noexcept;

  const Fields& fields_;
  FieldSet dropped_;
  std::size_t others_ = 0;  // names outside the table that Connection lists
};

// A connection's fate after this message as far as the head tells: HTTP/1.1 unless "close",
// HTTP/1.0 only with "keep-alive" ("close" wins). Proxy-Connection is honoured as clients of old
// send it, in requests without Connection.
bool keep_alive(const RequestHead& head) noexcept;
bool keep_alive(const ResponseHead& head) noexcept;

// Protocols that one request may offer; those behind them are left out.
inline constexpr std::size_t kUpgradeProtocolsMax = 16;
// Returns the protocols of a request to upgrade to (RFC 9110 7.8), as sent to the next hop: the
// members of Upgrade, in their order. Empty without "upgrade" in Connection, and in HTTP/1.0.
// Members that are not protocols by their form are left out. So are other versions of HTTP and TLS
// (h2c), which a server may ignore: a tunnel with HTTP in it would bypass all decisions here. Why
// other protocols go through: docs/decisions/0220.
std::string asked_upgrade(const RequestHead& head);
// Returns the protocols that a 101 switches to: its Upgrade, if all of that was `asked` for; else
// empty.
std::string switched_protocol(std::string_view asked, const ResponseHead& head);

// True if TE lists "trailers" (RFC 9110 10.1.4). Not in HTTP/1.0, which has no chunks for them.
bool accepts_trailers(const RequestHead& head) noexcept;

// True if a field may stand in a trailer section and be merged or forwarded from there (RFC 9110
// 6.5.1): not framing, routing, authentication, request modifiers or content description.
bool allowed_in_trailer(const Field& field) noexcept;

}  // namespace encore::http
