// Finds what would keep a start with this config from succeeding, without starting: addresses,
// logs, state, certificates, memory. For --check-config. Any thread. Why the check does what a
// start does: docs/decisions/0319.
#pragma once

#include <string>
#include <vector>

#include "config/config.h"

namespace encore::server {

struct StartCheck {
  struct Fault {
    std::string
        key;  // as in "log.access", "listen.0.address"; empty where no single one is at fault
    std::string what;
  };
  std::vector<Fault> faults;
  // Resources of an encore that runs already: a start next to it would fail, one after it would
  // not.
  std::vector<std::string> notes;
};

// Changes and keeps nothing; what it makes, as a start would, it removes. Addresses are bound for a
// moment, without listening. Its result holds for the user that it runs as, and now.
StartCheck check_start(const config::Config& config);

}  // namespace encore::server
