#include "proxy/net/resolver.h"

#include <algorithm>
#include <array>
#include <list>
#include <map>
#include <unordered_map>
#include <utility>

#include "base/check.h"
#include "proxy/net/address_order.h"
#include "proxy/net/dns_client.h"
#include "proxy/net/host_names.h"
#include "proxy/net/loop.h"
#include "proxy/net/name_cache.h"
#include "proxy/net/timer.h"

namespace encore::net {
namespace {

constexpr Nanoseconds kKnownTimeToLive = std::chrono::hours(24);
// How long one family's addresses wait for the other's (RFC 8305 3).
constexpr Nanoseconds kOtherFamily = std::chrono::milliseconds(50);
constexpr std::size_t kFamilies = 2;  // A and AAAA

using Answer = std::expected<Resolved, ResolveFailure>;

ResolveFailure failure_of(ResolveOutcome outcome, std::string_view host) {
  constexpr std::string_view kWhy[] = {
      "no such name",    "the name server does not respond", "the name server failed or refused",
      "not a host name", "too many lookups are in progress", "no file descriptors left"};
  return {outcome, std::string(host) + ": " + std::string(kWhy[static_cast<std::size_t>(outcome)])};
}

ResolveOutcome outcome_of(DnsStatus status) {
  switch (status) {
    case DnsStatus::kFound:
    case DnsStatus::kNotFound:
      return ResolveOutcome::kNotFound;
    case DnsStatus::kTimeout:
      return ResolveOutcome::kTimeout;
    case DnsStatus::kFailed:
      return ResolveOutcome::kRefused;
    case DnsStatus::kNoDescriptors:
      return ResolveOutcome::kNoDescriptors;
  }
  return ResolveOutcome::kRefused;
}

// The client whose limit a lookup counts against.
using ClientKey = std::array<std::uint8_t, 16>;
ClientKey key_of(const Address& client) {
  ClientKey key = client.mapped_bytes();
  // The lower half of an IPv6 address is its owner's to choose.
  if (client.canonical().is_v6()) std::fill(key.begin() + 8, key.end(), std::uint8_t{0});
  return key;
}

// Gives what is known already.
class KnownQuery final : public Resolver::Query {
 public:
  KnownQuery(Loop& loop, Answer answer, Resolver::OnDone on_done)
      : answer_(std::move(answer)), on_done_(std::move(on_done)), step_(loop, [this] {
          Resolver::OnDone done = std::move(on_done_);
          done(std::move(answer_));
        }) {
    step_.schedule();
  }

 private:
  Answer answer_;
  Resolver::OnDone on_done_;
  Deferred step_;
};

class Lookup;

// Waits for a lookup, maybe with others.
class WaitingQuery final : public Resolver::Query {
 public:
  WaitingQuery(std::uint16_t port, Resolver::OnDone on_done)
      : port_(port), on_done_(std::move(on_done)) {}
  ~WaitingQuery() override {
    if (place_ != nullptr) *place_ = nullptr;
  }

  // Registers `place`, which it clears when it goes, so that the owner can see its end.
  void wait_at(WaitingQuery*& place) {
    place_ = &place;
    place = this;
  }
  // May destroy it.
  void tell(const Answer& answer) {
    place_ = nullptr;
    Answer own = answer;
    if (own) {
      for (Address& address : own->addresses) address.set_port(port_);
    }
    Resolver::OnDone done = std::move(on_done_);
    done(std::move(own));
  }

 private:
  std::uint16_t port_;
  Resolver::OnDone on_done_;
  WaitingQuery** place_ = nullptr;
};

// A name that is being asked for, until both families are answered.
class Lookup {
 public:
  using OnChange = std::function<void(Lookup&)>;

  // `on_change` comes from the loop when there is news: an answer, the end, or both. It may destroy
  // the lookup. Both functions are borrowed.
  Lookup(Loop& loop, std::string name, std::optional<ClientKey> client, const OnChange& on_change,
         const Resolver::OnEvent& on_event)
      : name_(std::move(name)),
        client_(client),
        loop_(loop),
        on_change_(on_change),
        on_event_(on_event),
        wait_(loop, [this] { on_change_(*this); }) {}

  // Asks, from the first candidate on. Answers to earlier questions are ignored: REQUIRES that
  // their client is gone.
  void ask(DnsClient& dns) {
    dns_ = &dns;
    candidates_ = dns.candidates(name_);
    candidate_ = 0;
    ask_candidate();
  }

  void add(WaitingQuery& query) { query.wait_at(waiting_.emplace_back(nullptr)); }
  // Their places stay unchanged while they are notified.
  std::list<WaitingQuery*> take_waiting() { return std::exchange(waiting_, {}); }

