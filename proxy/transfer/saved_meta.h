// An ObjectMeta as bytes that outlive the process and the machine's boot: what is beside a stored
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
  // Of the process that looks at them (disk::Disks::run()): what it has saved itself it reads as it
  // was, whoever has set the wall clock meanwhile. 0: of nobody.
  std::uint64_t run = 0;
};

// Version 2, little-endian: every field of the record with its own width, moments as nanoseconds
// since 1970; and how far the clocks were apart, for who has written it. Version 1 is read, too.
inline constexpr std::size_t kSavedMetaBytes = 112;

using SavedMeta = std::array<char, kSavedMetaBytes>;

SavedMeta save_meta(const ObjectMeta& meta, const Clocks& clocks);

// What the saved record lies beside.
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
