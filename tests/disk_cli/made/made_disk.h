// A disk as the proxy writes it: keys with realms, saved metas, tags; written by SegmentWriter
// where SegmentLog places it. Thread-compatible.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "cache/segment_log.h"
#include "proxy/disk/file.h"
#include "proxy/disk/purge_log.h"
#include "proxy/disk/segment_writer.h"

namespace encore::disk {

struct MadeObject {
  std::string url;
  std::string names = {};  // that it varies by
  std::string variant_key = {};
  std::vector<std::string> tags = {};
  std::uint64_t body_bytes = 0;
  WallSeconds stored_at = 0;
  std::uint32_t fresh_for = 0;  // seconds from then
  std::string realm = "forward:";
};

class MadeDisk {
 public:
  // A new disk. REQUIRES: room for four segments.
  MadeDisk(File& file, std::uint64_t disk_bytes, std::uint64_t segment_bytes, WallSeconds now);

  // With which version it is written; a body that is longer than a record may be in parts,
  // before its head.
  // REQUIRES: there is room without a reclaim.
  cache::DiskVersion write(const MadeObject& object);
  // Of such a body one part, or the head alone: of a cache with several disks they lie on all.
  void write_part(const MadeObject& object, std::uint64_t part);
  cache::DiskVersion write_head(const MadeObject& object);
  void purge_url(const MadeObject& object);
  void purge_tag(const std::string& tag);
  // What is written is on the disk, in a segment that is still open.
  void flush();
  // As after a clean stop.
  void stop();

 private:
  void purge(Purge purge);
  std::string key_of(const MadeObject& object) const;
  void write(const Record& record, WallSeconds now);

  Superblock superblock_;
  std::unique_ptr<cache::SegmentLog> log_;
  std::unique_ptr<SegmentWriter> writer_;
  std::unique_ptr<PurgeLog> purges_;
  cache::DiskVersion version_ = 0;
};

}  // namespace encore::disk
