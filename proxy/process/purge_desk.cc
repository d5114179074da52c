#include "proxy/process/purge_desk.h"

#include <string>
#include <utility>

#include "base/check.h"
#include "proxy/process/shared.h"

namespace encore::server {
namespace {

// Returns the client's answer to its purge. Objects that go as they are read are not counted.
TransferFailure told_of(const Purged& purged, bool bans) {
  if (!purged.refusal.empty()) {
    const bool beyond_us = purged.refusal == "too-many-bans" || purged.refusal == "busy";
    return {beyond_us ? 503 : 400, Outcome::kBadRequest, purged.refusal};
  }
  if (!purged.durable) return {500, Outcome::kInternal, "not-for-good"};
  const bool any = bans || purged.count != 0;
  return {any ? 200 : 404, Outcome::kPurge, "purged " + std::to_string(purged.count)};
}

}  // namespace

void PurgeDesk::purge(std::shared_ptr<Transfer> transfer, PurgeWish wish) {
  ENCORE_CHECK(shared_.purge, "who serves can purge");
  PurgeOrder order{.soft = wish.soft};
  const bool bans = wish.keys.empty();
  if (bans) {
    order.ban = BanOrder{.forward = wish.forward,
                         .host = std::move(wish.host),
                         .url = std::move(wish.url),
                         .content_type = std::move(wish.content_type),
                         .tags = std::move(wish.tags)};
  } else {
    order.keys = std::move(wish.keys);
  }
  const auto tell = [&loop = loop_, bans, transfer = std::move(transfer)](const Purged& done) {
    loop.post([transfer, told = told_of(done, bans)] { transfer->publish_failure(told); });
  };
  shared_.purge(std::move(order), tell);
}

}  // namespace encore::server
