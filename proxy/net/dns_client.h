// DnsClient: asks name servers for the addresses of one name, through c-ares on the loop. For net/
// only: others use Resolver. Confined to its loop's thread.
//
// c-ares has the protocol: retries, the next server after one that fails, TCP if an answer does not
// fit a datagram. It also verifies answers: from the server's address and port, with the question
// and its identifier (RFC 5452). The sockets, the timers and the randomness are ours: identifiers
// come from the kernel, and a socket, with its port, is shared by a few questions only. Why c-ares,
// and why sockets and identifiers are not its own: docs/decisions/0060.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/time.h"
#include "proxy/net/address.h"
#include "proxy/net/timer.h"

namespace encore::net {

enum class DnsStatus : std::uint8_t {
  kFound,
  kNotFound,       // no such name, or no address of this family
  kTimeout,        // no answer from any server
  kFailed,         // SERVFAIL, REFUSED, nobody listens, or an answer that makes no sense
  kNoDescriptors,  // this process has no descriptor left to ask with
};

struct DnsAnswer {
  DnsStatus status = DnsStatus::kFailed;
  std::vector<Address>
      addresses;               // port 0, as the server ordered them; 1 to kAddressesMax if found
  Nanoseconds time_to_live{};  // the smallest of the records, aliases included
};

class DnsClient {
 public:
  // For one family. More would never be tried: with 250 ms between two attempts, these take 8 s.
  static constexpr int kAddressesMax = 32;

  enum class Family : std::uint8_t { kV4, kV6 };
  using OnAnswer = std::move_only_function<void(DnsAnswer)>;

  struct Options {
    std::vector<Address> nameservers;  // empty: those of resolv_conf, with its search list
    std::string resolv_conf;
    Nanoseconds timeout{};  // the first attempt; each round over all servers doubles it
    int attempts = 1;       // rounds
  };

  // Reads resolv_conf where no servers are given; a file that cannot be read means a server on
  // this machine. Errors: memory.
  static Result<std::unique_ptr<DnsClient>> create(Loop& loop, const Options& options);
  DnsClient(const DnsClient&) = delete;
  DnsClient& operator=(const DnsClient&) = delete;
  // Pending questions are never answered. REQUIRES: not from within an OnAnswer.
  ~DnsClient();

  // Asks for a name without a final dot, as it is. The callback comes once, from the loop, never
  // from within this call.
  void ask(const std::string& name, Family family, OnAnswer on_answer);

  // The names to be asked for in turn until one is found (resolv.conf(5): search, ndots). A final
  // dot says that there is nothing to be added.
  std::vector<std::string> candidates(const std::string& name) const;

 private:
  class Channel;
  struct Question;

  DnsClient(Loop& loop, Options options);
  Result<void> read_system();
  Channel* open_channel();
  void answered(OnAnswer on_answer, DnsAnswer answer);
  void deliver();

  Loop& loop_;
  Options options_;
  std::vector<std::string> search_;
  int dots_ = 1;
  std::vector<std::unique_ptr<Channel>> channels_;
  std::vector<std::pair<OnAnswer, DnsAnswer>> answers_;
  Deferred deliver_;
};

}  // namespace encore::net
