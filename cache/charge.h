// The memory that a stored response costs in the proxy, slack of the allocator included. The proxy
// charges by it, and so does a simulation that is to decide as the proxy does. Pure functions,
// thread-safe; the kernel adds its own cost of an entry (Kernel::charge_of_entry).
#pragma once

#include <cstddef>
#include <cstdint>

namespace encore::cache {

// The store's bookkeeping; the store asserts that it is of these sizes.
inline constexpr std::size_t kObjectBytes = 40;  // per object
inline constexpr std::size_t kBodyBytes = 120;   // per body that does not lie in the object
inline constexpr std::size_t kChunkBytes = 56;   // per run of the body after the first
inline constexpr std::size_t kRunBytesMax = 1024 * 1024;
// The server's record next to each head.
inline constexpr std::size_t kRecordBytes = 96;
// Reserved for a head before it is made, in addition to the bytes received.
inline constexpr std::size_t kHeadGrowthBytes = 64;

// The largest object without its body. One that fits no slot has a run of pages of its own. Why no
// larger slots: docs/decisions/0391.
inline constexpr std::size_t kObjectBytesMax = 256 * 1024;
inline constexpr std::size_t kKeyBytesMax = 65535;  // and the longest key text

// The sizes that decide a charge, all in bytes.
struct ObjectSizes {
  std::size_t key = 0;     // key text
  std::size_t meta = 0;    // the server's record next to the head
  std::size_t head = 0;    // prebuilt response head
  std::uint64_t body = 0;  // body as stored
};

// True if there is such an object, whatever its body.
bool is_object(const ObjectSizes& sizes);
// True if the body lies in the object's own slot and not in memory of its own. An empty one does
// wherever the object lies.
bool is_inline(const ObjectSizes& sizes);

// Charge of an object of these sizes. Exact where the body's length was known beforehand; where it
// was not, the object's own may be up to 512 bytes more (more and smaller pieces). Errors: none;
// what is_object() is false for still gets a figure, but the store refuses it.
std::uint64_t charge_for(const ObjectSizes& sizes);
// Charge of a slot, or of the run of an object that fits none: whole pages of the system.
std::uint64_t own_charge(std::uint64_t bytes);

// Charge of a separate body of this length with the plan of pieces used for known lengths:
// runs of at most 1 MiB, the last rounded up to 4 KiB, plus bookkeeping.
std::uint64_t body_charge(std::uint64_t length);

}  // namespace encore::cache
