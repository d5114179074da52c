// RateLimits: how often requests may come, by the [[limit]] tables. Thread-safe.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
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
  // True if requests to this listener, by its address in the config, are limited at all.
  bool concern(std::string_view listener) const;
  // Counts a request. Returns zero if it is allowed; else the time until a retry, and no limit has
  // counted it. (Other requests in between may be refused for tokens that are about to be
  // returned.)
  Nanoseconds take(std::string_view listener, const Named& named, const http::Fields& fields,
                   const net::Address& client, MonotonicTime now) const;

 private:
  struct Limit {
    std::string field;
    net::Address::NetworkBits network;
    std::vector<std::string> hosts;
    std::vector<std::string> paths;
    std::vector<std::string> listeners;
    std::unique_ptr<TokenBuckets> buckets;
  };
  // The names of the buckets of this limit that a request takes a token of, each once.
  struct Asked;  // a request
  static std::vector<std::string> counted_for(const Limit& limit, Asked& asked);
  static void give_back(const Limit& limit, std::span<const std::string> names, MonotonicTime now);

  std::vector<Limit> limits_;
};

}  // namespace encore::server
