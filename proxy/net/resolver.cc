#include "proxy/net/resolver.h"

#include <event2/dns.h>

#include <algorithm>
#include <cstring>
#include <list>
#include <optional>

#include "proxy/net/host_names.h"
#include "proxy/net/loop.h"
#include "proxy/net/timer.h"

namespace encore::net {
namespace {

constexpr Nanoseconds kKnownTimeToLive = std::chrono::hours(24);
// How long one family's addresses wait for the other's (RFC 8305 3).
constexpr Nanoseconds kOtherFamily = std::chrono::milliseconds(50);

Address make_address(const in_addr& ip, std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr = ip;
  return Address(address);
}

Address make_address(const in6_addr& ip, std::uint16_t port) {
  sockaddr_in6 address{};
  address.sin6_family = AF_INET6;
  address.sin6_port = htons(port);
  address.sin6_addr = ip;
  return Address(address);
}

template <typename Ip>
std::vector<Address> make_addresses(const void* ips, int count, std::uint16_t port) {
  std::vector<Address> all;
  for (int i = 0; i < count; ++i) {
    Ip ip;
    std::memcpy(&ip, static_cast<const std::byte*>(ips) + static_cast<std::size_t>(i) * sizeof ip,
                sizeof ip);
    all.push_back(make_address(ip, port));
  }
  return all;
}

std::optional<ResolveOutcome> outcome_of(int result) {
  switch (result) {
    case DNS_ERR_NONE:
      return std::nullopt;
    case DNS_ERR_NOTEXIST:
    case DNS_ERR_NODATA:
      return ResolveOutcome::kNotFound;
    case DNS_ERR_TIMEOUT:
      return ResolveOutcome::kTimeout;
    default:
      return ResolveOutcome::kRefused;
  }
}

ResolveFailure failure_of(ResolveOutcome outcome, std::string_view host) {
  constexpr std::string_view kWhy[] = {"no such name", "the name server does not answer",
                                       "the name server refused", "not a host name"};
  return {outcome, std::string(host) + ": " + std::string(kWhy[static_cast<std::size_t>(outcome)])};
}

// Interleaves, the first family first.
std::vector<Address> in_turns(const std::vector<Address>& first,
                              const std::vector<Address>& second) {
  std::vector<Address> all;
  for (std::size_t i = 0; i < std::max(first.size(), second.size()); ++i) {
    if (i < first.size()) all.push_back(first[i]);
    if (i < second.size()) all.push_back(second[i]);
  }
  return all;
}

class DnsQuery;

// One question to DNS. It outlives the query that is destroyed before the answer: evdns holds it.
struct Leg {
  DnsQuery* query = nullptr;
  std::list<Leg>* legs = nullptr;
  std::list<Leg>::iterator self;
  std::uint16_t port = 0;
};

// Answers what is known already.
class KnownQuery final : public Resolver::Query {
 public:
  KnownQuery(Loop& loop, std::expected<Resolved, ResolveFailure> answer, Resolver::OnDone on_done)
      : answer_(std::move(answer)), on_done_(std::move(on_done)), step_(loop, [this] {
          Resolver::OnDone done = std::move(on_done_);
          done(std::move(answer_));
        }) {
    step_.schedule();
  }

 private:
  std::expected<Resolved, ResolveFailure> answer_;
  Resolver::OnDone on_done_;
  Deferred step_;
};

class DnsQuery final : public Resolver::Query {
 public:
  DnsQuery(Loop& loop, std::string host, Resolver::OnDone on_done)
      : host_(std::move(host)),
        on_done_(std::move(on_done)),
        wait_(loop, [this] { finish(); }),
        step_(loop, [this] { finish(); }) {}
  ~DnsQuery() override {
    for (Leg* leg : legs_) {
      if (leg != nullptr) leg->query = nullptr;
    }
  }

  void ask(evdns_base* dns, std::list<Leg>& legs, std::uint16_t port, int flags) {
    for (std::size_t i = 0; i < 2; ++i) {
      Leg& leg = legs.emplace_back();
      leg = {.query = this, .legs = &legs, .self = std::prev(legs.end()), .port = port};
      legs_[i] = &leg;
      const bool v4 = i == 0;
      const auto* asked = v4 ? evdns_base_resolve_ipv4(dns, host_.c_str(), flags, &on_answer, &leg)
                             : evdns_base_resolve_ipv6(dns, host_.c_str(), flags, &on_answer, &leg);
      if (asked != nullptr) continue;
      legs_[i] = nullptr;
      legs.erase(leg.self);
      worst_ = ResolveOutcome::kRefused;
    }
    if (legs_[0] == nullptr && legs_[1] == nullptr) step_.schedule();
  }

 private:
  static void on_answer(int result, char type, int count, int ttl, void* addresses, void* context) {
    auto& leg = *static_cast<Leg*>(context);
    DnsQuery* query = leg.query;
    std::vector<Address> found;
    if (result == DNS_ERR_NONE && type == DNS_IPv4_A) {
      found = make_addresses<in_addr>(addresses, count, leg.port);
    } else if (result == DNS_ERR_NONE && type == DNS_IPv6_AAAA) {
      found = make_addresses<in6_addr>(addresses, count, leg.port);
    }
    if (query != nullptr) query->answered(&leg, result, std::move(found), ttl);
    leg.legs->erase(leg.self);
  }