  const std::string& name() const { return name_; }
  const std::optional<ClientKey>& client() const { return client_; }
  bool has_ended() const { return open_ == 0; }
  bool has_addresses() const { return !found_[0].empty() || !found_[1].empty(); }
  bool told = false;

  // Returns the addresses known by now. REQUIRES: it has addresses, or has ended.
  Answer answer() const {
    Resolved resolved;
    resolved.time_to_live = time_to_live_;
    for (const auto& found : found_) {
      resolved.addresses.insert(resolved.addresses.end(), found.begin(), found.end());
    }
    if (resolved.addresses.empty()) return std::unexpected(failure_of(worst_, name_));
    order_addresses(resolved.addresses, &source_of);
    return resolved;
  }
  // When the first of its addresses came.
  MonotonicTime answered_at() const { return answered_at_; }

 private:
  void ask_candidate() {
    for (auto& found : found_) found.clear();
    worst_ = ResolveOutcome::kNotFound;
    time_to_live_ = kKnownTimeToLive;
    wait_.cancel();
    open_ = kFamilies;
    for (std::size_t family = 0; family < kFamilies; ++family) {
      if (on_event_) on_event_(ResolveEvent::kQuestion);
      dns_->ask(candidates_.at(candidate_),
                family == 0 ? DnsClient::Family::kV4 : DnsClient::Family::kV6,
                [this, family](DnsAnswer answer) { on_answer(family, std::move(answer)); });
    }
  }

  void on_answer(std::size_t family, DnsAnswer answer) {
    --open_;
    if (answer.status == DnsStatus::kFound) {
      if (!has_addresses()) answered_at_ = loop_.now();
      found_[family] = std::move(answer.addresses);
      time_to_live_ = std::min(time_to_live_, answer.time_to_live);
    } else if (worst_ == ResolveOutcome::kNotFound) {
      worst_ = outcome_of(answer.status);
    }
    if (open_ != 0) {
      if (has_addresses()) wait_.start(kOtherFamily);
      return;
    }
    wait_.cancel();
    if (!has_addresses() && worst_ == ResolveOutcome::kNotFound &&
        candidate_ + 1 < candidates_.size()) {
      ++candidate_;
      ask_candidate();
      return;
    }
    on_change_(*this);
  }

  const std::string name_;
  const std::optional<ClientKey> client_;
  Loop& loop_;
  const OnChange& on_change_;
  const Resolver::OnEvent& on_event_;
  DnsClient* dns_ = nullptr;
  std::vector<std::string> candidates_;
  std::size_t candidate_ = 0;
  std::size_t open_ = 0;  // families that are not answered yet
  std::array<std::vector<Address>, kFamilies> found_;
  ResolveOutcome worst_ = ResolveOutcome::kNotFound;
  Nanoseconds time_to_live_{};
  MonotonicTime answered_at_{};
  std::list<WaitingQuery*> waiting_;  // null: has gone
  Timer wait_;
};

class DnsResolver final : public Resolver {
 public:
  DnsResolver(Loop& loop, OnEvent on_event)
      : loop_(loop),
        on_event_(std::move(on_event)),
        on_change_([this](Lookup& lookup) { on_change(lookup); }),
        hosts_({}),
        cache_(0) {}

  Result<void> set_options(const Options& options) override {
    auto dns = DnsClient::create(loop_, {.nameservers = options.nameservers,
                                         .resolv_conf = options.resolv_conf,
                                         .timeout = options.timeout,
                                         .attempts = options.attempts});
    if (!dns) return std::unexpected(dns.error());
    options_ = options;
    hosts_ = HostsFile(options.hosts_file);
    cache_ = NameCache(options.cache_entries);
    dns_ = std::move(*dns);
    for (auto lookup = lookups_.begin(); lookup != lookups_.end();) {
      Lookup& each = *lookup++->second;
      if (each.told) {
        end(each);
      } else {
        each.ask(*dns_);
      }
    }
    return {};
  }

  std::unique_ptr<Query> resolve(const Name& name, OnDone on_done) override {
    if (auto answer = known(name)) {
      return std::make_unique<KnownQuery>(loop_, std::move(*answer), std::move(on_done));
    }
    Lookup* lookup = nullptr;
    const std::string key = key_of(name.host);
    if (const auto found = joinable_.find(key); found != joinable_.end()) {
      lookup = found->second;
      tell(ResolveEvent::kJoined);
    } else {
      lookup = begin(key, name.client);
      if (lookup == nullptr) {
        tell(ResolveEvent::kLimited);
        return std::make_unique<KnownQuery>(
            loop_, std::unexpected(failure_of(ResolveOutcome::kLimit, name.host)),
            std::move(on_done));
      }
    }
    auto query = std::make_unique<WaitingQuery>(name.port, std::move(on_done));
    lookup->add(*query);
    return query;
  }

