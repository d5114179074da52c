// Intake: the one road in. It takes the parsed head of a request and what is known of its
// connection, and decides what the request is: refused, a plain hit, an exchange, a tunnel, or one
// that waits for its login. It knows no framing and no socket, so that each protocol of clients is
// a framing and nothing else (docs/decisions/0460). One a worker, confined to it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <variant>

#include "filter/hash.h"
#include "proxy/exchange/cache_lookup.h"
#include "proxy/exchange/coders.h"
#include "proxy/exchange/request_log.h"
#include "proxy/exchange/response_coding.h"
#include "proxy/http/message.h"
#include "proxy/http/reply_text.h"
#include "proxy/intake/client_counter.h"
#include "proxy/intake/client_identity.h"
#include "proxy/intake/login_check.h"
#include "proxy/intake/refusal.h"
#include "proxy/net/loop.h"
#include "proxy/observe/stats.h"
#include "proxy/request/request_context.h"
#include "proxy/request/request_ids.h"
#include "proxy/request/request_view.h"
#include "proxy/request/request_view_builder.h"
#include "proxy/transfer/inflight.h"

namespace encore::server {

class Intake {
 public:
  // All are borrowed and outlive it.
  struct Parts {
    net::Loop& loop;
    const std::shared_ptr<const Runtime>& runtime;  // the present one
    const filter::Seed& identity_seed;
    ThreadActivity& activity;
    WorkerStats& stats;
    RequestLog& log;
    CacheLookup& cache;
    Coders& coders;
    Inflight& inflight;
    PasswordChecks& passwords;
    ClientCounter& transfers;  // requests in progress, by client
    const ConnectionsAllowed& allowed;
  };
  explicit Intake(const Parts& parts)
      : parts_(parts), views_(parts.runtime, parts.identity_seed, parts.activity) {}
  Intake(const Intake&) = delete;
  Intake& operator=(const Intake&) = delete;

  // A request whose head is parsed. All is borrowed.
  struct Arrival {
    http::RequestHead& head;  // loses the credentials that are for us
    std::string_view text;    // that it views, as the exchange keeps it
    const ListenerContext& listener;
    ClientIdentity& identity;
    ClientCounter::Seat& seat;  // taken if the request is in progress behind this
    bool is_tls = false;        // the client speaks TLS with us
  };

  struct Refuse {
    Refusal refusal;
  };
  // The object that was found is a fresh response that goes out unchanged; `form` says which form
  // of it.
  struct Hit {
    HitForm form = HitForm::kIdentity;
  };
  struct Start {
    std::shared_ptr<const RequestContext> request;
  };
  struct Tunnel {
    std::shared_ptr<const RequestContext> request;
    bool is_decrypted = false;
  };
  // Its login is being checked: it is to be brought again when ClientIdentity resumes it.
  struct Wait {};
  using Outcome = std::variant<Refuse, Hit, Start, Tunnel, Wait>;

  // `view` and `found` are empty before. `view` views the arrival, and with its key this until the
  // next call; `found` is what the cache has for the request.
  Outcome take(const Arrival& arrival, RequestView& view, CacheView& found);

  // The receiver of a refusal. All is borrowed.
  struct Refused {
    const ListenerContext& listener;
    const ClientIdentity& identity;
    const RequestView* view = nullptr;  // null: no head was read
  };
  // The response to it, without the lines that frame it, and its record, which lacks what was sent.
  struct Reply {
    http::SyntheticReply text;
    RequestRecord record;
  };
  // Also counts a refused purge, before its client can know: call it once for each.
  Reply reply_to(const Refusal& refusal, const Refused& refused);
  void record(const Reply& reply);

 private:
  std::optional<Outcome> check(const Arrival& arrival, const ListenerPolicy& policy,
                               RequestView& view);
  Outcome start(const Arrival& arrival, RequestView& view, const CacheView& found);
  bool take_seat(const Arrival& arrival, const RequestView& view);
  bool is_decrypted(const RequestContext& connect, bool is_tls);

  const Parts parts_;
  RequestViewBuilder views_;
  RequestIds ids_;
};

}  // namespace encore::server
