// Redaction: what is a secret in what others are shown of requests: who asks, in front of an '@' in
// a URL, and the values of those parameters of a query that the operator names. Immutable,
// thread-safe.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace encore::server {

class Redaction {
 public:
  static constexpr std::string_view kHidden = "***";

  // Names in lower case.
  explicit Redaction(std::vector<std::string> parameters = {});

  // The URL, target or reference with kHidden for what is secret. A view of `url` where nothing is,
  // else of `storage`. Names are compared in any case, and as they are read: "%74oken" is "token".
  std::string_view url(std::string_view url, std::string& storage) const;

 private:
  bool is_secret(std::string_view name) const;

  std::vector<std::string> parameters_;  // sorted
  std::size_t name_bytes_max_ = 0;
};

// Fields of requests and responses that are credentials; nothing shows their values. REQUIRES:
// lower case.
bool is_secret_field(std::string_view lower_name);
// Those whose value is a URL, and shown as one is.
bool is_url_field(std::string_view lower_name);

}  // namespace encore::server
