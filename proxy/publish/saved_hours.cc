// The saved form of HourlyFilters: "ENCHOURS", version (4 bytes), number of hours (4). Each hour
// has its number (8, signed), whether it is complete (1), events (8), the size of its saved filter
// (8) and its bytes, and the same for its digest. The last field is xxh3 of all that (8). Numbers
// are little-endian. Version 1 has no digests.
#include <optional>
#include <string>
#include <utility>

#include "cache/byte_format.h"
#include "filter/hash.h"
#include "filter/published/squid_digest.h"
#include "proxy/publish/hourly_filters.h"

namespace encore::publish {
namespace {

constexpr std::string_view kMagic = "ENCHOURS";
constexpr std::uint64_t kVersion = 2;
constexpr std::uint64_t kVersionWithoutDigests = 1;
constexpr int kChecksumBytes = 8;

std::uint64_t checksum(std::string_view bytes) {
  return filter::hash_key(filter::HashFamily::kXxh3, filter::Seed{}, bytes).lo;
}

std::unexpected<Error> damaged(const std::string& what) {
  return fail("saved hours refused: " + what);
}

void put_filter(cache::ByteWriter& writer, const std::optional<filter::AnyFilter>& filter,
                std::string& out) {
  const std::string saved = filter ? filter->save() : std::string();
  writer.fixed(saved.size(), 8);
  out += saved;
}

// Nothing where there is none.
Result<std::optional<filter::AnyFilter>> take_filter(cache::ByteReader<cache::ByteView>& reader,
                                                     cache::ByteView& view) {
  const std::uint64_t size = reader.fixed(8);
  if (!reader.ok() || size > view.rest().size()) return damaged("it ends in the midst of an hour");
  if (size == 0) return std::nullopt;
  auto filter = filter::AnyFilter::load(view.rest().substr(0, size));
  if (!filter) return std::unexpected(filter.error());
  if (filter->info().parameters.seed != filter::Seed{}) return damaged("a filter with a seed");
  if (filter->plain() == nullptr) return damaged("a filter that is not plain");
  view.skip(size);
  return std::move(*filter);
}

bool is_digest(const filter::AnyFilter& filter) {
  return filter::squid_digest_of(*filter.plain()).has_value();
}

}  // namespace

std::string HourlyFilters::save() const {
  std::string out(kMagic);
  cache::ByteWriter writer(out);
  writer.fixed(kVersion, 4);
  writer.fixed(hours_.size(), 4);
  for (const auto& [hour, record] : hours_) {
    writer.fixed(static_cast<std::uint64_t>(hour.number), 8);
    writer.fixed(record.complete ? 1 : 0, 1);
    writer.fixed(record.events, 8);
    put_filter(writer, record.filter, out);
    put_filter(writer, record.digest, out);
  }
  writer.fixed(checksum(out), kChecksumBytes);
  return out;
}

Result<HourlyFilters> HourlyFilters::restore(std::string_view bytes, const Options& options,
                                             WallTime now) {
  auto hours = create(options, now);
  if (!hours) return hours;
  if (!bytes.starts_with(kMagic) || bytes.size() < kMagic.size() + kChecksumBytes) {
    return damaged(std::to_string(bytes.size()) + " bytes that do not begin with " +
                   std::string(kMagic));
  }
  const std::string_view body = bytes.substr(0, bytes.size() - kChecksumBytes);
  cache::ByteView tail(bytes.substr(body.size()));
  if (cache::ByteReader(tail).fixed(kChecksumBytes) != checksum(body)) {
    return damaged("a wrong checksum");
  }
  hours->hours_.clear();
  if (auto taken = hours->take_records(body.substr(kMagic.size())); !taken) {
    return std::unexpected(taken.error());
  }
  // From the last time that it was saved to this moment nobody watched.
  auto& [latest, record] = *hours->hours_.rbegin();
  record.complete = false;
  const Hour hour = hour_of(now);
  if (hour > latest) {
    hours->begin_hour(hour, false);
  } else {
    hours->advance(now);
  }
  hours->forget_old();
  return hours;
}

Result<void> HourlyFilters::take_records(std::string_view body) {
  cache::ByteView view(body);
  cache::ByteReader reader(view);
  const std::uint64_t version = reader.fixed(4);
  if (version != kVersion && version != kVersionWithoutDigests) {
    return damaged("version " + std::to_string(version) + ", accepted: " +
                   std::to_string(kVersionWithoutDigests) + ", " + std::to_string(kVersion));
  }
  const std::uint64_t count = reader.fixed(4);
  for (std::uint64_t i = 0; reader.ok() && i < count; ++i) {
    const Hour hour{static_cast<std::int64_t>(reader.fixed(8))};
    const std::uint64_t complete = reader.fixed(1);
    const std::uint64_t events = reader.fixed(8);
    if (!reader.ok()) return damaged("it ends in the midst of an hour");
    // Hours that there are, one after the other.
    const bool later = hours_.empty() || hour > hours_.rbegin()->first;
    if (!later || hour < Hour{} || hour > kLastHour || complete > 1) {
      return damaged("hour " + std::to_string(hour.number) + " has no place there");
    }
    HourRecord& record = begin_hour(hour, complete != 0);
    record.events = events;
    auto filter = take_filter(reader, view);
    if (!filter) return std::unexpected(filter.error());
    record.filter = std::move(*filter);
    if (version == kVersionWithoutDigests) continue;
    auto digest = take_filter(reader, view);
    if (!digest) return std::unexpected(digest.error());
    if (*digest && (!record.filter || !is_digest(**digest))) return damaged("no digest of an hour");
    record.digest = std::move(*digest);
  }
  if (!reader.ok() || count == 0 || !view.rest().empty()) {
    return damaged("lengths that do not add up");
  }
  return {};
}

}  // namespace encore::publish
