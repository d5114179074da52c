// Bodies too long for one record lie on disk in parts: records of kPartBytes of the body each,
// except the last. Part i has the bytes from i * kPartBytes on. A part is in the index under a key
// of its own, derived from its object's key, the body's number and i. So parts are placed, moved,
// lost and found again one by one, and nothing points at a place. Pure functions. Why no record
// names the places of all: docs/decisions/0140.
#pragma once

#include <algorithm>
#include <cstdint>

#include "cache/types.h"

namespace encore::cache {

// Four records of this size, with a front of up to 30 KiB each, fill a segment of 16 MiB, and 16
// one of 64 MiB; with 4 MiB each there would be three, and 15. Whole blocks of 64 KiB.
inline constexpr std::uint64_t kPartBytes = 63 * 64ULL * 1024;

// A body up to this size is one record with its head; a longer one lies in parts.
inline constexpr std::uint64_t kWholeBodyMax = 4ULL << 20U;

constexpr std::uint64_t part_count(std::uint64_t body_bytes) {
  return body_bytes / kPartBytes + (body_bytes % kPartBytes == 0 ? 0 : 1);
}

// Bytes of part i. REQUIRES: i < part_count(body_bytes).
constexpr std::uint64_t part_bytes(std::uint64_t body_bytes, std::uint64_t i) {
  return std::min(kPartBytes, body_bytes - i * kPartBytes);
}

// XXH3-128 of the four words, least byte first; without text. `object` is the hash of the object's
// key, `body` a number that no other body on these disks ever had, `part` counts from 0.
Key part_key(const filter::Hash128& object, std::uint64_t body, std::uint64_t part) noexcept;

}  // namespace encore::cache
