// Report of the hosts that are decrypted, for the pages. A value.
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
  // A client that has refused our certificate for a host.
  struct Rejected {
    std::string client;
    std::string host;
    std::uint32_t refusals = 0;
    std::int64_t seconds_left = 0;  // for which it goes through unread; 0: it is decrypted
  };
  std::uint64_t rejected = 0;    // those that go through unread now
  std::vector<Rejected> newest;  // the newest of all, as many as fit on a page
};

}  // namespace encore::server
