#include "cache/index.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include <bit>

#include "base/check.h"

namespace encore::cache {

Index::Index(const EntrySlab& slab) : slab_(slab), directory_(1, new Segment), segments_(1) {}

Index::~Index() {
  for (std::size_t i = 0; i < directory_.size();) {
    Segment* const segment = directory_[i];
    i += std::size_t{1} << (depth_ - segment->depth);
    delete segment;
  }
}

std::uint32_t Index::match(const Bucket& bucket, std::uint8_t tag) {
#if defined(__SSE2__)
  static_assert(offsetof(Bucket, tags) == 0 && sizeof(Bucket) >= 16);
  const __m128i tags = _mm_load_si128(reinterpret_cast<const __m128i*>(&bucket));
  const __m128i equal = _mm_cmpeq_epi8(tags, _mm_set1_epi8(static_cast<char>(tag)));
  return static_cast<std::uint32_t>(_mm_movemask_epi8(equal)) & ((1U << kWays) - 1);
#else
  std::uint32_t mask = 0;
  for (std::uint32_t way = 0; way < kWays; ++way) {
    mask |= (bucket.tags[way] == tag ? 1U : 0U) << way;
  }
  return mask;
#endif
}

Index::Place Index::locate(const filter::Hash128& key, std::uint64_t mixed) const {
  Segment* const segment = directory_[directory_index(mixed)];
  const std::uint8_t tag = tag_of(mixed, key);
  std::uint32_t at = bucket_of(mixed);
  for (std::uint32_t seen = 0; seen < kBuckets; ++seen) {
    Bucket& bucket = segment->buckets[at];
    for (std::uint32_t mask = match(bucket, tag); mask != 0; mask &= mask - 1) {
      const auto way = static_cast<std::uint32_t>(std::countr_zero(mask));
      // Both halves at once: who finds an entry reads the cold one next.
      slab_.prefetch_cold(bucket.refs[way]);
      if (slab_.hot(bucket.refs[way]).key == key) {
        return {&bucket.refs[way], segment, at, way};
      }
    }
    if (bucket.passed_by == 0) {
      break;
    }
    at = at + 1 == kBuckets ? 0 : at + 1;
  }
  return {};
}

void Index::put(Segment& segment, std::uint64_t mixed, std::uint8_t tag, EntryRef ref) {
  for (std::uint32_t at = bucket_of(mixed);; at = at + 1 == kBuckets ? 0 : at + 1) {
    Bucket& bucket = segment.buckets[at];
    const std::uint32_t empty = match(bucket, 0);
    if (empty != 0) {
      const auto way = static_cast<std::uint32_t>(std::countr_zero(empty));
      bucket.tags[way] = tag;
      bucket.refs[way] = ref;
      ++segment.size;
      return;
    }
    ++bucket.passed_by;
  }
}

void Index::insert(const filter::Hash128& key, EntryRef ref) {
  const std::uint64_t mixed = mix(key);
  while (directory_[directory_index(mixed)]->size >= kSplitAt) {
    split(mixed);
  }
  put(*directory_[directory_index(mixed)], mixed, tag_of(mixed, key), ref);
}

void Index::replace(const filter::Hash128& key, EntryRef to) {
  EntryRef* const slot = locate(key, mix(key)).slot;
  ENCORE_CHECK(slot != nullptr, "only a key that is there can be replaced");
  *slot = to;
}

void Index::erase(const filter::Hash128& key) {
  const std::uint64_t mixed = mix(key);
  const Place place = locate(key, mixed);
  ENCORE_CHECK(place.slot != nullptr, "only a key that is there can be erased");
  place.segment->buckets[place.bucket].tags[place.way] = 0;
  for (std::uint32_t at = bucket_of(mixed); at != place.bucket;
       at = at + 1 == kBuckets ? 0 : at + 1) {
    --place.segment->buckets[at].passed_by;
  }
  if (--place.segment->size < kJoinAt / 2) {
    join(mixed);
  }
}

// Distributes the entries by the first bit that `from` did not look at, or, without `high`, puts
// them all into `low`.
void Index::put_all(const Segment& from, Segment& low, Segment* high) {
  // The keys are all over memory: ask for all before the first is needed.
  for (const Bucket& bucket : from.buckets) {
    for (std::uint32_t way = 0; way < kWays; ++way) {
      if (bucket.tags[way] != 0) {
        __builtin_prefetch(&slab_.hot(bucket.refs[way]));
      }
    }
  }
  for (const Bucket& bucket : from.buckets) {
    for (std::uint32_t way = 0; way < kWays; ++way) {
      if (bucket.tags[way] != 0) {
        const std::uint64_t mixed = mix(slab_.hot(bucket.refs[way]).key);
        const bool is_high = high != nullptr && ((mixed >> (63 - from.depth)) & 1U) != 0;
        put(is_high ? *high : low, mixed, bucket.tags[way], bucket.refs[way]);
      }
    }
  }
}

void Index::split(std::uint64_t mixed) {
  Segment* const old = directory_[directory_index(mixed)];
  ENCORE_CHECK(old->depth < kDepthMax, "the hash tells the keys apart");
  if (old->depth == depth_) {
    std::vector<Segment*> twice(directory_.size() * 2);
    for (std::size_t i = 0; i < twice.size(); ++i) {
      twice[i] = directory_[i / 2];
    }
    directory_ = std::move(twice);
    ++depth_;
  }
  auto* const low = new Segment;  // both belong to the directory
  auto* const high = new Segment;
  put_all(*old, *low, high);
  low->depth = high->depth = old->depth + 1;
  const std::size_t half = std::size_t{1} << (depth_ - low->depth);
  const std::size_t first = directory_index(mixed) & ~(2 * half - 1);
  for (std::size_t i = 0; i < half; ++i) {
    directory_[first + i] = low;
    directory_[first + half + i] = high;
  }
  delete old;
  ++segments_;
}

void Index::join(std::uint64_t mixed) {
  Segment* const one = directory_[directory_index(mixed)];
  if (one->depth == 0) {
    return;
  }
  const std::size_t half = std::size_t{1} << (depth_ - one->depth);
  const std::size_t first = directory_index(mixed) & ~(2 * half - 1);
  Segment* const low = directory_[first];
  Segment* const high = directory_[first + half];
  if (low->depth != high->depth || low->size + high->size >= kJoinAt) {
    return;
  }
  put_all(*high, *low, nullptr);
  --low->depth;
  for (std::size_t i = 0; i < half; ++i) {
    directory_[first + half + i] = low;
  }
  delete high;
  --segments_;
}

void Index::prefetch(const filter::Hash128& key) const {
  const std::uint64_t mixed = mix(key);
  __builtin_prefetch(&directory_[directory_index(mixed)]->buckets[bucket_of(mixed)]);
}

std::uint64_t Index::memory_bytes() const {
  return std::uint64_t{segments_} * sizeof(Segment) + directory_.size() * sizeof(Segment*);
}

}  // namespace encore::cache
