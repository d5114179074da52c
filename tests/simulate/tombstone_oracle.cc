#include "tests/simulate/tombstone_oracle.h"

#include <algorithm>
#include <cstdint>

#include "proxy/disk/open.h"
#include "proxy/disk/recovery.h"

namespace encore::simulate {
namespace {

// The version of a tombstone, below which all of the event's key is gone; 0: there is none.
cache::DiskVersion grave_of(const cache::Event& event) {
  switch (event.kind) {
    case cache::EventKind::kInvalidate:
    case cache::EventKind::kRemove:
    case cache::EventKind::kMarkStale:
      return event.version;
    case cache::EventKind::kCommit:
      return (event.disk_flags & cache::kTombstone) != 0 ? event.version : 0;
    default:
      return 0;
  }
}

class Found final : public disk::RecoverySink {
 public:
  explicit Found(const std::function<void(const disk::RecordLine&)>& on_line) : on_line_(on_line) {}
  void on_rule(const disk::Purge& /*purge*/) override {}
  void on_records(const disk::FoundRecords& records) override {
    for (const disk::RecordLine& line : records.lines) on_line_(line);
  }

 private:
  const std::function<void(const disk::RecordLine&)>& on_line_;
};

}  // namespace

void TombstoneOracle::note(const cache::Event& event) {
  const cache::DiskVersion version = grave_of(event);
  if (version == 0) return;
  cache::DiskVersion& known = versions_[event.key];
  known = std::max(known, version);
}

std::uint64_t TombstoneOracle::look(
    disk::File& file, const std::function<void(const std::string& what)>& on_fault) const {
  const auto superblock = disk::find_disk(file);
  if (!superblock) on_fault("its disk cannot be read: " + superblock.error().message);
  if (!superblock || !*superblock) return 0;
  std::uint64_t count = 0;
  const std::function<void(const disk::RecordLine&)> on_line = [&](const disk::RecordLine& line) {
    ++count;
    const auto found = versions_.find(line.key);
    // A part is reached by its head alone.
    if (line.kind == disk::RecordKind::kPart || found == versions_.end()) return;
    if (line.version < found->second) {
      on_fault("a start would find a record of version " + std::to_string(line.version) +
               ", whose key was told to be forgotten at " + std::to_string(found->second));
    }
  };
  Found sink(on_line);
  disk::PurgeLog purges(file, **superblock);
  disk::Recovery recovery(file, **superblock, purges, sink, {.writes_footers = false});
  if (const auto begun = recovery.begin(); !begun) {
    on_fault("its disk cannot be read: " + begun.error().message);
    return 0;
  }
  while (recovery.step()) {
  }
  return count;
}

}  // namespace encore::simulate
