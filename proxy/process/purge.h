// Purging by the operator: by URL, by prefix, by tag; hard (gone) or soft (stale, to be validated
// or served while it is). Any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace encore::net {
struct AdminRequest;
}

namespace encore::config {
struct Config;
}

namespace encore::server {

struct Shared;

// Places looked at under one lock: some tens of microseconds.
inline constexpr std::uint32_t kPurgeSliceSlots = 64;

struct PurgeOrder {
  std::vector<std::string> urls = {};      // absolute
  std::vector<std::string> prefixes = {};  // likewise
  std::vector<std::string> tags = {};
  bool soft = false;
};

// Reads url, prefix, tag (each as often as wanted) and soft from the query and from the body,
// which is a form or, where Content-Type says so, JSON: {"tag": ["a", "b"], "soft": true}.
// Errors: nothing to purge, an unknown name, a URL that is none, malformed JSON.
Result<PurgeOrder> read_purge_order(const net::AdminRequest& request);

// How many stored responses there were; variants count each. On disk alone, what a prefix or a tag
// is of goes when it is read, and is not counted. It is durable there when this returns; an error
// says why it is not.
struct Purged {
  std::uint64_t count = 0;
  bool lazily = false;  // more may go, as it is read
  Result<void> durable = {};
};
// A URL means the same in
// forward mode and on every origin's routes; http and https are one there. Takes one pass in
// slices over the cache for all prefixes and tags together, so that no request waits longer than
// for one slice. What is being fetched meanwhile is not used without validation.
Purged purge(Shared& shared, const config::Config& config, const PurgeOrder& order);

}  // namespace encore::server
