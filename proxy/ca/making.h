// How an authority is made, and made again with new dates. Functions of any one thread.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "base/time.h"
#include "proxy/ca/authority.h"

namespace encore::ca {

struct NewAuthority {
  std::string name;  // its subject's common name: for people
  std::vector<std::string>
      hosts;              // lower case, "a.example" or "*.a.example"; it may sign for these
  bool any_host = false;  // or for all
  WallTime now;
  std::chrono::days life{3650};
};

// Both PEM.
struct CreatedCa {
  std::string certificate;
  std::string key;
};

// A key on the curve P-256 and its own certificate: for servers' certificates alone, none of which
// may sign others; with critical name constraints, which permit the hosts and never an address.
// (Names that are below a permitted one are permitted too: the form knows no others, RFC 5280
// 4.2.1.10.) Errors: neither hosts nor any_host.
Result<CreatedCa> make_authority(const NewAuthority& wanted);

// The certificate again, of the same subject, key and constraints, with other dates and another
// serial number: what was signed by either is good by the other. REQUIRES: it has its key.
Result<std::string> renew_certificate(const Authority& authority, WallTime now,
                                      std::chrono::days life);

// Returns the name constraints for these patterns: each name once, and none that lies below
// another.
std::vector<std::string> constraint_names(const std::vector<std::string>& hosts);

}  // namespace encore::ca
