// Refusal: a request that is answered in front of cache and origin, with its status, its detail
// and its words; and the response that says so, as far as no protocol frames it. Pure, thread-safe.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/time.h"
#include "proxy/http/parser.h"
#include "proxy/http/reply_text.h"
#include "proxy/observe/outcome.h"
#include "proxy/request/request_view_builder.h"
#include "proxy/settings/rules.h"
#include "proxy/settings/runtime.h"

namespace encore::server {

struct Refusal {
  // Tells if the connection may serve another request: it does for clients that may well ask next
  // for what they get, and ends with those that ask in vain.
  enum class Further : std::uint8_t { kEnds, kMayStay };

  int status = 0;
  Outcome outcome = Outcome::kBadRequest;
  std::string_view detail = {};
  std::string_view text = {};
  std::string fields = {};  // further field lines
  Further further = Further::kEnds;
  std::string content = {};    // instead of the words, application/octet-stream; empty: none
  const Rule* rule = nullptr;  // that holds for the request; null: none
};

// Before a head is complete.
Refusal malformed(const http::ParseError& error);
Refusal request_timeout();
Refusal unfinished_heads();

// By what the head asks for.
Refusal refused_by(const ViewFault& fault);
// By a listener's lists; `why` as Access::refusal() has it.
Refusal refused_by_access(std::string_view why, Refusal::Further further);
// The configuration no longer decrypts the CONNECT that it came in.
Refusal no_longer_decrypted();
// The response to a challenge of ACME: the content of its file, or 404 for a token without one.
Refusal challenge_reply(std::optional<std::string> content);
// The same URL is available by https at this port.
Refusal moved_to_https(std::uint32_t port, const http::RequestHead& head,
                       const http::Target& target);
// The client has to log in; `challenge`: field lines.
enum class Credential : std::uint8_t { kNone, kWrong };
Refusal login_needed(http::FieldId field, Credential sent, std::string_view challenge);
// Inside of a CONNECT nobody logs in: that was its own to do.
Refusal no_login_inside();
Refusal logins_busy();
// The program that knows the users gave no answer.
Refusal login_unchecked();
// Requests come too often; the client may try again after `wait`.
Refusal too_many(std::string_view detail, Nanoseconds wait,
                 Refusal::Further further = Refusal::Further::kEnds);

// Facts that a response to a refused request depends on, apart from the refusal. Borrowed.
struct RefusalFacts {
  const Runtime& runtime;
  const ListenerContext& listener;
  std::string_view http_date;
  std::string_view request_id;  // sent where clients receive it; empty: there is none
};
// Without the lines that frame it, and the empty one.
http::SyntheticReply reply_to(const Refusal& refusal, const RefusalFacts& facts);

}  // namespace encore::server
