// InspectedDisk: a disk that is inspected, whether a proxy has it or not. Nothing is ever written.
// Thread-compatible.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/error.h"
#include "proxy/disk/file.h"
#include "proxy/disk/format.h"
#include "proxy/disk/purge_log.h"

namespace encore::disk {

struct HashOfKey {
  std::size_t operator()(const filter::Hash128& key) const {
    return static_cast<std::size_t>(key.lo);
  }
};

// Purges of records that may still lie on the disk.
struct KnownPurges {
  // The highest version at which each key was purged: versions below it are dead.
  std::unordered_map<filter::Hash128, cache::DiskVersion, HashOfKey> keys;
  std::vector<Purge> rules;  // by tag and by prefix
  std::uint64_t entries = 0;
  std::uint64_t used_bytes = 0;  // size of the log, in each of its copies
};

class InspectedDisk {
 public:
  // A directory stands for the file `disk` in it. Errors: those of open_file() for a look, and of
  // read_superblock().
  static Result<InspectedDisk> open(const std::string& path);
  static Result<InspectedDisk> open(std::unique_ptr<File> file);

  File& file() const { return *file_; }
  const Superblock& superblock() const { return superblock_; }

  // Errors: PurgeLog's.
  Result<KnownPurges> read_purges() const;
  // Calls `read`, which reads the purge log, again where it fails and a process has rewritten the
  // log meanwhile. Errors: its last.
  Result<void> read_unchanged(const std::function<Result<void>()>& read) const;
  // As it is now. Nothing: none of ours, or the device failed.
  std::optional<SegmentHeader> read_header(std::uint32_t segment) const;
  // Headers of all segments that have one, the newest first.
  std::vector<SegmentHeader> read_headers() const;
  // True if a process has erased the segment, or begun it anew, since its header was read.
  bool is_overwritten(const SegmentHeader& header) const;

 private:
  InspectedDisk(std::unique_ptr<File> file, const Superblock& superblock)
      : file_(std::move(file)), superblock_(superblock) {}

  // The first bytes of the two copies of the purge log: they differ after each time it is
  // rewritten.
  std::vector<std::byte> purge_begins() const;

  std::unique_ptr<File> file_;
  Superblock superblock_;
};

// Borrowed.
std::vector<const InspectedDisk*> pointers_to(const std::vector<InspectedDisk>& disks);

}  // namespace encore::disk
