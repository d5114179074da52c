#include "cache/index.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include <bit>
#include <functional>
#include <utility>

#include "base/check.h"
#include "base/prefetch.h"

namespace encore::cache {

std::uint64_t DiskKeys::spread(std::uint64_t mixed) {
  // 2^28 log2(1 + i / 16).
  static constexpr std::array<std::uint32_t, 17> kLog = {
      0,         23478128,  45613895,  66552535,  86416915,  105311906,
      123327736, 140542592, 157024676, 172833830, 188022855, 202638571,
      216722687, 230312520, 243441591, 256140122, 268435456};
  const std::uint64_t upper = mixed >> 32U;
  const std::uint64_t piece = upper >> 28U;
  const std::uint64_t from = kLog[piece];
  const std::uint64_t within = ((kLog[piece + 1] - from) * (upper & 0xfffffffU)) >> 24U;
  return (((from << 4U) + within) << 32U) | (mixed & 0xffffffffU);
}

template <typename Keys>
BasicIndex<Keys>::BasicIndex(const typename Keys::Slab& slab)
    : keys_(slab), directory_(1, new Segment), segments_(1) {}

template <typename Keys>
BasicIndex<Keys>::~BasicIndex() {
  for (std::size_t i = 0; i < directory_.size();) {
    Segment* const segment = directory_[i];
    i += std::size_t{1} << (depth_ - segment->depth);
    delete segment;
  }
}

template <typename Keys>
std::uint32_t BasicIndex<Keys>::match(const Bucket& bucket, std::uint8_t tag) {
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

template <typename Keys>
typename BasicIndex<Keys>::Place BasicIndex<Keys>::locate(const Key& key,
                                                          std::uint64_t mixed) const {
  Segment* const segment = directory_[directory_index(mixed)];
  const std::uint8_t tag = Keys::tag_of(mixed, key);
  std::uint32_t at = bucket_of(mixed);
  for (std::uint32_t seen = 0; seen < kBuckets; ++seen) {
    Bucket& bucket = segment->buckets[at];
    for (std::uint32_t mask = match(bucket, tag); mask != 0; mask &= mask - 1) {
      const auto way = static_cast<std::uint32_t>(std::countr_zero(mask));
      // Prefetches both halves: a caller that finds an entry reads the cold one next.
      keys_.prefetch_rest(bucket.refs[way]);
      if (keys_.is_key_of(bucket.refs[way], key)) {
        return {&bucket.refs[way], segment};
      }
    }
    if (bucket.passed_by == 0) {
      break;
    }
    at = at + 1 == kBuckets ? 0 : at + 1;
  }
  return {};
}

template <typename Keys>
EntryRef BasicIndex<Keys>::find_mixed(const MixedKey& key) const {
  const Segment& segment = *directory_[directory_index(key.mixed)];
  std::uint32_t at = bucket_of(key.mixed);
  for (std::uint32_t seen = 0; seen < kBuckets; ++seen) {
    const Bucket& bucket = segment.buckets[at];
    for (std::uint32_t mask = match(bucket, key.tag); mask != 0; mask &= mask - 1) {
      const EntryRef ref = bucket.refs[static_cast<std::uint32_t>(std::countr_zero(mask))];
      if (keys_.mixed_of(ref) == key.mixed) {
        return ref;
      }
    }
    if (bucket.passed_by == 0) {
      break;
    }
    at = at + 1 == kBuckets ? 0 : at + 1;
  }
  return kNoEntry;
}

template <typename Keys>
void BasicIndex<Keys>::put(Segment& segment, std::uint64_t mixed, std::uint8_t tag, EntryRef ref) {
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

template <typename Keys>
void BasicIndex<Keys>::insert(const Key& key, EntryRef ref) {
  const std::uint64_t mixed = Keys::mix(key);
  // More than once where all of a segment's keys go to the same half.
  while (has_to_split(*directory_[directory_index(mixed)], mixed)) {
    split(mixed);
  }
  put(*directory_[directory_index(mixed)], mixed, Keys::tag_of(mixed, key), ref);
}

template <typename Keys>
void BasicIndex<Keys>::replace(const Key& key, EntryRef to) {
  EntryRef* const slot = locate(key, Keys::mix(key)).slot;
  ENCORE_CHECK(slot != nullptr, "only a key that is there can be replaced");
  *slot = to;
}

template <typename Keys>
bool BasicIndex<Keys>::holds(const Bucket& bucket, const EntryRef* slot) {
  return std::less_equal<>{}(bucket.refs.data(), slot) &&
         std::less<>{}(slot, bucket.refs.data() + kWays);
}

template <typename Keys>
void BasicIndex<Keys>::erase(const Key& key) {
  const std::uint64_t mixed = Keys::mix(key);
  const Place place = locate(key, mixed);
  ENCORE_CHECK(place.slot != nullptr, "only a key that is there can be erased");
  std::uint32_t at = bucket_of(mixed);
  while (!holds(place.segment->buckets[at], place.slot)) {
    --place.segment->buckets[at].passed_by;
    at = at + 1 == kBuckets ? 0 : at + 1;
  }
  Bucket& bucket = place.segment->buckets[at];
  bucket.tags[static_cast<std::size_t>(place.slot - bucket.refs.data())] = 0;
  if (--place.segment->size < kJoinAt / 2) {
    join(mixed);
  }
}

// Distributes the entries by the first bit that `from` did not use, or, without `high`, puts them
// all into `low`.
template <typename Keys>
void BasicIndex<Keys>::put_all(const Segment& from, Segment& low, Segment* high) {
  // The keys are all over memory: ask for all before the first is needed.
  for (const Bucket& bucket : from.buckets) {
    for (std::uint32_t way = 0; way < kWays; ++way) {
      if (bucket.tags[way] != 0) {
        keys_.prefetch(bucket.refs[way]);
      }
    }
  }
  for (const Bucket& bucket : from.buckets) {
    for (std::uint32_t way = 0; way < kWays; ++way) {
      if (bucket.tags[way] != 0) {
        const std::uint64_t mixed = keys_.mixed_of(bucket.refs[way]);
        const bool is_high = high != nullptr && ((mixed >> (63 - from.depth)) & 1U) != 0;
        put(is_high ? *high : low, mixed, bucket.tags[way], bucket.refs[way]);
      }
    }
  }
}

template <typename Keys>
bool BasicIndex<Keys>::has_to_split(const Segment& segment, std::uint64_t mixed) const {
  if (segment.size >= kSplitAt) return true;
  if (expected_ == 0 || segment.size == 0 || segment.size % kSplitEarlyAt != 0) return false;
  const double width = std::ldexp(1.0, -static_cast<int>(segment.depth));
  const double begin =
      segment.depth == 0 ? 0 : width * static_cast<double>(mixed >> (64 - segment.depth));
  const double share = Keys::share_below(begin + width) - Keys::share_below(begin);
  return share * static_cast<double>(expected_) >= kSplitAt;
}

template <typename Keys>
void BasicIndex<Keys>::split(std::uint64_t mixed) {
  Segment& low = *directory_[directory_index(mixed)];
  ENCORE_CHECK(low.depth < kDepthMax, "the hash tells the keys apart");
  if (low.depth == depth_) {
    std::vector<Segment*> twice(directory_.size() * 2);
    for (std::size_t i = 0; i < twice.size(); ++i) {
      twice[i] = directory_[i / 2];
    }
    directory_ = std::move(twice);
    ++depth_;
  }
  auto* const high = new Segment;  // the directory's
  // The lower half stays where it is: what is aligned does not fit into the hole of a freed one.
  const Segment all = std::exchange(low, {});
  put_all(all, low, high);
  low.depth = high->depth = all.depth + 1;
  const std::size_t half = std::size_t{1} << (depth_ - low.depth);
  const std::size_t first = directory_index(mixed) & ~(2 * half - 1);
  for (std::size_t i = 0; i < half; ++i) directory_[first + half + i] = high;
  ++segments_;
}

template <typename Keys>
void BasicIndex<Keys>::join(std::uint64_t mixed) {
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

template <typename Keys>
void BasicIndex<Keys>::prefetch(const Key& key) const {
  const std::uint64_t mixed = Keys::mix(key);
  encore::prefetch(&directory_[directory_index(mixed)]->buckets[bucket_of(mixed)]);
}

template <typename Keys>
void BasicIndex<Keys>::prefetch_to_insert(const Key& key) const {
  prefetch(key);
  encore::prefetch(directory_[directory_index(Keys::mix(key))]);
}

template <typename Keys>
std::uint64_t BasicIndex<Keys>::memory_bytes() const {
  return std::uint64_t{segments_} * sizeof(Segment) + directory_.size() * sizeof(Segment*);
}

template class BasicIndex<EntryKeys>;
template class BasicIndex<DiskKeys>;

}  // namespace encore::cache
