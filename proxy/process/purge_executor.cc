#include "proxy/process/purge_executor.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "proxy/process/shared.h"

namespace encore::server {
namespace {

// Returns what other nodes have not done yet; empty: they have done all.
std::string rest_of(const PurgeResult& purged) {
  constexpr std::size_t kNamesMax = 16;
  if (!purged.fleet) return {};
  if (!purged.fleet->is_published) return "other nodes purge once the engine is back";
  const std::vector<std::string>& names = purged.fleet->unconfirmed;
  std::string text;
  for (std::size_t i = 0; i < std::min(names.size(), kNamesMax); ++i) {
    text += (i == 0 ? "not confirmed by " : ", ") + names[i];
  }
  if (names.size() > kNamesMax) {
    text += " and " + std::to_string(names.size() - kNamesMax) + " more";
  }
  return text;
}

// Returns the client's answer to its purge. Objects that go as they are read are not counted.
TransferFailure told_of(const PurgeResult& purged, bool bans) {
  if (!purged.refusal.empty()) {
    const bool beyond_us = purged.refusal == "too-many-bans" || purged.refusal == "busy";
    return {beyond_us ? 503 : 400, Outcome::kBadRequest, purged.refusal};
  }
  if (purged.fleet && purged.fleet->is_dropped) {
    return {503, Outcome::kBadRequest, "too-many-purges-wait"};
  }
  if (!purged.durable) return {500, Outcome::kInternal, "not-for-good"};
  // Other nodes may have had what this one had not.
  const bool any = bans || purged.count != 0 || purged.fleet;
  return {.status = any ? 200 : 404,
          .outcome = Outcome::kPurge,
          .detail = "purged " + std::to_string(purged.count),
          .why = rest_of(purged)};
}

}  // namespace

void PurgeExecutor::purge(std::shared_ptr<Transfer> transfer, PurgeRequest purge) {
  ENCORE_CHECK(shared_.purge, "who serves can purge");
  PurgeOrder order{.soft = purge.soft};
  const bool bans = purge.keys.empty();
  if (bans) {
    order.ban = BanOrder{.forward = purge.forward,
                         .host = std::move(purge.host),
                         .url = std::move(purge.url),
                         .content_type = std::move(purge.content_type),
                         .tags = std::move(purge.tags)};
  } else {
    order.keys = std::move(purge.keys);
  }
  const auto tell = [&loop = loop_, bans, transfer = std::move(transfer)](const PurgeResult& done) {
    loop.post([transfer, told = told_of(done, bans)] { transfer->publish_failure(told); });
  };
  shared_.purge(std::move(order), tell);
}

}  // namespace encore::server
