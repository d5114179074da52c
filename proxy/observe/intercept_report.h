// What is known of the hosts that are decrypted, as the pages show it. A value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace encore::server {

struct InterceptReport {
  std::string authority;  // SHA-256 of its certificate
  std::vector<std::string> hosts;
  std::int64_t authority_ends = 0;  // seconds since 1970
  std::uint64_t certificates_made = 0;
  std::uint64_t certificates_kept = 0;
  // A client that does not take our certificate for a host.
  struct Rejected {
    std::string client;
    std::string host;
    std::int64_t seconds_left = 0;
  };
  std::uint64_t rejected = 0;    // all of them
  std::vector<Rejected> newest;  // and so many of them as fit on a page
};

}  // namespace encore::server
