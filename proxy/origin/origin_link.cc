#include "proxy/origin/origin_link.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/check.h"
#include "filter/hash.h"
#include "proxy/net/quiescence_detector.h"
#include "proxy/settings/names.h"

namespace encore::server {
namespace {

constexpr std::uint16_t kHttpPort = 80;
constexpr std::uint16_t kHttpsPort = 443;

// How long idle connections wait for the name servers to confirm their addresses, and how long they
// stay in use if these do not answer: an origin does not fail because its name servers do. Why
// connections follow names: docs/decisions/0381.
constexpr Nanoseconds kConfirmPatience = std::chrono::seconds(1);
constexpr Nanoseconds kUnconfirmedUse = std::chrono::seconds(30);

// Failures that leave open what addresses the name has.
bool is_name_unknown(net::ResolveOutcome outcome) {
  return outcome != net::ResolveOutcome::kNotFound && outcome != net::ResolveOutcome::kBadName;
}

// Errors that say nothing of the server: it is this process that can open no connection.
bool is_own_want(int os_error) {
  return os_error == EMFILE || os_error == ENFILE || os_error == ENOBUFS || os_error == ENOMEM ||
         os_error == EADDRNOTAVAIL;
}

bool is_of_tls(net::ConnectOutcome outcome) {
  return outcome == net::ConnectOutcome::kTlsVerify || outcome == net::ConnectOutcome::kTls;
}

// By the key without its realm, which is the same in every proxy and after every start; what has
// none, by its target.
std::uint64_t place_on_ring(const RequestContext& request) {
  const std::string_view text = request.key.empty() ? request.head.target : request.uri_text();
  return filter::hash_key(filter::HashFamily::kXxh3, filter::Seed{}, text).lo;
}

// The same for each address of a network that one client may have.
std::uint64_t place_of_client(const net::Address& client) {
  const auto network = client.network_bytes();
  const std::string_view text(reinterpret_cast<const char*>(network.data()), network.size());
  return filter::hash_key(filter::HashFamily::kXxh3, filter::Seed{}, text).lo;
}

// For a new connection. Idle ones that will not do give way.
bool claim_slot(OriginServices& services, std::string_view key, OriginQueues::Slot& slot) {
  if (!slot) slot = services.lines.claim(key);
  while (!slot && services.pool.give_up(key)) slot = services.lines.claim(key);
  return static_cast<bool>(slot);
}

bool is_too_old(const config::Timeouts& timeouts, MonotonicTime made, MonotonicTime now) {
  return timeouts.pool_age.count() != 0 && now - made >= timeouts.pool_age;
}

// Connections that were made, and verified, under other settings than those of the requests to come
// are nothing for them.
bool is_of_present_settings(const OriginServices& services, const RequestContext& request) {
  return request.runtime.get() == &services.worker.present_runtime();
}

// Why there is no connection for the client.
OriginLink::AttemptFailure why_busy(const OriginServices& services, std::string_view key,
                                    const OriginQueues::Party& client) {
  return services.lines.has_share_left(key, client) ? OriginLink::AttemptFailure::kBusy
                                                    : OriginLink::AttemptFailure::kShare;
}

}  // namespace

OriginLink::OriginLink(OriginServices& services, const RequestContext& request,
                       OriginLinkHandler& handler)
    : services_(services),
      request_(request),
      handler_(handler),
      party_(request.client, request.policy != nullptr && request.policy->trusts(request.client)),
      http2_(services, request),
      waiter_(*this) {
  choose_destination();
}

OriginLink::~OriginLink() { release(Fate::kDrop); }

void OriginLink::choose_destination() {
  if (request_.route != nullptr) {
    const ServerGroup& group = request_.route->group();
    if (group.is_hashed()) {
      place_ = group.is_by_client() ? place_of_client(request_.client) : place_on_ring(request_);
      is_hot_ = group.count_hot(place_);
      if (is_hot_) services_.stats.origin_hot_requests.add();
    }
    ServerLease next = next_server(LastResort::kYes);
    ENCORE_CHECK(static_cast<bool>(next), "a group that nothing was tried of has a server left");
    choose_server(std::move(next));
    return;
  }
  const http::Target& target = request_.target;
  forward_host_ = target.authority.host;
  port_ = target.port();
  std::ranges::transform(forward_host_, forward_host_.begin(), http::to_lower);
  bool tls = target.scheme == http::Scheme::kHttps;
  if (!tls && port_ == kHttpPort && request_.runtime->router.asks_by_https(forward_host_)) {
    tls = true;
    port_ = kHttpsPort;
  }
  if (tls) tls_ = request_.runtime->router.forward_tls();
  forward_pool_key_ =
      (tls ? "forward+https://" : "forward+http://") + forward_host_ + ":" + std::to_string(port_);
  if (parent_of(request_) != nullptr && !tls) {
    forward_pool_key_ = "parent+" + request_.runtime->config.forward.parent.text();
  }
}

void OriginLink::choose_server(ServerLease lease) {
  lease_ = std::move(lease);
  server_ = lease_.server();
  port_ = server_->port;
  tls_ = server_->tls;
}

OriginStream OriginLink::stream() const {
  const Open* open = std::get_if<Open>(&state_);
  ENCORE_CHECK(open != nullptr, "an open link has a stream");
  if (open->http2 != nullptr) [[unlikely]]
    return *open->http2;
  return *open->stream;
}

std::uint64_t OriginLink::moved_bytes() const {
  const Open* open = std::get_if<Open>(&state_);
  if (open == nullptr) return 0;
  return open->http2 != nullptr ? open->http2->moved_bytes() : net::moved_bytes(*open->stream);
}

OriginLink::Progress OriginLink::acquire(Need need) {
  ENCORE_CHECK(std::holds_alternative<Idle>(state_), "one connection is asked for at a time");
  need_ = need;
  return acquire_here();
}

// Uses the present server, or the next one if there is no place in this one's line.
OriginLink::Progress OriginLink::acquire_here() {
  http2_.end_attempt();  // it does not wait for its own
  while (true) {
    // A later request does not go first.
    if (slot_ || !services_.lines.must_wait(pool_key(), party_)) {
      if (take_connection()) return is_open() ? Progress::kOpen : Progress::kPending;
    }
    if (services_.lines.wait(pool_key(), party_, waiter_)) {
      services_.stats.origin_waits.add();
      state_ = InLine{.since = services_.loop.now()};
      return Progress::kPending;
    }
    // There is no place in line: it makes its own instead of waiting for another's.
    if (http2_.is_for(server_) && http2_.stop_waiting()) continue;
    const AttemptFailure why = why_busy(services_, pool_key(), party_);
    if (!choose_other_server(why, false)) {
      count_busy(why);
      return Progress::kNone;
    }
  }
}

// One that is idle, or a new one where there may be one more; false: neither, or the client has its
// share.
bool OriginLink::take_connection() {
  if (!share_) share_ = services_.lines.enter(pool_key(), party_);
  if (!share_) return false;
  if (http2_.is_for(server_)) [[unlikely]] {
    if (take_stream()) return true;
    if (http2_.find(*server_).is_awaited) {
      share_.reset();
      return false;
    }
  }
  if (need_ == Need::kAny && is_of_present_settings(services_, request_)) {
    const MonotonicTime now = services_.loop.now();
    bool is_any_unsure = false;
    const auto is_named = [&](const PooledConnection& connection) {
      is_any_unsure |= now >= connection.named_until;
      return now < connection.named_until;
    };
    if (take_idle(is_named)) return true;
    if (is_any_unsure) {
      resolve(Lookup::kToConfirm);
      return true;
    }
  }
  if (!claim_slot(services_, pool_key(), slot_)) {
    share_.reset();
    return false;
  }
  resolve();
  return true;
}

// `is_named` is asked of those that the request may use otherwise.
bool OriginLink::take_idle(const std::function<bool(const PooledConnection&)>& is_named) {
  const auto may_use = [this](const net::Address& address) {
    if (!request_.is_forward()) return true;
    // Another client may have connected to where this one may not go.
    const DestinationPolicy& policy = request_.runtime->destinations;
    const auto verdict = parent_of(request_) != nullptr
                             ? policy.check_host(request_.client, forward_host_, port_)
                             : policy.check(request_.client, address);
    return verdict == DestinationVerdict::kAllowed;
  };
  const auto will_do = [&](const PooledConnection& connection) {
    return !is_too_old(request_.runtime->config.timeouts, connection.made, services_.loop.now()) &&
           may_use(connection.stream->peer()) && is_named(connection);
  };
  // A reference costs no memory.
  PooledConnection taken = services_.pool.take(pool_key(), std::cref(will_do));
  if (taken.stream == nullptr) return false;
  services_.stats.origin_reuses.add();
  slot_ = std::move(taken.slot);
  connect_time_ = Nanoseconds(-1);
  ++opened_;
  state_ = Open{.stream = std::move(taken.stream),
                .reused = true,
                .http2 = nullptr,
                .count = std::move(taken.count),
                .made = taken.made,
                .named_until = taken.named_until};
  return true;
}

// The name of idle connections was asked for. Takes one whose address it has, or any if the name
// servers did not tell.
bool OriginLink::take_confirmed(const std::expected<net::Resolved, net::ResolveFailure>& result) {
  if (!result && !is_name_unknown(result.error().outcome)) return false;
  if (http2_.is_for(server_)) {
    if (OriginHttp2Connection* const found = http2_.find_confirmed(*server_, result)) {
      services_.stats.origin_reuses.add();
      connect_time_ = Nanoseconds(-1);
      open_stream(*found);
      return true;
    }
  }
  const auto is_named = [&](const PooledConnection& connection) {
    return !result || std::ranges::find(result->addresses, connection.stream->peer()) !=
                          result->addresses.end();
  };
  if (!take_idle(is_named)) return false;
  const Nanoseconds life = result ? result->time_to_live : kUnconfirmedUse;
  std::get<Open>(state_).named_until = services_.loop.now() + life;
  return true;
}

// From the line, when something may be had.
bool OriginLink::on_turn() {
  ENCORE_CHECK(std::holds_alternative<InLine>(state_), "who has a turn waits in line");
  if (!take_connection()) return false;
  if (is_open()) handler_.on_link_open();
  return true;
}

// It is in line because its client has its share of the server: for others there may be
// connections.
bool OriginLink::waits_for_share() const {
  return std::holds_alternative<InLine>(state_) &&
         !services_.lines.has_share_left(pool_key(), party_);
}

// No connection was to be had, which is no failure of the server: another may have one.
OriginLink::Progress OriginLink::end_wait(AttemptFailure why) {
  waiter_.leave();
  state_ = Idle{};
  if (choose_other_server(why, false)) return acquire_here();
  count_busy(why);
  return Progress::kNone;
}

void OriginLink::count_busy(AttemptFailure why) {
  busy_ = why;
  if (why == AttemptFailure::kShare) {
    services_.stats.origin_share_refusals.add();
    return;
  }
  services_.stats.origin_busy.add();
  tally().add_failure(ServerFailure::kBusy);
}

TransferFailure OriginLink::busy_failure() const {
  if (busy_ == AttemptFailure::kShare) return {503, Outcome::kDenied, "origin-share", true};
  return {503, Outcome::kOriginUnreachable, "origin-busy"};
}

void OriginLink::resolve(Lookup what) {
  looked_up_ = services_.loop.now();
  http2_.begin_attempt(server_);
  if (server_ != nullptr && !server_->socket_file.empty()) {
    // A file has no name to be asked for, and its peer is this machine.
    named_until_ = MonotonicTime::max();
    connect({net::Address::loopback_v4(0)});
    return;
  }
  net::Resolver::Name name{.host = host(), .port = port_};
  const config::ServerUrl* parent = parent_of(request_);
  if (parent != nullptr) {
    name = {.host = parent->host, .port = parent->port};
  } else if (request_.is_forward()) {
    name.client = request_.client;
  }
  state_ = Resolving{.query = services_.resolver.resolve(
                         name,
                         [this](std::expected<net::Resolved, net::ResolveFailure> result) {
                           on_resolved(std::move(result));
                         }),
                     .since = services_.loop.now(),
                     .what = what};
}

void OriginLink::on_resolved(std::expected<net::Resolved, net::ResolveFailure> result) {
  auto* resolving = std::get_if<Resolving>(&state_);
  ENCORE_CHECK(resolving != nullptr, "a name is resolved for who has asked");
  const auto query = std::move(resolving->query);  // ends when this call does
  const bool confirms = resolving->what == Lookup::kToConfirm;
  state_ = Idle{};
  if (confirms && take_confirmed(result)) {
    handler_.on_link_open();
    return;
  }
  // No idle connection has the name's address, and a new one needs a slot: it waits for that.
  if (confirms && !claim_slot(services_, pool_key(), slot_)) {
    need_ = Need::kNew;
    tell(acquire_here());
    return;
  }
  if (!result) {
    const net::ResolveOutcome outcome = result.error().outcome;
    if (outcome == net::ResolveOutcome::kNoDescriptors && services_.pool.size() != 0) {
      services_.pool.close_all();  // idle connections give way to a question that is needed
      resolve();
      return;
    }
    const NameFault fault = name_fault(outcome);
    const TransferFailure failure{fault.status, fault.outcome, fault.detail,
                                  outcome == net::ResolveOutcome::kLimit};
    const std::string why = "cannot resolve " + host() + ": " + std::string(to_string(outcome));
    if (fault.is_own_want) {
      warn(why);
      handler_.on_link_failed(failure);
      return;
    }
    const bool timeout = outcome == net::ResolveOutcome::kTimeout;
    go_on_after(
        {.failure = timeout ? AttemptFailure::kConnectTimeout : AttemptFailure::kNotConnected,
         .why = why,
         .kind = ServerFailure::kName},
        failure);
    return;
  }
  named_until_ = services_.loop.now() + result->time_to_live;
  std::vector<net::Address> addresses = std::move(result->addresses);
  if (request_.is_forward()) {
    // The addresses that are connected to are the ones that are checked here.
    const auto verdict = check_destination(request_, forward_host_, port_, addresses);
    if (verdict != DestinationVerdict::kAllowed) {
      handler_.on_link_failed({403, Outcome::kDenied, std::string(to_string(verdict)), true});
      return;
    }
  }
  prefer_untried(addresses);
  connect(std::move(addresses));
}

void OriginLink::connect(std::vector<net::Address> addresses) {
  net::Connector::Options options;
  options.addresses = std::move(addresses);
  const Nanoseconds timeout = request_.runtime->config.timeouts.origin_connect;
  // 0 is no limit in the configuration, and the connector needs one.
  options.timeout = timeout.count() == 0 ? Nanoseconds(std::chrono::hours(1)) : timeout;
  options.tls = tls_;
  options.tls_host = server_ != nullptr ? server_->tls_name : forward_host_;
  if (tls_ != nullptr && parent_of(request_) != nullptr) {
    options.tunnel_to = authority_text(forward_host_, port_);
    options.tunnel_fields = tunnel_via(request_);
  }
  if (server_ != nullptr) options.socket_file = server_->socket_file;
  state_ = Connecting{
      std::make_unique<net::Connector>(
          services_.loop, std::move(options),
          [this](std::expected<std::unique_ptr<net::Stream>, net::ConnectFailure> result) {
            on_connected(std::move(result));
          }),
      services_.loop.now()};
}

void OriginLink::on_connected(
    std::expected<std::unique_ptr<net::Stream>, net::ConnectFailure> result) {
  auto* connecting = std::get_if<Connecting>(&state_);
  ENCORE_CHECK(connecting != nullptr, "a connection comes for who has asked");
  const auto connector = std::move(connecting->connector);  // ends when this call does
  const MonotonicTime since = connecting->since;
  state_ = Idle{};
  if (result) {
    services_.stats.origin_connects.add();
    const ServerTally counted = tally();
    counted.add(&ServerCounts::connects);
    counted.add_time(&ServerCounts::connect_microseconds, services_.loop.now() - since);
    connect_time_ = services_.loop.now() - looked_up_;
    ConnectionCount count =
        server_ == nullptr
            ? ConnectionCount(services_.stats)
            : ConnectionCount(services_.stats, counted, request_.route->group().kept(*server_));
    if (http2_.is_chosen_by(server_, **result)) [[unlikely]] {
      open_stream(http2_.add(*server_, {.stream = std::move(*result),
                                        .slot = std::move(slot_),
                                        .count = std::move(count),
                                        .made = services_.loop.now(),
                                        .named_until = named_until_}));
      handler_.on_link_open();
      return;
    }
    http2_.end_attempt();
    ++opened_;
    state_ = Open{.stream = std::move(*result),
                  .reused = false,
                  .http2 = nullptr,
                  .count = std::move(count),
                  .made = services_.loop.now(),
                  .named_until = named_until_};
    handler_.on_link_open();
    return;
  }
  const net::ConnectFailure& error = result.error();
  if (error.os_error == EMFILE && (services_.pool.size() != 0 || services_.worker.give_up_idle())) {
    services_.pool.close_all();  // idle connections give way to one that is needed
    resolve();
    return;
  }
  const bool timeout = error.outcome == net::ConnectOutcome::kTimeout;
  TransferFailure failure{timeout ? 504 : 502,
                          timeout ? Outcome::kOriginTimeout : Outcome::kOriginUnreachable,
                          "connect-" + std::string(to_string(error.outcome))};
  if (error.outcome == net::ConnectOutcome::kTlsVerify) {
    failure.detail = to_string(error.outcome);
    failure.why = "the origin's certificate is invalid: " + error.certificate_fault;
  }
  if (is_own_want(error.os_error)) {
    warn(error.message);
    handler_.on_link_failed(failure);
    return;
  }
  Attempt attempt{
      .failure = timeout ? AttemptFailure::kConnectTimeout : AttemptFailure::kNotConnected,
      .why = error.message};
  if (is_of_tls(error.outcome)) attempt.kind = ServerFailure::kTls;
  go_on_after(attempt, failure);
}

// No connection came of it: on to the next way, or the end.
void OriginLink::go_on_after(const Attempt& attempt, const TransferFailure& otherwise) {
  if (!move_on(attempt)) {
    handler_.on_link_failed(otherwise);
    return;
  }
  state_ = Idle{};  // the earlier question is void
  http2_.end_attempt();
  need_ = Need::kNew;
  tell(acquire_here());
}

void OriginLink::tell(Progress progress) {
  switch (progress) {
    case Progress::kOpen:
      handler_.on_link_open();
      return;
    case Progress::kPending:
      return;
    case Progress::kNone:
      handler_.on_link_failed(busy_failure());
      return;
  }
}

void OriginLink::warn(const std::string& why) {
  const MonotonicTime now = services_.loop.now();
  if (server_ != nullptr) return services_.warnings.tell(server_->url, why, now);
  const std::string_view key = forward_pool_key_;
  services_.forward_warnings.tell(key.substr(key.find('+') + 1), why, now);
}

void OriginLink::release(Fate fate) {
  // In this order: what the pool gets is idle before its client may have another.
  const OriginQueues::Share share = std::move(share_);
  OriginQueues::Slot slot = std::move(slot_);
  waiter_.leave();
  http2_.end_attempt();
  if (std::holds_alternative<Idle>(state_)) return;
  auto state = std::exchange(state_, Idle{});
  auto* open = std::get_if<Open>(&state);
  if (open == nullptr) return;
  if (open->http2 != nullptr) [[unlikely]] {
    open->http2->release();
    // It may be what calls.
    services_.loop.defer([gone = std::move(open->http2)] {});
    return;
  }
  std::unique_ptr<net::Stream> stream = std::move(open->stream);
  stream->set_handler(nullptr);
  if (fate == Fate::kKeep && is_of_present_settings(services_, request_) &&
      !services_.worker.is_draining() &&
      !is_too_old(request_.runtime->config.timeouts, open->made, services_.loop.now())) {
    services_.pool.put(pool_key(),
                       {.stream = std::move(stream),
                        .slot = std::move(slot),
                        .count = std::move(open->count),
                        .made = open->made,
                        .named_until = open->named_until},
                       {.per_server = request_.runtime->config.upstream.pool_per_server,
                        .in_all = services_.worker.idle_connections_max()});
    return;
  }
  stream->pause_reading();
  stream->close();
  // It may be what calls.
  services_.loop.defer([gone = std::move(stream)] {});
}

namespace {

// The use that a given-away connection makes of its server's number and of its client's share.
class Place {
 public:
  Place(OriginQueues::Share share, OriginQueues::Slot slot, ConnectionCount count)
      : share_(std::move(share)), slot_(std::move(slot)), count_(std::move(count)) {}

