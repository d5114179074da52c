// AuthorizationCache: which requests an origin has lately allowed, so that a stored response may be
// given to them (`authorization = "recheck"`). Requests, with their credentials, are kept as a
// keyed hash alone. One a worker, confined to it. Why a yes is of the whole request:
// docs/decisions/0410.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "filter/hash.h"
#include "proxy/request/request_context.h"
#include "proxy/transfer/response.h"

namespace encore::server {

class AuthorizationCache {
 public:
  // For how long an origin's yes holds.
  static constexpr Nanoseconds kHolds = std::chrono::seconds(60);
  // Beyond so many the oldest are forgotten, and asked for again.
  static constexpr std::size_t kMax = 16384;

  // The seed is secret.
  explicit AuthorizationCache(const filter::Seed& seed) : seed_(seed) {}

  // A name for requests that an origin cannot tell apart (access_text() in sent_head.h). One
  // that differs in any field is asked about anew: another may be its credential.
  filter::Hash128 name(std::string_view access_text) const;
  bool is_allowed(const filter::Hash128& name, MonotonicTime now) const;
  void allow(const filter::Hash128& name, MonotonicTime now);

 private:
  struct Less {
    bool operator()(const filter::Hash128& a, const filter::Hash128& b) const {
      return a.hi != b.hi ? a.hi < b.hi : a.lo < b.lo;
    }
  };

  const filter::Seed& seed_;
  std::map<filter::Hash128, MonotonicTime, Less> until_;
  // In the order in which they were allowed: the next to be forgotten stands at next_.
  std::vector<filter::Hash128> order_;
  std::size_t next_ = 0;
};

// False: it is for those alone whom its origin allows it, and no rule asks the origin of this
// request.
inline bool may_be_rechecked(const RequestContext& request, const store::Object& object) {
  return !meta_of(object).http.is(http::StoredMeta::kWantsPermission) ||
         (request.rule != nullptr && request.rule->rechecks());
}

}  // namespace encore::server
