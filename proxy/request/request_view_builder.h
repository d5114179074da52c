// RequestViewBuilder: resolves target, route and cache key of a parsed request. One a worker,
// confined to it: the key lies in its buffer.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "config/config.h"
#include "filter/hash.h"
#include "proxy/http/message.h"
#include "proxy/net/address.h"
#include "proxy/observe/outcome.h"
#include "proxy/observe/request_counts.h"
#include "proxy/request/request_view.h"
#include "proxy/settings/runtime.h"

namespace encore::server {

// A connection's knowledge of the listener that accepted it.
struct ListenerContext {
  config::Mode mode = config::Mode::kForward;
  std::size_t index = 0;  // its place in the config
  std::string name = {};  // its address as the config has it
  // TLS of its clients; null: plain HTTP. A closed listener keeps it.
  std::shared_ptr<const net::TlsServer> tls = {};
  bool closed = false;  // a reload has taken it away: nothing more is asked through it
  // Its counters in the worker; never null.
  ListenerPart counts = std::make_shared<ListenerCounts>();
};

// Why a request is refused; status 0: it is not.
struct ViewFault {
  int status = 0;
  Outcome outcome = Outcome::kBadRequest;
  std::string_view detail;
  const Rule* rule = nullptr;  // that says so; null: none
};

// Details of refusals that are counted and logged in addition to the request
// (intake/purge_refusal.h).
inline constexpr std::string_view kPurgeNotAllowed = "purge-not-allowed";
inline constexpr std::string_view kConnectOnReverse = "connect-on-reverse-listener";

class RequestViewBuilder {
 public:
  // All are borrowed; `runtime` is the worker's present one. `activity` learns, for a panic report,
  // whose request was made last; it outlives this.
  RequestViewBuilder(const std::shared_ptr<const Runtime>& runtime,
                     const filter::Seed& identity_seed, ThreadActivity& activity)
      : runtime_(runtime), identity_seed_(identity_seed), activity_(activity) {}
  ~RequestViewBuilder() { activity_.key = {}; }
  RequestViewBuilder(const RequestViewBuilder&) = delete;
  RequestViewBuilder& operator=(const RequestViewBuilder&) = delete;

  // `view` points into `head`, `listener` and, with its key, into this until the next call.
  ViewFault make(const http::RequestHead& head, const ListenerContext& listener,
                 const net::Address& client, RequestView& view);

 private:
  const std::shared_ptr<const Runtime>& runtime_;
  const filter::Seed& identity_seed_;
  ThreadActivity& activity_;
  // The rule that holds for what write_key() wrote, in the view.
  ViewFault find_rule(const http::RequestHead& head, const ListenerContext& listener,
                      const net::Address& client, RequestView& view);
  void write_key(RequestView& view);
  void key_by_digest(RequestView& view);
  void apply_rule(const http::RequestHead& head, bool forward, RequestView& view);
  ViewFault look_at_connect(const http::RequestHead& head, const ListenerContext& listener,
                            const net::Address& client, const RequestView& view);
  ViewFault find_route(bool forward, RequestView& view);
  bool is_route_of_all_readings(const RequestView& view) const;
  static ViewFault look_inside(const http::RequestHead& head, const ListenerContext& listener,
                               RequestView& view);

  // Recently found rules, so that many rules cost a hit next to nothing.
  struct Remembered {
    filter::Hash128 key{};
    const ListenerContext* listener = nullptr;
    const Rule* rule = nullptr;
  };
  static constexpr std::size_t kRemembered = 512;  // a power of two; 16 KiB
  std::vector<Remembered> remembered_;             // empty without rules
  std::uint64_t remembered_of_ = 0;                // Runtime::number

  std::vector<char> key_buffer_;
  std::string other_key_;  // that of a digest, or of objects that are kept apart
};

}  // namespace encore::server
