// Opening a disk: makes it where there is none, refuses what is not ours, and follows a size that
// was changed. Nothing is wiped unless that is asked for.
#pragma once

#include <cstdint>
#include <optional>

#include "base/error.h"
#include "filter/hash.h"
#include "proxy/disk/file.h"
#include "proxy/disk/format.h"

namespace encore::disk {

struct OpenOptions {
  std::uint64_t disk_bytes = 0;     // as configured
  std::uint64_t segment_bytes = 0;  // size in a new disk; 0: cache::default_segment_bytes()
  filter::Seed identity_seed;       // seed of the keys' hashes
  Uuid uuid;                        // for a new disk: random
  WallSeconds now = 0;
  bool clear = false;  // makes a new disk of whatever is there
};

// A larger disk gets its new segments. A smaller one keeps those it has: the kernel gives up what
// is beyond the end, and resize() follows. Room for all of it is taken. Errors, which show the path
// and what to do: another's file, a newer format, damaged, another seed, no room, the device's.
Result<Superblock> open_disk(File& file, const OpenOptions& options);

// Reads a disk's superblock without changing it. Errors: as open_disk().
Result<Superblock> read_superblock(File& file);
// The same; nothing where there is none yet.
Result<std::optional<Superblock>> find_disk(File& file);

// Makes the disk remember these runs, durably; returns its superblock from then on. Errors: the
// device's. REQUIRES: one that was opened, and that nobody else writes the superblock of.
Result<Superblock> remember_runs(File& file, const Superblock& superblock, const RunHistory& runs);

// The next open_disk() finds nothing on it. For one of which nobody can say any more what was
// purged. REQUIRES: nobody uses it.
Result<void> forget_disk(File& file, Superblock superblock);

// A disk of so many segments; those beyond them are gone. REQUIRES: nobody writes to it.
Result<Superblock> resize(File& file, const Superblock& superblock, std::uint32_t segments);

}  // namespace encore::disk
