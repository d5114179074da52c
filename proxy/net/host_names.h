// Host names that are known without DNS. Pure except reading the hosts file. Thread-compatible. For
// net/ only.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "proxy/net/address.h"

namespace encore::net {

// True if it may be asked of DNS: labels of 1 to 63 letters, digits, hyphens and underscores, 253
// in all; a final dot is allowed. A name that ends in a number is not one: other programs would
// read it as an address ("127.1", "0x7f.1").
bool is_host_name(std::string_view name);

// "localhost" and names below it (RFC 6761 6.3).
bool is_localhost(std::string_view name);

// In lower case and without the final dot.
std::string normal_host_name(std::string_view name);

class HostsFile {
 public:
  // A file that cannot be read has no names; lines that are not understood are passed over.
  explicit HostsFile(const std::string& path);
  // With port 0; empty where the name (in normal form) is not there.
  std::vector<Address> find(const std::string& name) const;

 private:
  std::unordered_map<std::string, std::vector<Address>> names_;
};

}  // namespace encore::net
