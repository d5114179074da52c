#include "proxy/transfer/saved_meta.h"

#include <limits>
#include <string_view>

#include "base/check.h"
#include "cache/byte_format.h"

namespace encore::server {
namespace {

constexpr std::uint64_t kVersion = 2;
constexpr std::uint64_t kOldestVersion = 1;
constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();
constexpr unsigned kKnownFlags = 2 * http::StoredMeta::kWithCookie - 1;

// `there` plus what lies between the two moments here; beyond its clock's range, the end of it.
template <typename Time, typename Other>
Time moved(Other moment, Other here, Time there) {
  std::int64_t apart = 0;
  std::int64_t sum = 0;
  const bool overflows = __builtin_sub_overflow(moment.time_since_epoch().count(),
                                                here.time_since_epoch().count(), &apart) ||
                         __builtin_add_overflow(there.time_since_epoch().count(), apart, &sum);
  if (overflows) return moment > here ? Time::max() : Time::min();
  return Time(Nanoseconds(sum));
}

// Little-endian, one behind the other.
class Fields {
 public:
  void moment(MonotonicTime time, const Clocks& clocks) {
    const bool never = time == MonotonicTime::max();
    number<8>(never ? kNever
                    : moved(time, clocks.monotonic, clocks.wall).time_since_epoch().count());
  }
  template <std::size_t kBytes, typename Number>
  void number(Number value) {
    const auto bits = static_cast<std::uint64_t>(value);
    for (std::size_t i = 0; i < kBytes; ++i) {
      out_[at_ + i] = static_cast<char>(bits >> (8 * i));
    }
    at_ += kBytes;
  }
  const SavedMeta& out() const { return out_; }

