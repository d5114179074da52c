// Purges, and the frames of pages that the purge log keeps them in (purge_log.h). Pure functions;
// bytes from a disk are not trusted.
//
//   frame   "ENPL"  flags  epoch  bytes of entries  entries  checksum  the entries, zeros
//   entry   kind, zero, length of its pattern, version, sequence, then the key's hash or the
//   pattern
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>

#include "cache/disk_place.h"
#include "filter/hash.h"
#include "proxy/disk/aligned_buffer.h"
#include "proxy/disk/format.h"

namespace encore::disk {

enum class PurgeKind : std::uint8_t {
  kKey = 1,     // a purge of a URL, or a replacement that was not written
  kTag = 2,     // all with a surrogate key
  kPrefix = 3,  // all whose key's text begins with it
  kBan = 4,     // all that a ban matches, as the server has saved it
};

struct Purge {
  PurgeKind kind = PurgeKind::kKey;
  cache::DiskVersion version = 0;  // covers versions below it
  std::uint64_t sequence = 0;      // the disk's last turn then: no later one has what it is of
  filter::Hash128 key;             // for kKey
  std::string pattern;             // for the others, at most kPatternBytesMax
  friend bool operator==(const Purge&, const Purge&) = default;
};
inline constexpr std::size_t kPatternBytesMax = 60'000;
using VisitPurge = std::function<void(const Purge&)>;

inline constexpr std::size_t kFrameBytesMax = 65536;
inline constexpr std::size_t kFrameHeaderBytes = 32;

// How many of the first of them one frame takes.
std::size_t frame_entries(std::span<const Purge> purges);
// Bytes of the frames for all of them.
std::uint64_t frames_bytes(std::span<const Purge> purges);

// Seed of the checksums of one epoch's frames.
Salt purge_salt(const Uuid& disk, std::uint64_t epoch);

// Collects entries until a frame is full. Thread-compatible.
class FrameBuilder {
 public:
  // False: it does not fit any more. REQUIRES: a pattern that is not too long.
  bool add(const Purge& purge);
  bool empty() const { return entries_ == 0; }
  struct Seal {
    Salt salt = 0;
    std::uint64_t epoch = 0;
    std::uint64_t offset = 0;  // in the copy
    bool ends_snapshot = false;
  };
  // The frame's pages, until the next add(), which begins another one.
  std::span<const std::byte> seal(const Seal& seal);

 private:
  AlignedBuffer buffer_{kFrameBytesMax};
  std::size_t bytes_ = 0;  // bytes of entries
  std::uint32_t entries_ = 0;
};

struct FrameHead {
  std::uint64_t epoch = 0;
  std::size_t bytes = 0;  // bytes of all its pages
};
// Nothing: no frame begins with this page.
std::optional<FrameHead> frame_head(ConstPage page);

struct Frame {
  std::span<const std::byte> entries;
  bool ends_snapshot = false;
};
// `bytes`: as many as its head says. Nothing: damaged, or of another place or epoch.
std::optional<Frame> decode_frame(std::span<const std::byte> bytes, Salt salt,
                                  std::uint64_t offset);
// False: no entries of ours; those before were visited.
bool for_each_purge(std::span<const std::byte> entries, const VisitPurge& visit);

}  // namespace encore::disk