  void answered(Leg* leg, int result, std::vector<Address> found, int ttl) {
    const std::size_t family = leg == legs_[0] ? 0 : 1;
    legs_[family] = nullptr;
    if (found.empty()) {
      const auto outcome = outcome_of(result).value_or(ResolveOutcome::kNotFound);
      if (worst_ == ResolveOutcome::kNotFound) worst_ = outcome;
    } else {
      found_[family] = std::move(found);
      time_to_live_ = std::min<Nanoseconds>(time_to_live_, std::chrono::seconds(std::max(ttl, 0)));
    }
    // At the end of the turn, so that evdns is not in the middle of things.
    if (legs_[0] == nullptr && legs_[1] == nullptr) {
      wait_.cancel();
      step_.schedule();
    } else if (!found_[family].empty()) {
      wait_.start(kOtherFamily);
    }
  }

  void finish() {
    Resolver::OnDone done = std::move(on_done_);
    auto addresses = in_turns(found_[0], found_[1]);
    if (addresses.empty()) {
      done(std::unexpected(failure_of(worst_, host_)));
    } else {
      done(Resolved{.addresses = std::move(addresses), .time_to_live = time_to_live_});
    }
  }

  std::string host_;
  Resolver::OnDone on_done_;
  Leg* legs_[2] = {};  // A, AAAA; null once answered
  std::vector<Address> found_[2];
  ResolveOutcome worst_ = ResolveOutcome::kNotFound;
  Nanoseconds time_to_live_ = kKnownTimeToLive;
  Timer wait_;
  Deferred step_;
};

class EvdnsResolver final : public Resolver {
 public:
  EvdnsResolver(Loop& loop, const Options& options)
      : loop_(loop), hosts_(options.hosts_file), dns_(evdns_base_new(loop.base(), 0)) {}
  EvdnsResolver(const EvdnsResolver&) = delete;
  EvdnsResolver& operator=(const EvdnsResolver&) = delete;
  ~EvdnsResolver() override {
    if (dns_ != nullptr) evdns_base_free(dns_, 0);
  }

  Result<void> configure(const Options& options) {
    if (dns_ == nullptr) return fail("resolver: out of memory");
    if (options.nameservers.empty()) {
      // Whatever is wrong with the file, evdns then has its default, a server on this machine.
      evdns_base_resolv_conf_parse(
          dns_, DNS_OPTION_NAMESERVERS | DNS_OPTION_SEARCH | DNS_OPTION_MISC, "/etc/resolv.conf");
    }
    for (const Address& server : options.nameservers) {
      if (evdns_base_nameserver_sockaddr_add(dns_, server.data(), server.size(), 0) != 0) {
        return fail("name server " + server.to_string() + " cannot be used");
      }
    }
    const double seconds = std::chrono::duration<double>(options.timeout).count();
    evdns_base_set_option(dns_, "timeout:", std::to_string(seconds).c_str());
    evdns_base_set_option(dns_, "attempts:", std::to_string(options.attempts).c_str());
    evdns_base_set_option(dns_, "max-inflight:", "1024");
    return {};
  }

  std::unique_ptr<Query> resolve(std::string_view host, std::uint16_t port,
                                 OnDone on_done) override {
    if (auto answer = known(host, port)) {
      return std::make_unique<KnownQuery>(loop_, std::move(*answer), std::move(on_done));
    }
    auto query = std::make_unique<DnsQuery>(loop_, normal_host_name(host), std::move(on_done));
    query->ask(dns_, legs_, port, host.ends_with('.') ? DNS_QUERY_NO_SEARCH : 0);
    return query;
  }

 private:
  std::optional<std::expected<Resolved, ResolveFailure>> known(std::string_view host,
                                                               std::uint16_t port) const {
    std::vector<Address> addresses;
    if (const auto numeric = Address::parse_ip(host, port)) {
      addresses = {*numeric};
    } else if (!is_host_name(host)) {
      return std::unexpected(failure_of(ResolveOutcome::kBadName, host));
    } else if (is_localhost(host)) {
      addresses = {Address::loopback_v4(port), Address::loopback_v6(port)};
    } else {
      addresses = hosts_.find(normal_host_name(host));
      if (addresses.empty()) return std::nullopt;
      for (Address& address : addresses) address.set_port(port);
    }
    return Resolved{.addresses = std::move(addresses), .time_to_live = kKnownTimeToLive};
  }

  Loop& loop_;
  HostsFile hosts_;
  evdns_base* dns_;
  std::list<Leg> legs_;
};

}  // namespace

std::string_view to_string(ResolveOutcome outcome) {
  switch (outcome) {
    case ResolveOutcome::kNotFound:
      return "not-found";
    case ResolveOutcome::kTimeout:
      return "timeout";
    case ResolveOutcome::kRefused:
      return "refused";
    case ResolveOutcome::kBadName:
      return "bad-name";
  }
  return "unknown";
}

Result<std::unique_ptr<Resolver>> Resolver::create(Loop& loop, const Options& options) {
  auto resolver = std::make_unique<EvdnsResolver>(loop, options);
  if (auto configured = resolver->configure(options); !configured) {
    return std::unexpected(configured.error());
  }
  return resolver;
}

}  // namespace encore::net
