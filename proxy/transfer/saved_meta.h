// An ObjectMeta as bytes that outlive the process and the machine's boot: the data next to a stored
// response on a disk. Its moments become wall times there and monotonic ones again when they are
// read. Pure, thread-safe.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/error.h"
#include "base/time.h"
#include "proxy/transfer/response.h"

namespace encore::server {

// The same moment on both clocks.
struct Clocks {
  MonotonicTime monotonic;
  WallTime wall;
  // Run of the reading process (disk::Disks::run()): records that it has saved itself it reads
  // unchanged, even if the wall clock was set meanwhile. 0: no run.
  std::uint64_t run = 0;
};

// Version 2, little-endian: every field of the record with its own width, moments as nanoseconds
// since 1970; and how far the clocks were apart, for who has written it. Version 1 is read, too.
inline constexpr std::size_t kSavedMetaBytes = 112;

using SavedMeta = std::array<char, kSavedMetaBytes>;

SavedMeta save_meta(const ObjectMeta& meta, const Clocks& clocks);

// The parts next to which the saved record lies.
struct SavedParts {
  std::size_t key_bytes = 0;   // primary key, selecting names and variant key
  std::size_t head_bytes = 0;  // stored head, trailer lines and tags
};
// A response whose age is not known, because the wall clock stands before the moment at which its
// age was 0, is to be validated before its first use. Errors: another version or length, flags that
// are not known, places that lie outside the key or the head.
Result<ObjectMeta> load_meta(std::span<const std::byte> bytes, const SavedParts& parts,
                             const Clocks& clocks);

}  // namespace encore::server
