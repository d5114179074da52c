// What the configuration makes of a request, without asking anybody: which rule holds, and what
// follows. For `encore explain` and --check-config --url. Any thread.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "config/config.h"

namespace encore::server {

struct Explained {
  std::string url;
  std::string method = "GET";
  std::string client = "127.0.0.1";      // its address
  std::string listener = {};             // as [[listen]] has it; empty: the first
  std::vector<std::string> fields = {};  // "Name: value"
};

// Lines of a label and what it says. Errors: a URL that is none, a listener or client that is none,
// certificates that cannot be loaded.
Result<std::string> explain(const config::Config& config, const Explained& request);

}  // namespace encore::server
