// Restores bytes as saved hours, once as they are and once with the checksums made right, those of
// the filters within too, so that everything behind them is reached. Restored hours must hold to
// what HourlyFilters promises, whenever they are asked, take keys, save and restore again.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "base/check.h"
#include "filter/hash.h"
#include "filter/saved_filter.h"
#include "proxy/publish/form.h"
#include "proxy/publish/hourly_filters.h"

namespace {

using namespace encore;
using namespace encore::publish;
using namespace std::chrono_literals;

constexpr std::size_t kHeadBytes = 16;

HourlyFilters::Options options() {
  return {.keep = 3,
          .filter = {.layout = filter::Layout::kClassic,
                     .bits = 128,
                     .hashes = 4,
                     .capacity = 20,
                     .seed = {}}};
}

void put(std::string& bytes, std::size_t at, std::uint64_t value) {
  std::memcpy(bytes.data() + at, &value, sizeof(value));
}

std::uint64_t number_at(const std::string& bytes, std::size_t at) {
  std::uint64_t value = 0;
  std::memcpy(&value, bytes.data() + at, sizeof(value));
  return value;
}

// Seals what stands behind its length at `at`; answers where it ends, or none.
std::size_t seal_filter(std::string& bytes, std::size_t at, std::size_t end) {
  constexpr std::size_t kSumBytes = 8;
  if (end - at < 8) return std::string::npos;
  const std::uint64_t size = number_at(bytes, at);
  at += 8;
  if (size > end - at) return std::string::npos;
  if (size >= kSumBytes) {
    const std::string_view filter(bytes.data() + at, size);
    put(bytes, at + size - kSumBytes, filter::saved_checksum(filter));
  }
  return at + size;
}

std::string resealed(std::string bytes) {
  constexpr std::size_t kVersionAt = 8;
  constexpr std::size_t kHourBytes = 17;  // in front of its filters
  constexpr std::size_t kSumBytes = 8;
  if (bytes.size() < kHeadBytes + kSumBytes) return bytes;
  const std::size_t end = bytes.size() - kSumBytes;
  const int filters = bytes[kVersionAt] == 1 ? 1 : 2;
  for (std::size_t at = kHeadBytes; at != std::string::npos && end - at >= kHourBytes;) {
    at += kHourBytes;
    for (int i = 0; i < filters && at != std::string::npos; ++i) at = seal_filter(bytes, at, end);
  }
  const std::string_view body(bytes.data(), end);
  put(bytes, end, filter::hash_key(filter::HashFamily::kXxh3, filter::Seed{}, body).lo);
  return bytes;
}

// About the hour that they begin with, if that is one with a week to go before time ends.
WallTime near_first_hour(const std::string& bytes) {
  constexpr Hour kDefault{490'000};
  if (bytes.size() < kHeadBytes + 8) return start_of(kDefault);
  const Hour first{static_cast<std::int64_t>(number_at(bytes, kHeadBytes))};
  const bool has_path = first >= kDefault && first <= after(kLastHour, -168);
  return start_of(has_path ? first : kDefault) + 10min;
}

void check(HourlyFilters& hours, WallTime now) {
  const Hour current = hours.current(now);
  ENCORE_CHECK(hours.hours().rbegin()->first == current, "the last hour is the current one");
  ENCORE_CHECK(now < start_of(after(current)), "an hour is not over before the clock says so");
  ENCORE_CHECK(start_of(current) <= now + kStepBackMax, "a clock that was wrong is not kept to");
  ENCORE_CHECK(hours.hours().size() <= hours.keep() + 1, "no more is kept than was asked for");
  for (const auto& [hour, record] : hours.hours()) {
    ENCORE_CHECK(hour > after(current, -std::int64_t{hours.keep()} - 1),
                 "what is too old has gone");
    ENCORE_CHECK(parse_hour(to_path(hour)) == hour, "an hour has a path");
    if (!record.filter) continue;
    const filter::AnyFilterInfo info = record.filter->info();
    ENCORE_CHECK(info.parameters.seed == filter::Seed{}, "what is published has no seed");
    ENCORE_CHECK(info.fpr_now >= 0 && info.fpr_now <= 1, "an FPR from bits");
    for (const FormRow& row : kForms) {
      const auto& filter = row.form == Form::kDigest ? record.digest : record.filter;
      if (filter) ENCORE_CHECK(!write(*filter, row.form, facts_of(info)).empty(), "it has forms");
    }
  }
  const auto again = HourlyFilters::restore(hours.save(), options(), now);
  ENCORE_CHECK(again.has_value(), "what was saved restores");
}

void restore_at(std::string_view bytes, WallTime now) {
  auto hours = HourlyFilters::restore(bytes, options(), now);
  if (!hours) return;
  check(*hours, now);
  const std::string_view key = bytes.substr(0, 40);
  for (const auto later : {0min, 30min, 90min, -30min, 200min, -300min, 6000min}) {
    now += later;
    ENCORE_CHECK(hours->add(key, now), "there is memory for a small filter");
    const HourRecord* const record = hours->find(hours->current(now), now);
    ENCORE_CHECK(record != nullptr && record->filter && record->filter->test(key),
                 "what was added is there");
    ENCORE_CHECK(!record->digest || record->digest->test(key), "in the digest, too");
    check(*hours, now);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  const std::string sealed = resealed(bytes);
  for (const auto away : {0h, 1h, -1h, 2h, 5h, -5h}) {
    const WallTime now = near_first_hour(bytes) + away;
    restore_at(bytes, now);
    restore_at(sealed, now);
  }
  return 0;
}
