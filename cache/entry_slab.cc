#include "cache/entry_slab.h"

#include <sys/mman.h>

#include <algorithm>
#include <bit>

#include "base/check.h"

namespace encore::cache {
namespace {

constexpr std::uint32_t kWordBits = 64;
// The last number is kNoEntry, and two below it are the eviction policies' (kSearching).
constexpr std::uint32_t kChunksMax = (kNoEntry / EntrySlab::kChunk) - 1;

template <typename T>
T* map_zeroed() {
  constexpr std::size_t bytes = sizeof(T) * EntrySlab::kChunk;
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return memory == MAP_FAILED ? nullptr : static_cast<T*>(memory);
}

}  // namespace

void EntrySlab::Unmap::operator()(void* memory) const { munmap(memory, bytes); }

bool EntrySlab::map(std::uint32_t chunk) {
  Mapped<HotEntry> hot(map_zeroed<HotEntry>(), Unmap{sizeof(HotEntry) * kChunk});
  if (hot == nullptr) {
    return false;
  }
  if (has_cold_) {
    Mapped<ColdEntry> cold(map_zeroed<ColdEntry>(), Unmap{sizeof(ColdEntry) * kChunk});
    if (cold == nullptr) {
      return false;
    }
    cold_[chunk] = std::move(cold);
  }
  hot_[chunk] = std::move(hot);
  chunks_[chunk] = Chunk{};
  ++mapped_;
  return true;
}

void EntrySlab::unmap(std::uint32_t chunk) {
  hot_[chunk].reset();
  if (has_cold_) {
    cold_[chunk].reset();
  }
  --mapped_;
}

void EntrySlab::set_has_room(std::uint32_t chunk, bool has_room) {
  const std::uint64_t bit = std::uint64_t{1} << (chunk % kWordBits);
  std::uint64_t& word = has_room_[chunk / kWordBits];
  word = has_room ? word | bit : word & ~bit;
  if (has_room) {
    first_word_ = std::min(first_word_, chunk / kWordBits);
  }
}

std::uint32_t EntrySlab::first_with_room() {
  while (first_word_ < has_room_.size() && has_room_[first_word_] == 0) {
    ++first_word_;
  }
  if (first_word_ < has_room_.size()) {
    return first_word_ * kWordBits +
           static_cast<std::uint32_t>(std::countr_zero(has_room_[first_word_]));
  }
  const auto chunk = static_cast<std::uint32_t>(chunks_.size());
  if (chunk >= kChunksMax) {
    return kNoEntry;
  }
  chunks_.emplace_back();
  hot_.emplace_back();
  if (has_cold_) {
    cold_.emplace_back();
  }
  has_room_.resize(chunks_.size() / kWordBits + 1);
  set_has_room(chunk, true);
  return chunk;
}

EntryRef EntrySlab::allocate() {
  const std::uint32_t number = first_with_room();
  if (number == kNoEntry || (hot_[number] == nullptr && !map(number))) {
    return kNoEntry;
  }
  Chunk& chunk = chunks_[number];
  EntryRef ref = chunk.free;
  if (ref != kNoEntry) {
    chunk.free = hot(ref).older;
  } else {
    ENCORE_CHECK(chunk.untouched < kChunk, "a chunk with room has a place");
    ref = number * kChunk + chunk.untouched++;
  }
  ENCORE_CHECK(hot(ref).in_use == 0, "a free entry is nobody's");
  hot(ref).in_use = 1;
  ++size_;
  if (++chunk.used == kChunk) {
    set_has_room(number, false);
  }
  if (empty_mapped_ == number) {
    empty_mapped_ = kNoEntry;
  }
  return ref;
}

void EntrySlab::release(EntryRef ref) {
  ENCORE_CHECK(holds(ref), "an entry is released once");
  const std::uint32_t number = ref / kChunk;
  Chunk& chunk = chunks_[number];
  HotEntry& entry = hot(ref);
  entry.in_use = 0;
  entry.older = chunk.free;
  chunk.free = ref;
  --size_;
  if (chunk.used-- == kChunk) {
    set_has_room(number, true);
  }
  if (chunk.used != 0) {
    return;
  }
  // One empty chunk stays, the lower one, so that a cache at the border of a chunk does not map
  // and unmap it with every entry.
  if (empty_mapped_ == kNoEntry) {
    empty_mapped_ = number;
    return;
  }
  unmap(std::max(empty_mapped_, number));
  empty_mapped_ = std::min(empty_mapped_, number);
}

bool EntrySlab::need_cold() {
  std::vector<Mapped<ColdEntry>> cold(chunks_.size());
  for (std::size_t i = 0; i < cold.size(); ++i) {
    if (hot_[i] == nullptr) {
      continue;
    }
    cold[i] = Mapped<ColdEntry>(map_zeroed<ColdEntry>(), Unmap{sizeof(ColdEntry) * kChunk});
    if (cold[i] == nullptr) {
      return false;
    }
    for (std::uint32_t place = 0; place < chunks_[i].untouched; ++place) {
      cold[i][place] = {0, 0, MonotonicTime::max(), 0, kNoEntry};
    }
  }
  cold_ = std::move(cold);
  has_cold_ = true;
  return true;
}

std::uint64_t EntrySlab::memory_bytes() const {
  const std::size_t entry = sizeof(HotEntry) + (has_cold_ ? sizeof(ColdEntry) : 0);
  return std::uint64_t{mapped_} * kChunk * entry + chunks_.size() * (sizeof(Chunk) + 16);
}

}  // namespace encore::cache
