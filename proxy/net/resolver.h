// Resolver: host names to addresses, through the loop. Confined to its loop's thread.
//
// Numeric hosts are answered without DNS; "localhost" and names below it are loopback whatever DNS
// says (RFC 6761 6.3); then the hosts file; then the cache; then A and AAAA of the name servers
// (DnsClient). A query for a name whose lookup is in progress waits for that one answer. A query
// that is cancelled takes no answer from others, and the result is still cached.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/time.h"
#include "proxy/net/address.h"
#include "proxy/net/resolve_outcome.h"

namespace encore::net {

class Loop;

struct Resolved {
  // At least one, in the order in which they are to be tried (RFC 6724 6, the families in turns).
  std::vector<Address> addresses;
  // The rest of it, within the bounds of the options; a day for numeric and hosts file.
  Nanoseconds time_to_live{};
};

// Events for counters.
enum class ResolveEvent : std::uint8_t {
  kQuestion,  // a question to the name servers, however often it had to be repeated
  kCacheHit,  // answered from the cache, also with a failure
  kJoined,    // waits for an answer that somebody else has asked for
  kLimited,   // kLimit
  kFailure,   // a lookup ended with kTimeout, kRefused or kNoDescriptors
  kBegun,     // a lookup is in progress ...
  kEnded,     // ... no longer
};

class Resolver {
 public:
  using OnDone = std::move_only_function<void(std::expected<Resolved, ResolveFailure>)>;

  struct Options {
    std::vector<Address> nameservers;  // empty: those of resolv_conf, with its search list
    std::string resolv_conf = "/etc/resolv.conf";
    std::string hosts_file = "/etc/hosts";  // empty: none
    // Timeout of the first attempt; each further one doubles it: a name that nobody answers for
    // takes 7 s.
    Nanoseconds timeout = std::chrono::seconds(1);
    int attempts = 3;
    // Bounds of what the records say, and how long a failure is remembered (RFC 2308, RFC 9520).
    Nanoseconds ttl_min{};
    Nanoseconds ttl_max = std::chrono::hours(1);
    Nanoseconds negative_ttl = std::chrono::seconds(5);
    std::size_t cache_entries = 16384;
    // Lookups in progress, of up to two questions each: in all, and begun for one client address
    // (an IPv6 network of 64 bits counts as one).
    std::size_t lookups_max = 4096;
    std::size_t lookups_per_client_max = 1024;
  };
  using OnEvent = std::function<void(ResolveEvent)>;

  struct Name {
    std::string_view host;
    std::uint16_t port = 0;
    // The client whose limit it counts against. Empty: none, for names that the operator has
    // chosen.
    std::optional<Address> client = {};
  };

  // A question that is being asked. Destroying it cancels: the callback no longer comes.
  class Query {
   public:
    virtual ~Query() = default;
  };

  // `on_event` must not call back. Errors: memory.
  static Result<std::unique_ptr<Resolver>> create(Loop& loop, const Options& options,
                                                  OnEvent on_event = {});
  // REQUIRES: no query is left; not from within an OnDone.
  virtual ~Resolver() = default;

  // Asks. The callback comes once, from the loop, never from within this call, and may destroy the
  // query. REQUIRES: the resolver outlives the query.
  [[nodiscard]] virtual std::unique_ptr<Query> resolve(const Name& name, OnDone on_done) = 0;

  // Other options from now on: files are read again, the cache is forgotten, and what is being
  // asked is asked anew. After an error all is as before. REQUIRES: not from within an OnDone.
  virtual Result<void> set_options(const Options& options) = 0;
};

}  // namespace encore::net
