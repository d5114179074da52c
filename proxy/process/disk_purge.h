// Translates a purge for the disk tier: keys are in its log; prefixes, tags and bans become rules,
// which each record is held to when it is read, for the index knows no texts. Any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "cache/disk_types.h"
#include "filter/hash.h"
#include "proxy/disk/disks.h"
#include "proxy/disk/record.h"
#include "proxy/settings/ban.h"

namespace encore::server {

// One purge.
class DiskPurge {
 public:
  // `disks` is borrowed; null: there are none, and nothing is done.
  explicit DiskPurge(disk::Disks* disks) : disks_(disks) {}

  // A key's entries have gone, or are stale.
  void add_key(const filter::Hash128& key, cache::DiskTombstone tombstone);
  // A rule for what is older than `version`: normalised URIs that begin so, of forward mode or of
  // the origins' routes; a tag.
  void add_prefix(bool is_forward, std::string_view prefix, cache::DiskVersion version);
  void add_tag(std::string_view tag, cache::DiskVersion version);
  // REQUIRES: may_take(ban).
  void add_ban(const Ban& ban, cache::DiskVersion version);

  // In force when it returns.
  void begin();
  // Waits until it is durable. Errors: a disk whose log failed, which has left service.
  Result<void> end();

 private:
  struct Done;

  disk::Disks* const disks_;
  std::vector<disk::Purge> purges_;
  std::shared_ptr<Done> done_;
};

// Bans by expressions that may be in force on a disk at a time: each takes microseconds with every
// older record that is read, and memory, until nothing on the disk is older.
inline constexpr std::size_t kDiskBansMax = 64;
// Checks if the disks take a ban by an expression now. Errors: why not.
Result<void> may_take(const disk::Disks& disks, const Ban& ban);

// True if the rule speaks of the record, or the record cannot be read. `bans` may be shared by all
// disks.
bool matches_rule(const disk::Purge& rule, const disk::RecordFront& front, SavedBans& bans);

}  // namespace encore::server