 private:
  SavedMeta out_{};  // unused space at the end is zero, for later fields
  std::size_t at_ = 0;
};

using Reader = cache::ByteReader<cache::ByteView>;

template <typename Number>
void read(Reader& reader, Number& number) {
  number = static_cast<Number>(reader.fixed(sizeof(Number)));
}

MonotonicTime monotonic_of(std::int64_t count, const Clocks& clocks) {
  if (count == kNever) return MonotonicTime::max();
  return moved(WallTime(Nanoseconds(count)), clocks.wall, clocks.monotonic);
}

// The clocks of the one that loads, or as they were to itself.
Clocks clocks_of(const Clocks& now, std::uint64_t run, std::int64_t apart) {
  if (run == 0 || run != now.run) return now;
  return {now.monotonic, moved(now.monotonic, MonotonicTime{}, WallTime(Nanoseconds(apart)))};
}

// Records of version 1 hold configured windows of staleness next to their origins' own, and guesses
// of freshness whatever the client. The first are dropped if the response never was fresh; by the
// second no client is served before the origin has confirmed them.
void distrust(http::StoredMeta& meta) {
  using http::StoredMeta;
  if (meta.is(StoredMeta::kNeverFresh)) meta.swr_seconds = meta.sie_seconds = 0;
  if (meta.is(StoredMeta::kHeuristic)) meta.flags |= StoredMeta::kInvalidated;
}

bool lies_within(std::uint64_t offset, std::uint64_t bytes, std::uint64_t size) {
  return offset + bytes <= size;
}

bool fits(const ObjectMeta& meta, const SavedParts& parts) {
  const http::StoredMeta& http = meta.http;
  return lies_within(meta.primary_bytes, meta.names_bytes, parts.key_bytes) &&
         (meta.large_bytes == 0 || meta.large_bytes == kLargeBodyBytes) &&
         lies_within(http.head_bytes, std::uint64_t{meta.tag_bytes} + meta.large_bytes,
                     parts.head_bytes) &&
         lies_within(http.etag_offset, http.etag_bytes, http.head_bytes) &&
         lies_within(meta.type_offset, meta.type_bytes, http.head_bytes);
}

}  // namespace

SavedMeta save_meta(const ObjectMeta& meta, const Clocks& clocks) {
  Fields out;
  const http::StoredMeta& http = meta.http;
  out.number<2>(kVersion);
  out.number<2>(http.flags);
  out.number<2>(http.status);
  out.number<2>(http.etag_bytes);
  out.moment(http.age_zero, clocks);
  out.moment(http.fresh_until, clocks);
  out.number<8>(http.last_modified);
  out.number<8>(http.date);
  out.number<4>(http.lifetime_seconds);
  out.number<4>(http.swr_seconds);
  out.number<4>(http.sie_seconds);
  out.number<4>(http.head_bytes);
  out.number<4>(http.etag_offset);
  out.number<4>(meta.primary_bytes);
  out.number<4>(meta.names_bytes);
  out.number<4>(std::uint32_t{meta.plain} & ObjectMeta::kPlain);
  out.number<8>(meta.variant);
  out.number<2>(meta.type_offset & UINT16_MAX);
  out.number<2>(meta.type_bytes);
  out.number<4>(meta.tag_bytes);
  out.number<4>(meta.large_bytes);
  std::int64_t apart = 0;
  const bool overflows = __builtin_sub_overflow(
      clocks.wall.time_since_epoch().count(), clocks.monotonic.time_since_epoch().count(), &apart);
  out.number<8>(overflows ? 0 : apart);
  out.number<8>(overflows ? 0 : clocks.run);
  // Zeros in records of before, whose heads were shorter.
  out.number<2>(meta.type_offset >> 16U);
  return out.out();
}

Result<ObjectMeta> load_meta(std::span<const std::byte> bytes, const SavedParts& parts,
                             const Clocks& clocks) {
  if (bytes.size() != kSavedMetaBytes) {
    return fail("a saved record of " + std::to_string(bytes.size()) + " bytes, expected " +
                std::to_string(kSavedMetaBytes));
  }
  cache::ByteView view({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  Reader reader(view);
  const std::uint64_t version = reader.fixed(2);
  if (version < kOldestVersion || version > kVersion) {
    return fail("a saved record of version " + std::to_string(version) + ", expected " +
                std::to_string(kOldestVersion) + " to " + std::to_string(kVersion));
  }
  ObjectMeta meta;
  http::StoredMeta& http = meta.http;
  read(reader, http.flags);
  read(reader, http.status);
  read(reader, http.etag_bytes);
  std::int64_t age_zero = 0;
  std::int64_t fresh_until = 0;
  read(reader, age_zero);
  read(reader, fresh_until);
  read(reader, http.last_modified);
  read(reader, http.date);
  read(reader, http.lifetime_seconds);
  read(reader, http.swr_seconds);
  read(reader, http.sie_seconds);
  read(reader, http.head_bytes);
  read(reader, http.etag_offset);
  read(reader, meta.primary_bytes);
  read(reader, meta.names_bytes);
  meta.plain = reader.fixed(4) != 0 ? 1 : 0;
  read(reader, meta.variant);
  meta.type_offset = static_cast<std::uint32_t>(reader.fixed(2));
  read(reader, meta.type_bytes);
  read(reader, meta.tag_bytes);
  read(reader, meta.large_bytes);
  std::int64_t apart = 0;
  std::uint64_t run = 0;
  read(reader, apart);
  read(reader, run);
  meta.type_offset |= static_cast<std::uint32_t>(reader.fixed(2)) << 16U;
  const Clocks then = clocks_of(clocks, run, apart);
  http.age_zero = monotonic_of(age_zero, then);
  http.fresh_until = monotonic_of(fresh_until, then);
  ENCORE_CHECK(reader.ok(), "the fields of a saved record fit its length");
  if ((http.flags & ~kKnownFlags) != 0 || !fits(meta, parts)) {
    return fail("a saved record that does not fit its key and head");
  }
  if (version < kVersion) distrust(http);
  // By a clock that was set back it would come from the future, and be fresh for longer than it is:
  // its origin confirms it first.
  if (http.age_zero > clocks.monotonic) {
    http.age_zero = clocks.monotonic;
    http::mark_stale(http, clocks.monotonic);
    http.flags |= http::StoredMeta::kInvalidated;
  }
  return meta;
}

}  // namespace encore::server
