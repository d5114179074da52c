// Purges on their way between an old process and the new one: as messages, and back. Pure.
#pragma once

#include "base/error.h"
#include "proxy/settings/purge_order.h"
#include "proxy/upgrade/message.h"

namespace encore::server {

upgrade::Message purge_message(const PurgeOrder& order);
// Errors: an unknown flag, which may be a condition.
Result<PurgeOrder> read_purge(const upgrade::Message& message);

// `number` is that of the purge.
upgrade::Message purged_message(std::uint64_t number, const PurgeResult& purged);
PurgeResult read_purged(const upgrade::Message& message);

}  // namespace encore::server