 private:
  // In lower case; a final dot matters where there is a search list.
  static std::string key_of(std::string_view host) {
    return normal_host_name(host) + (host.ends_with('.') ? "." : "");
  }

  std::optional<Answer> known(const Name& name) {
    const std::string_view host = name.host;
    std::vector<Address> addresses;
    Nanoseconds time_to_live = kKnownTimeToLive;
    if (const auto numeric = Address::parse_ip(host, name.port)) {
      addresses = {*numeric};
    } else if (!is_host_name(host)) {
      return std::unexpected(failure_of(ResolveOutcome::kBadName, host));
    } else if (is_localhost(host)) {
      addresses = {Address::loopback_v4(name.port), Address::loopback_v6(name.port)};
    } else {
      addresses = hosts_.find(normal_host_name(host));
      if (addresses.empty()) {
        const auto* entry = cache_.find(key_of(host), loop_.now());
        if (entry == nullptr) return std::nullopt;
        tell(ResolveEvent::kCacheHit);
        if (!entry->answer) return std::unexpected(entry->answer.error());
        addresses = *entry->answer;
        time_to_live = entry->expires - loop_.now();
      }
      for (Address& address : addresses) address.set_port(name.port);
    }
    return Resolved{.addresses = std::move(addresses), .time_to_live = time_to_live};
  }

  // Null where a limit is reached.
  Lookup* begin(const std::string& name, const std::optional<Address>& client_address) {
    if (lookups_.size() >= options_.lookups_max) return nullptr;
    std::optional<ClientKey> client;
    if (client_address) {
      client = net::key_of(*client_address);
      auto& count = clients_[*client];
      if (count >= options_.lookups_per_client_max) return nullptr;
      ++count;
    }
    auto made = std::make_unique<Lookup>(loop_, name, client, on_change_, on_event_);
    Lookup* lookup = made.get();
    lookups_.emplace(lookup, std::move(made));
    joinable_.emplace(name, lookup);
    tell(ResolveEvent::kBegun);
    lookup->ask(*dns_);
    return lookup;
  }

  void on_change(Lookup& lookup) {
    Answer answer = lookup.answer();
    if (answer) {
      answer->time_to_live = std::clamp(answer->time_to_live, options_.ttl_min,
                                        std::max(options_.ttl_min, options_.ttl_max));
    }
    remember(lookup, answer);
    if (!std::exchange(lookup.told, true)) {
      joinable_.erase(lookup.name());
      if (!answer && answer.error().outcome != ResolveOutcome::kNotFound) {
        tell(ResolveEvent::kFailure);
      }
    }
    auto waiting = lookup.take_waiting();
    if (lookup.has_ended()) end(lookup);
    // Each may take others with it, or ask anew.
    for (WaitingQuery*& query : waiting) {
      if (query != nullptr) query->tell(answer);
    }
  }

  void remember(const Lookup& lookup, const Answer& answer) {
    NameCache::Entry entry{.name = lookup.name(), .answer = {}, .expires = {}};
    if (answer) {
      // Addresses of the other family that came late do not prolong the first ones' life.
      entry.answer = answer->addresses;
      entry.expires = lookup.answered_at() + answer->time_to_live;
    } else {
      // A lack of descriptors here says nothing about the name.
      if (answer.error().outcome == ResolveOutcome::kNoDescriptors) return;
      entry.answer = std::unexpected(answer.error());
      entry.expires = loop_.now() + options_.negative_ttl;
    }
    if (entry.expires > loop_.now()) cache_.put(std::move(entry));
  }

  void end(Lookup& lookup) {
    if (lookup.client()) {
      const auto count = clients_.find(*lookup.client());
      ENCORE_CHECK(count != clients_.end(), "a lookup that ends has been counted");
      if (--count->second == 0) clients_.erase(count);
    }
    lookups_.erase(&lookup);
    tell(ResolveEvent::kEnded);
  }

  void tell(ResolveEvent event) const {
    if (on_event_) on_event_(event);
  }

  Loop& loop_;
  const OnEvent on_event_;
  const Lookup::OnChange on_change_;
  Options options_;
  HostsFile hosts_;
  NameCache cache_;
  std::map<ClientKey, std::size_t> clients_;  // lookups in progress per client
  std::unordered_map<const Lookup*, std::unique_ptr<Lookup>> lookups_;
  std::unordered_map<std::string, Lookup*> joinable_;  // lookups that have not notified anyone yet
  std::unique_ptr<DnsClient> dns_;                     // gone first: it calls the lookups
};

}  // namespace

Result<std::unique_ptr<Resolver>> Resolver::create(Loop& loop, const Options& options,
                                                   OnEvent on_event) {
  auto resolver = std::make_unique<DnsResolver>(loop, std::move(on_event));
  if (auto set = resolver->set_options(options); !set) return std::unexpected(set.error());
  return resolver;
}

}  // namespace encore::net
