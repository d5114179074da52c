// State that all clients of a world share, and how they compose their requests. One thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tests/fuzz/proxy/accounts.h"
#include "tests/fuzz/proxy/loop.h"
#include "tests/fuzz/proxy/oracle.h"
#include "tests/fuzz/proxy/published.h"
#include "tests/fuzz/proxy/tls_ends.h"
#include "tests/fuzz/proxy/tunnels.h"
#include "tests/fuzz/proxy/world.h"

namespace encore::proxyfuzz {

// The client of a request, and its listener.
struct Asker {
  int user = -1;
  int listener = 0;
  bool from_second = false;  // from 127.0.0.2
  bool is_slow = false;      // takes its answers slowly, for now
};

// The proxy's listeners, where it has more than one.
class Front {
 public:
  virtual ~Front() = default;
  // Chooses one, and where to come from.
  virtual int connect(Random& random, Asker& asker, int receive_buffer) = 0;
};

// State that all clients share.
struct Ring {
  Loop& loop;
  World& world;
  Oracle& oracle;
  std::uint16_t proxy_port = 0;
  bool absolute = true;            // request targets, as a forward proxy wants them
  std::vector<std::string> hosts;  // "127.0.0.1:port"; a URL has one of them
  std::uint64_t requests_left = 0;
  std::size_t active = 0;  // clients with requests in progress
  bool paused = false;     // nobody begins anything
  bool has_rules = false;  // the proxy has rules, though there is one listener alone
  bool misbehave = true;   // they leave, end their side early and read slowly
  // Called with the request in progress of a client that leaves; null: there is none.
  std::function<void(const Request*)> on_leave = {};
  Accounts* accounts = nullptr;    // null: the proxy's log is not read
  Published* published = nullptr;  // null: nobody asks for that
  Tunnels* tunnels = nullptr;      // null: nobody asks for one
  Front* front = nullptr;          // null: there is that port alone
  TlsEnds* tls = nullptr;          // null: all listeners are plain
  std::array<bool, 2> has_tls{};   // which of them are not
  double http2 = 0;                // percent of the clients speak it
};

const std::string& host_of(const Ring& ring, const Url& url);
std::shared_ptr<Request> compose(Ring& ring, Random& random, const Asker& asker);
std::string text_of(const Ring& ring, const Request& request);

}  // namespace encore::proxyfuzz