 private:
  OriginQueues::Share share_;
  OriginQueues::Slot slot_;
  ConnectionCount count_;
};

}  // namespace

SwitchedConnection OriginLink::hand_over() {
  ENCORE_CHECK(is_open(), "what is open is given away");
  auto state = std::exchange(state_, Idle{});
  Open& open = std::get<Open>(state);
  std::unique_ptr<net::Stream> stream = std::move(open.stream);
  stream->pause_reading();
  stream->set_handler(nullptr);
  return {
      .place = std::make_shared<Place>(std::move(share_), std::move(slot_), std::move(open.count)),
      .origin = std::move(stream)};
}

void OriginLink::check_timeouts(MonotonicTime now) {
  const config::Timeouts& timeouts = request_.runtime->config.timeouts;
  const auto over = [now](MonotonicTime since, Nanoseconds limit) {
    return limit.count() != 0 && now - since >= limit;
  };
  if (const auto* waiting = std::get_if<InLine>(&state_)) {
    if (over(waiting->since, timeouts.origin_connect)) {
      tell(end_wait(why_busy(services_, pool_key(), party_)));
    }
    return;
  }
  // The connector has its own limit; this one is for the name.
  const auto* resolving = std::get_if<Resolving>(&state_);
  if (resolving == nullptr) return;
  if (resolving->what == Lookup::kToConfirm && over(resolving->since, kConfirmPatience)) {
    // The name servers are silent: the lookup goes on without this request.
    const auto ended = std::exchange(state_, Idle{});
    const net::ResolveFailure failure{.outcome = net::ResolveOutcome::kTimeout, .message = {}};
    if (take_confirmed(std::unexpected(failure))) return handler_.on_link_open();
    need_ = Need::kNew;
    tell(acquire_here());
    return;
  }
  if (!over(resolving->since, timeouts.dns)) return;
  const std::string why = "cannot resolve " + host() + ": timeout";
  go_on_after(
      {.failure = AttemptFailure::kConnectTimeout, .why = why, .kind = ServerFailure::kName},
      {504, Outcome::kOriginTimeout, "dns-timeout"});
}

}  // namespace encore::server
