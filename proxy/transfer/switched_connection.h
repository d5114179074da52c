// SwitchedConnection: an origin's connection that has switched to another protocol (RFC 9110 7.8),
// on its way from the fetch that requested it to the unit that joins it with its client. Confined
// to its worker.
#pragma once

#include <memory>
#include <string>

#include "proxy/net/stream.h"

namespace encore::server {

struct SwitchedConnection {
  std::string head = {};  // the 101 as the client gets it, with the empty line
  // The connection's slot of its server, returned behind it. Ends before the worker.
  std::shared_ptr<void> place = {};
  // Has no handler and does not read; what came behind the 101 is kept in it.
  std::unique_ptr<net::Stream> origin = {};
};

}  // namespace encore::server
