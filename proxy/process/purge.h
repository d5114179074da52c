// Purging by the operator: by URL, by prefix, by tag; hard (gone) or soft (stale, to be validated
// or served while it is). Any thread.
#pragma once

#include <cstdint>

#include "base/error.h"
#include "proxy/settings/purge_order.h"

namespace encore::server {

struct AdminRequest;
struct Runtime;
struct Shared;

// Places looked at under one lock: some tens of microseconds.
inline constexpr std::uint32_t kPurgeSliceSlots = 64;

// Reads url, prefix, tag (each as often as wanted), all, soft, dry_run and token from the query and
// from the body, which is a form or, where Content-Type says so, JSON: {"tag": ["a", "b"], "soft":
// true}. Errors: nothing to purge, an unknown name, a URL that is none, malformed JSON.
Result<PurgeOrder> read_purge_order(const AdminRequest& request);

// Checks the texts of an order: URLs and prefixes are URLs, keys have a realm. Errors: which is
// not.
Result<void> check_purge_order(const PurgeOrder& order);

// `runtime`: by whose rules and origins URLs have their keys.
//
// A URL means the same in forward mode and on every origin's routes; http and https are one there.
// Takes one pass in slices over the cache for all prefixes, tags and the ban together, so that no
// request waits longer than for one slice. Responses that are being fetched meanwhile are not used
// without validation.
PurgeResult purge(Shared& shared, const Runtime& runtime, const PurgeOrder& order);

}  // namespace encore::server
