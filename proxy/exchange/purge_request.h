// PurgeRequest: what a request with a method that purges wants to be gone from the cache, in the
// forms in which content management systems say it. Reading it is pure and thread-safe.
//
//   PURGE /page                    the URL in all its variants
//   PURGE /blog/.*                 with "X-Purge-Method: regex": URLs of this host that begin so
//   PURGE with xkey, xkey-purge, xkey-softpurge, Surrogate-Key, Cache-Tag or X-Cache-Tags
//                                  any of these tags, whatever its URL
//   PURGE X-Magento-Tags-Pattern   the same, as an expression of tags; ".*" is everything
//   PURGE Clear-Cache: true        everything
//   PURGEKEYS, PURGETAGS           tags in the fields of Varnish's xkey, of Symfony
//   BAN   X-Host, X-Url, X-Content-Type    regular expressions, found anywhere; all that are given
//   BAN   X-Cache-Tags, Cache-Tags, Purge-Cache-Tags, Surrogate-Key, Cache-Tag, xkey, xkey-purge
//                                  any of these tags
//   any with X-Soft-Purge, Fastly-Soft-Purge or X-Magento-Purge-Soft    stale, and not gone
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "proxy/request/request_context.h"
#include "proxy/transfer/transfer.h"

namespace encore::server {

struct PurgeRequest {
  bool forward = false;  // for objects of forward listeners; else of all origins
  bool soft = false;     // to be validated before it is used again, or served while it is
  // Keys of one URL, with each of its realms; empty: all for which the rest holds.
  std::vector<std::string> keys = {};
  // Regular expressions; empty: anything.
  std::string host = {};  // the URL's, with a port that is not the scheme's
  std::string url = {};   // its path and query
  std::string content_type = {};
  std::vector<std::string> tags = {};  // any of these; empty: whatever it is tagged with
};

inline constexpr std::size_t kPurgePatternBytesMax = 1024;
inline constexpr std::size_t kPurgeTagsMax = 1024;

// Errors: nothing that is wanted, a pattern that is too long or not understood, too many tags, tags
// of a field that is not read of responses. Some say more behind ": ".
Result<PurgeRequest> read_purge_request(const RequestContext& request);

// Carries out purges. The answer comes through the transfer, from the loop: as a failure with the
// status that shows the result.
class Purger {
 public:
  virtual void purge(std::shared_ptr<Transfer> transfer, PurgeRequest purge) = 0;

 protected:
  ~Purger() = default;
};

}  // namespace encore::server
