// Switched: an origin's connection that has gone over to another protocol (RFC 9110 7.8), on its
// way from the fetch that asked for that to whoever joins it with its client. Confined to its
// worker.
#pragma once

#include <memory>
#include <string>

#include "proxy/net/stream.h"

namespace encore::server {

struct Switched {
  std::string head = {};  // the 101 as the client gets it, with the empty line
  // What the connection takes of its server's number, given back behind it. Ends before the worker.
  std::shared_ptr<void> place = {};
  // Has no handler and does not read; what came behind the 101 is kept in it.
  std::unique_ptr<net::Stream> origin = {};
};

}  // namespace encore::server
