// RateLimits: how often requests may come, by the [[limit]] tables. Thread-safe.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/time.h"
#include "config/config.h"
#include "proxy/http/message.h"
#include "proxy/net/address.h"
#include "proxy/settings/access.h"
#include "proxy/settings/token_buckets.h"

namespace encore::server {

class RateLimits {
 public:
  explicit RateLimits(const std::vector<config::RateLimit>& limits);

  bool empty() const { return limits_.empty(); }
  // Counts a request. Zero: it may come; else when it may be tried again. What it has taken of
  // other limits than the one that stops it is gone.
  Nanoseconds take(const Named& named, const http::Fields& fields, const net::Address& client,
                   MonotonicTime now) const;

 private:
  struct Limit {
    std::string field;
    net::Address::NetworkBits network;
    std::vector<std::string> hosts;
    std::vector<std::string> paths;
    std::unique_ptr<TokenBuckets> buckets;
  };
  std::vector<Limit> limits_;
};

}  // namespace encore::server
