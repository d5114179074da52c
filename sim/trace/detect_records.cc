// Binary formats without a mark: what their records look like.
#include <algorithm>
#include <array>
#include <cmath>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "sim/trace/detect.h"
#include "sim/trace/record_format.h"

namespace encore::sim {
namespace {

// Fewer records may look like anything.
constexpr std::size_t kRecordsMin = 16;
constexpr std::size_t kHashesMin = 64;

std::size_t records_of(const Head& head, std::size_t size) {
  return head.whole && head.bytes.size() % size != 0 ? 0 : head.bytes.size() / size;
}

// --- oracleGeneral ------------------------------------------------------------------------------

struct OracleRecord {
  std::uint64_t time;
  std::uint64_t id;
  std::uint64_t size;
  std::int64_t next;  // number of the request that asks for it again; -1 or the largest: none
  bool has_next() const { return next >= 0 && next != INT64_MAX; }
};

std::vector<OracleRecord> oracle_records(std::string_view bytes, std::size_t count) {
  std::vector<OracleRecord> records;
  for (std::size_t i = 0; i < count; ++i) {
    const std::string_view record = bytes.substr(24 * i, 24);
    records.push_back({.time = load_little(record, 0, 4),
                       .id = load_little(record, 4, 8),
                       .size = load_little(record, 12, 4),
                       .next = static_cast<std::int64_t>(load_little(record, 16, 8))});
  }
  return records;
}

// Times that neither run back by much nor leap, sizes that are sizes, and next requests that are
// later ones.
bool looks_oracle_general(const std::vector<OracleRecord>& records) {
  constexpr std::uint64_t kBack = 60;
  constexpr std::uint64_t kLeap = 86400;
  constexpr std::int64_t kRequestsMax = std::int64_t{1} << 42U;
  std::uint64_t last_time = records.front().time;
  std::size_t sized = 0;
  for (std::size_t i = 0; i < records.size(); ++i) {
    const OracleRecord& record = records[i];
    if (record.time + kBack < last_time || record.time > last_time + kLeap || record.next < -2 ||
        (record.has_next() && record.next > kRequestsMax)) {
      return false;
    }
    // The trace may be a part of a longer one, whose numbers go on.
    if (record.has_next() && static_cast<std::size_t>(record.next) <= i) {
      return false;
    }
    last_time = record.time;
    sized += record.size != 0 ? 1U : 0U;
  }
  const bool all_the_same = std::ranges::all_of(
      records, [&](const OracleRecord& record) { return record.id == records.front().id; });
  return !all_the_same && 10 * sized >= 9 * records.size();
}

// How many records say rightly which one is the next for their object; they count from 0 or 1.
std::size_t right_links(const std::vector<OracleRecord>& records) {
  std::array<std::size_t, 2> right{};
  for (const OracleRecord& record : records) {
    for (std::size_t base = 0; base < right.size(); ++base) {
      const std::size_t next = static_cast<std::size_t>(record.next) - base;
      right[base] +=
          record.has_next() && next < records.size() && records[next].id == record.id ? 1U : 0U;
    }
  }
  return std::ranges::max(right);
}

Detection detect_oracle_general(const Head& head) {
  const std::size_t count = records_of(head, 24);
  if (count < kRecordsMin) {
    return {};
  }
  const std::vector<OracleRecord> records = oracle_records(head.bytes, count);
  if (!looks_oracle_general(records)) {
    return {};
  }
  const std::size_t links = right_links(records);
  return {.format = TraceFormat::kOracleGeneral,
          .confidence = links >= kRecordsMin ? Confidence::kHigh : Confidence::kLow,
          .reason = std::to_string(count) + " records with times in order and sizes, " +
                    std::to_string(links) + " of which name the next request of their object"};
}

// --- numbers ------------------------------------------------------------------------------------

enum class Order : std::uint8_t { kBig, kLittle };

std::vector<std::uint64_t> numbers_of(const Head& head, std::size_t size, Order order) {
  std::vector<std::uint64_t> numbers;
  const std::size_t count = records_of(head, size);
  for (std::size_t i = 0; i < count; ++i) {
    numbers.push_back(order == Order::kBig ? load_big(head.bytes, size * i, size)
                                           : load_little(head.bytes, size * i, size));
  }
  return numbers;
}

struct Seen {
  std::size_t distinct = 0;
  std::size_t most = 0;    // most of the same number
  std::size_t linked = 0;  // came before, or an adjacent number did
};
Seen look_at(const std::vector<std::uint64_t>& numbers) {
  std::unordered_map<std::uint64_t, std::size_t> count;
  Seen seen;
  for (const std::uint64_t number : numbers) {
    const bool neighbour = count.contains(number - 1) || count.contains(number + 1);
    const std::size_t times = ++count[number];
    seen.linked += times > 1 || neighbour ? 1U : 0U;
    seen.most = std::max(seen.most, times);
  }
  seen.distinct = count.size();
  return seen;
}

// Returns how well numbers look like ids that were allocated in order, in a few kinds: they come
// again or are adjacent, none is half of all, and their first bytes hardly differ. 0: not at all;
// else the share of those that come again or have an adjacent one, less for each further kind.
double likeness_to_ids(const std::vector<std::uint64_t>& numbers) {
  if (numbers.size() < kRecordsMin) {
    return 0;
  }
  constexpr unsigned kShift = 24;
  std::unordered_set<std::uint64_t> kinds;
  for (const std::uint64_t number : numbers) {
    kinds.insert(number >> kShift);
  }
  constexpr std::size_t kKindsMax = 32;
  const Seen seen = look_at(numbers);
  const bool fits = kinds.size() <= std::min(kKindsMax, numbers.size() / 8) && seen.distinct >= 4 &&
                    2 * seen.most <= numbers.size() && 5 * seen.linked >= 2 * numbers.size();
  constexpr double kAKind = 0.01;
  return fits ? static_cast<double>(seen.linked) / static_cast<double>(numbers.size()) + kAKind -
                    kAKind * static_cast<double>(kinds.size()) / kKindsMax
              : 0;
}

// Hashes: the bytes of all places are spread evenly over the different ones, and some come again,
// which those of noise never do.
bool look_like_hashes(const std::vector<std::uint64_t>& numbers) {
  std::unordered_set<std::uint64_t> distinct(numbers.begin(), numbers.end());
  constexpr std::size_t kAgainMin = 20;  // one in so many
  if (numbers.size() < kHashesMin || distinct.size() < kHashesMin / 2 ||
      (numbers.size() - distinct.size()) * kAgainMin < numbers.size()) {
    return false;
  }
  for (unsigned place = 0; place < 64; place += 8) {
    std::array<std::size_t, 256> count{};
    for (const std::uint64_t number : distinct) {
      ++count[number >> place & 0xffU];
    }
    // Six standard deviations of a count, and some for the smallest.
    const double mean = static_cast<double>(distinct.size()) / 256;
    const double most = mean + 6 * std::sqrt(mean) + 4;
    if (static_cast<double>(std::ranges::max(count)) > most) {
      return false;
    }
  }
  return true;
}

struct IdFormat {
  TraceFormat format;
  std::size_t size;
  Order order;
};
constexpr std::array kIdFormats = {IdFormat{TraceFormat::kInt64, 8, Order::kBig},
                                   IdFormat{TraceFormat::kInt64Little, 8, Order::kLittle},
                                   IdFormat{TraceFormat::kInt32, 4, Order::kBig},
                                   IdFormat{TraceFormat::kInt32Little, 4, Order::kLittle}};

// True for the records of a table: at one place of each record nearly all numbers are the same one,
// as upper halves and padding are. The places of ids have no such period.
bool has_constant_place(const std::vector<std::uint64_t>& numbers) {
  constexpr std::size_t kPeriodMax = 16;
  constexpr std::size_t kPlacesMin = 8;
  constexpr std::size_t kNearly = 10;  // one in so many may differ
  for (std::size_t period = 2; period <= kPeriodMax; ++period) {
    for (std::size_t place = 0; place < period; ++place) {
      std::size_t all = 0;
      std::size_t same = 0;
      for (std::size_t i = place; i < numbers.size(); i += period) {
        ++all;
        same += numbers[i] == numbers[place] ? 1U : 0U;
      }
      if (all >= kPlacesMin && (all - same) * kNearly <= all) {
        return true;
      }
    }
  }
  return false;
}

// The better of the two orders of one size; the other one is named where it fits as well. Tables of
// other programs may look the same as ids.
Detection detect_ids(const Head& head, std::size_t size) {
  Detection best;
  Detection other;
  double likeness = 0;
  for (const IdFormat& candidate : kIdFormats) {
    const std::vector<std::uint64_t> numbers = candidate.size == size
                                                   ? numbers_of(head, size, candidate.order)
                                                   : std::vector<std::uint64_t>{};
    const bool wide =
        std::ranges::any_of(numbers, [](std::uint64_t number) { return number >> 32U != 0; });
    const double fits = wide || has_constant_place(numbers) ? 0 : likeness_to_ids(numbers);
    if (fits == 0) {
      continue;
    }
    Detection found{
        .format = candidate.format,
        .confidence = Confidence::kLow,
        .reason = std::to_string(numbers.size()) + " numbers, ids that come again or in order"};
    if (fits > likeness) {
      other = std::exchange(best, std::move(found));
      likeness = fits;
    } else {
      other = std::move(found);
    }
  }
  if (other.format != TraceFormat::kAuto) {
    best.reason += "; " + std::string(to_string(other.format)) + " fits too, and less well";
  }
  return best;
}

Detection hashes_detected(std::size_t count) {
  constexpr std::size_t kMany = 1024;
  return {.format = TraceFormat::kInt64,
          .confidence = count >= kMany ? Confidence::kHigh : Confidence::kLow,
          .reason = std::to_string(count) + " numbers, hashes that come again"};
}

// Two bytes in each record say it: eight records agree by chance once in 2^64.
Detection detect_vscsi(const Head& head) {
  const int version = vscsi_version(head.bytes);
  const std::size_t size = version == 1 ? kVscsi1.record : kVscsi2.record;
  if (version == 0 || records_of(head, size) < 8) {
    return {};
  }
  // Sectors and lengths that a disk has.
  const VscsiLayout& layout = version == 1 ? kVscsi1 : kVscsi2;
  std::size_t right = 0;
  for (std::size_t i = 0; i < 8; ++i) {
    const std::string_view record = head.bytes.substr(i * size, size);
    const std::uint64_t length = load_little(record, layout.length_at, 4);
    right +=
        length <= (1U << 28U) && load_little(record, layout.sector_at, 8) >> 48U == 0 ? 1U : 0U;
  }
  if (right < 8) {
    return {};
  }
  return {.format = TraceFormat::kVscsi,
          .confidence = Confidence::kHigh,
          .reason = "records of vSCSI version " + std::to_string(version)};
}

}  // namespace

Detection detect_records(const Head& head) {
  if (Detection vscsi = detect_vscsi(head); vscsi.format != TraceFormat::kAuto) {
    return vscsi;
  }
  if (Detection oracle = detect_oracle_general(head); oracle.format != TraceFormat::kAuto) {
    return oracle;
  }
  if (Detection wide = detect_ids(head, 8); wide.format != TraceFormat::kAuto) {
    return wide;
  }
  // For hashes both orders are the same: only equality counts.
  if (const auto wide = numbers_of(head, 8, Order::kBig); look_like_hashes(wide)) {
    return hashes_detected(wide.size());
  }
  return detect_ids(head, 4);
}

}  // namespace encore::sim
