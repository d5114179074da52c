// Compares what one proxy has counted of its requests and bytes, place by place, with its log, and
// with what the simulated system has moved: each is counted once, and in each place. Pure.
#pragma once

#include <functional>
#include <string>

#include "proxy/observe/snapshot.h"
#include "tests/fuzz/proxy/accounts.h"
#include "tests/simulate/system.h"

namespace encore::simulate {

struct Counted {
  server::Snapshot counts;
  System::Traffic traffic;         // while it was there
  bool is_reverse = false;         // all origins have servers of the configuration
  bool is_plain = true;            // nobody speaks TLS
  bool has_http2 = false;          // some clients speak HTTP/2
  bool has_http2_origins = false;  // some origins do: bytes are those of texts
  bool has_tunnels = false;
  bool has_breaks = false;  // the network has ended connections
  bool has_rules = false;   // those of the world
  proxyfuzz::World::Answered answered;
};

// Compares the counts of a proxy that has ended. `logged` is null where there is no log.
void compare_counts(const Counted& counted, const proxyfuzz::Accounts::Sums* logged,
                    const std::function<void(const std::string& what)>& on_fault);

}  // namespace encore::simulate
