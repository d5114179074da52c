// Explains the handling of a request, without asking its origin: which rule holds, and what
// follows; and, of a running proxy, its state of the request's key. For `encore explain`,
// /api/explain and --check-config --url. Any thread. Why a request is not run for it:
// docs/decisions/0271.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "config/config.h"
#include "filter/hash.h"
#include "proxy/process/explain_state.h"
#include "proxy/process/explanation.h"
#include "proxy/settings/runtime.h"

namespace encore::server {

struct Explained {
  std::string url;
  std::string method = "GET";
  std::string client = "127.0.0.1";      // its address
  std::string listener = {};             // as [[listen]] has it; empty: the first
  std::vector<std::string> fields = {};  // "Name: value"
};

// By the configuration alone. Errors: a URL that is none, a listener or client that is none, fields
// that are none, certificates that cannot be loaded.
Result<std::string> explain(const config::Config& config, const Explained& request);
// The same, with the state of a running proxy. Errors: as above.
Result<Explanation> explain(const Running& running, const Explained& request);

}  // namespace encore::server
