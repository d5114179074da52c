// What a stored response costs in memory, slack of the allocator included. Pure functions,
// thread-safe; the kernel adds its own cost of an entry (cache::Kernel::charge_of_entry).
#pragma once

#include <cstddef>
#include <cstdint>

namespace encore::store {

// The sizes that decide a charge, all in bytes.
struct ObjectSizes {
  std::size_t key = 0;     // key text
  std::size_t meta = 0;    // the server's record beside the head
  std::size_t head = 0;    // prebuilt response head
  std::uint64_t body = 0;  // body as stored
};

// Whether the body lies in the object's own slot (Object::inline_body) and not in a Body.
bool is_inline(const ObjectSizes& sizes);

// Charge of an object of these sizes. Exact for objects made by MemoryStore::make_small and for
// bodies whose length was known; where it was not, the object's own charge() may be up to 512
// bytes more (more and smaller pieces). Errors: none; a head that fits no slot (above ~15 KiB with
// key and meta) still gets a figure, but the store refuses it.
std::uint64_t charge_for(const ObjectSizes& sizes);

// Charge of a separate body of this length with the plan of pieces used for known lengths:
// runs of at most 1 MiB, the last rounded up to 4 KiB, plus bookkeeping.
std::uint64_t body_charge(std::uint64_t length);

}  // namespace encore::store
