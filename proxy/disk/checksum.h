// The checksums of all that lies on a disk: XXH3, 64 bits, seeded with what the bytes are of and
// where they lie, so that what is old, moved or of another disk never fits. No signature: who can
// write to the file can make them. Pure, thread-safe.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <span>

namespace encore::disk {

struct Uuid {
  std::uint64_t lo = 0;
  std::uint64_t hi = 0;
  friend bool operator==(const Uuid&, const Uuid&) = default;
};

// Seed of the checksums of one turn of a segment.
using Salt = std::uint64_t;
Salt salt_of(const Uuid& disk, std::uint32_t segment, std::uint64_t sequence);

// Checksum of bytes that lie `offset` into the unit of the salt.
std::uint64_t checksum(Salt salt, std::uint64_t offset, std::span<const std::byte> bytes);

inline constexpr std::size_t kBlockBytes = 65536;
inline constexpr std::size_t kSumBytes = 8;

// As many blocks as the body has, the last one shorter.
constexpr std::size_t block_count(std::uint64_t body_bytes) {
  return static_cast<std::size_t>((body_bytes + kBlockBytes - 1) / kBlockBytes);
}

// Puts the checksums of a body's blocks into `out`, kSumBytes each; the body, which lies in pieces
// here, begins at `offset`. REQUIRES: room for all of them.
void put_block_sums(Salt salt, std::uint64_t offset, std::span<const iovec> body,
                    std::span<std::byte> out);

}  // namespace encore::disk
