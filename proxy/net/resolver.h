// Resolver: host names to addresses, through the loop (libevent's evdns). Confined to its loop's
// thread.
//
// Numeric hosts are answered without DNS; "localhost" and names below it are loopback whatever DNS
// says (RFC 6761 6.3); then the hosts file; then A and AAAA of the configured servers.
// It keeps no cache: the answer carries its time to live. Answers that need
// more than one UDP packet are refused.
#pragma once

#include <cstdint>
#include <expected>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/time.h"
#include "proxy/net/address.h"

namespace encore::net {

class Loop;

enum class ResolveOutcome : std::uint8_t {
  kNotFound,  // no such name, or a name without addresses
  kTimeout,   // no answer, or SERVFAIL, from any server
  kRefused,   // REFUSED, or an answer that makes no sense
  kBadName,   // not a host name: empty, too long, bad characters
};
std::string_view to_string(ResolveOutcome outcome);

struct ResolveFailure {
  ResolveOutcome outcome = ResolveOutcome::kNotFound;
  std::string message;  // "example.invalid: no such name"
};

struct Resolved {
  std::vector<Address> addresses;  // at least one; IPv4 and IPv6 in turns, IPv4 first
  Nanoseconds time_to_live{};      // the smallest of the records; a day for numeric and hosts file
};

class Resolver {
 public:
  using OnDone = std::move_only_function<void(std::expected<Resolved, ResolveFailure>)>;

  struct Options {
    std::vector<Address> nameservers;               // empty: /etc/resolv.conf
    std::string hosts_file = "/etc/hosts";          // empty: none
    Nanoseconds timeout = std::chrono::seconds(3);  // one attempt
    int attempts = 2;
  };

  // A question that is being asked. Destroying it cancels: the callback no longer comes.
  class Query {
   public:
    virtual ~Query() = default;
  };

  // Errors: memory, or a name server's address that is not usable.
  static Result<std::unique_ptr<Resolver>> create(Loop& loop, const Options& options);
  // REQUIRES: no query is left; not from within a callback of the loop other than a deferred one.
  virtual ~Resolver() = default;

  // Asks. The callback comes once, from the loop, never from within this call, and may destroy the
  // query. REQUIRES: the resolver outlives the query.
  [[nodiscard]] virtual std::unique_ptr<Query> resolve(std::string_view host, std::uint16_t port,
                                                       OnDone on_done) = 0;
};

}  // namespace encore::net
