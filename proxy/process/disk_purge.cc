#include "proxy/process/disk_purge.h"

#include <future>
#include <span>
#include <utility>

#include "base/check.h"
#include "proxy/http/tags.h"
#include "proxy/settings/router.h"
#include "proxy/transfer/response.h"
#include "proxy/transfer/saved_meta.h"

namespace encore::server {
namespace {

// Stands for the realms of all routes.
constexpr std::string_view kReverseRealms = "reverse:";
static_assert(kReverseRealms.size() == kRealmBytes);

}  // namespace

struct DiskPurge::Done {
  std::promise<Result<void>> promise;
};

void DiskPurge::add_key(const filter::Hash128& key, cache::DiskTombstone tombstone) {
  if (disks_ == nullptr || !tombstone) return;
  purges_.push_back({.kind = disk::PurgeKind::kKey,
                     .version = tombstone.version,
                     .sequence = 0,
                     .key = key,
                     .pattern = {}});
}

// No key and no head is as long as what does not fit.
void DiskPurge::add_prefix(bool is_forward, std::string_view prefix, cache::DiskVersion version) {
  std::string pattern(is_forward ? kForwardRealm : kReverseRealms);
  pattern += prefix;
  if (disks_ == nullptr || pattern.size() > disk::kPatternBytesMax) return;
  purges_.push_back({.kind = disk::PurgeKind::kPrefix,
                     .version = version,
                     .sequence = 0,
                     .key = {},
                     .pattern = std::move(pattern)});
}

void DiskPurge::add_tag(std::string_view tag, cache::DiskVersion version) {
  if (disks_ == nullptr || tag.size() > disk::kPatternBytesMax) return;
  purges_.push_back({.kind = disk::PurgeKind::kTag,
                     .version = version,
                     .sequence = 0,
                     .key = {},
                     .pattern = std::string(tag)});
}

void DiskPurge::add_ban(const Ban& ban, cache::DiskVersion version) {
  if (disks_ == nullptr) return;
  purges_.push_back({.kind = disk::PurgeKind::kBan,
                     .version = version,
                     .sequence = 0,
                     .key = {},
                     .pattern = ban.saved()});
}

void DiskPurge::begin() {
  if (disks_ == nullptr) return;
  ENCORE_CHECK(done_ == nullptr, "a purge begins once");
  done_ = std::make_shared<Done>();
  disks_->purge(purges_,
                [done = done_](Result<void> how) { done->promise.set_value(std::move(how)); });
}

Result<void> DiskPurge::end() {
  return done_ == nullptr ? Result<void>() : done_->promise.get_future().get();
}

Result<void> may_take(const disk::Disks& disks, const Ban& ban) {
  if (ban.saved().size() > disk::kPatternBytesMax) return fail("ban-too-long");
  if (disks.bans() >= kDiskBansMax) return fail("too-many-bans");
  return {};
}

bool matches_rule(const disk::Purge& rule, const disk::RecordFront& front, SavedBans& bans) {
  const disk::RecordText& text = front.text;
  const auto meta = load_meta(std::as_bytes(std::span(text.meta)),
                              {.key_bytes = text.key.size(), .head_bytes = text.head.size()}, {});
  if (!meta) return true;
  if (rule.kind == disk::PurgeKind::kTag) {
    return http::has_tag(HeadParts{.meta = *meta, .head = text.head}.tags(), rule.pattern);
  }
  const std::string_view key = text.key.substr(0, meta->primary_bytes);
  if (rule.kind == disk::PurgeKind::kBan) {
    const HeadParts head{.meta = *meta, .head = text.head};
    return bans.hold(rule.pattern, key, head.content_type(), head.tags());
  }
  const std::string_view pattern = rule.pattern;
  const bool is_forward = pattern.starts_with(kForwardRealm);
  return pattern.size() >= kRealmBytes && key.size() >= kRealmBytes &&
         key.starts_with(kForwardRealm) == is_forward &&
         key.substr(kRealmBytes).starts_with(pattern.substr(kRealmBytes));
}

}  // namespace encore::server
