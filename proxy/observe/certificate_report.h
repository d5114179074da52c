// Report of one certificate of a listener, for the pages and the log. A value.
#pragma once

#include <string>

#include "base/time.h"

namespace encore::server {

struct CertificateReport {
  std::string listener;  // as the config has it
  std::string file;
  std::string names;  // separated by blanks
  Nanoseconds left{};
  Nanoseconds
      life{};  // from its first day to its last; 0: that of an authority, which does not count
  bool is_stand_in = false;  // self-signed here, because a file is missing
  bool is_refused = false;   // files that are newer than it cannot be used
};

}  // namespace encore::server
