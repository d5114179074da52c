// PurgeTokens: tells that a purge is the one that was counted. A dry run gives a token of what it
// has counted; a purge that brings it is done only if it is of the same. Signed with a key that
// ends with the process, so that nothing is kept. Immutable, thread-safe. Why a token is not bound
// to the number: docs/decisions/0326.
#pragma once

#include <string>
#include <string_view>

#include "base/time.h"
#include "proxy/net/secrets.h"
#include "proxy/settings/purge_order.h"

namespace encore::server {

class PurgeTokens {
 public:
  // Older counts are counted again.
  static constexpr Nanoseconds kLife = std::chrono::minutes(10);

  PurgeTokens() : key_(net::random_digest()) {}
  explicit PurgeTokens(const net::Digest& key) : key_(key) {}

  // Makes the token of the order's URLs, prefixes, tags and softness, in their order.
  std::string make(const PurgeOrder& order, MonotonicTime now) const;
  // Why an order may not be carried out by its token; empty: it may, or brings none.
  std::string_view refusal(const PurgeOrder& order, MonotonicTime now) const;

 private:
  std::string signature(const PurgeOrder& order, std::string_view when) const;

  net::Digest key_;
};

}  // namespace encore::server
