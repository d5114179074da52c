#include "proxy/observe/history.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <span>

namespace encore::server {
namespace {

constexpr std::int64_t kMinuteMs = 60'000;

enum class Kind : std::uint8_t { kCounter, kGauge };

struct Column {
  std::string_view name;
  Kind kind;
  double (*value)(const Snapshot&);
};

double generation(const Snapshot& snapshot, std::size_t index,
                  double (*value)(const filter::GenerationStatistics&)) {
  const auto& generations = snapshot.admission.generations;
  return index < generations.size() ? value(generations[index]) : 0;
}

double insertions(const filter::GenerationStatistics& generation) {
  return static_cast<double>(generation.insertions);
}

double fill(const filter::GenerationStatistics& generation) { return generation.fill; }

#define ENCORE_COLUMN(name, kind, expression)                                           \
  Column {                                                                              \
    name, Kind::kind, [](const Snapshot& s) { return static_cast<double>(expression); } \
  }

constexpr std::array kColumns = {
    ENCORE_COLUMN("bytes_to_clients", kCounter, s.bytes_to_clients),
    ENCORE_COLUMN("bytes_from_origins", kCounter, s.bytes_from_origins),
    ENCORE_COLUMN("body_bytes_hit", kCounter, s.body_bytes_hit),
    ENCORE_COLUMN("body_bytes_all", kCounter, s.body_bytes_all),
    ENCORE_COLUMN("responses_5xx", kCounter, s.responses_5xx),
    ENCORE_COLUMN("connections_accepted", kCounter, s.connections_accepted),
    ENCORE_COLUMN("connections_refused", kCounter, s.connections_refused),
    ENCORE_COLUMN("origin_requests", kCounter, s.origin_requests),
    ENCORE_COLUMN("stored", kCounter, s.stored),
    ENCORE_COLUMN("stored_bytes", kCounter, s.stored_bytes),
    ENCORE_COLUMN("reused", kCounter, s.kernel.counters.reused),
    ENCORE_COLUMN("kept_out", kCounter, s.kept_out),
    ENCORE_COLUMN("kept_out_bytes", kCounter, s.kept_out_bytes),
    ENCORE_COLUMN("evictions", kCounter, s.kernel.counters.evictions),
    ENCORE_COLUMN("evicted_bytes", kCounter, s.kernel.counters.evicted_bytes),
    ENCORE_COLUMN("insertions", kCounter, s.admission.insertions),
    ENCORE_COLUMN("rotations", kCounter, s.admission.rotations),
    ENCORE_COLUMN("connections_open", kGauge, s.connections_open),
    ENCORE_COLUMN("origin_connections", kGauge, s.origin_connections),
    ENCORE_COLUMN("transfers_open", kGauge, s.transfers_open),
    ENCORE_COLUMN("transfer_memory_bytes", kGauge, s.transfer_memory_bytes),
    ENCORE_COLUMN("cache_objects", kGauge, s.kernel.objects),
    ENCORE_COLUMN("cache_used_bytes", kGauge, s.kernel.used_bytes),
    ENCORE_COLUMN("insertions_current", kGauge, generation(s, 0, insertions)),
    ENCORE_COLUMN("insertions_older", kGauge, generation(s, 1, insertions)),
    ENCORE_COLUMN("fill_current", kGauge, generation(s, 0, fill)),
    ENCORE_COLUMN("fill_older", kGauge, generation(s, 1, fill)),
    ENCORE_COLUMN("fpr_theory", kGauge, s.admission.fpr_theory),
    ENCORE_COLUMN("fpr_bits", kGauge, s.admission.fpr_bits),
    ENCORE_COLUMN("fpr_measured", kGauge, s.admission.measured.rate()),
    ENCORE_COLUMN("fpr_measured_low", kGauge, s.admission.measured.interval().low),
    ENCORE_COLUMN("fpr_measured_high", kGauge, s.admission.measured.interval().high),
};
#undef ENCORE_COLUMN

constexpr std::array<std::string_view, 4> kQuantiles = {"hit_p50", "hit_p99", "miss_p50",
                                                        "miss_p99"};
constexpr std::size_t kReadings = kColumns.size() + kOutcomeCount;
constexpr std::size_t kWidth = kReadings + kQuantiles.size();

// Quantile of the requests that ended between the two. NaN: there were none, or it is beyond all
// buckets.
double quantile_between(const LatencySnapshot& from, const LatencySnapshot& to, double q) {
  LatencySnapshot between;
  for (std::size_t i = 0; i < kLatencyBuckets; ++i) {
    between.buckets[i] = to.buckets[i] - std::min(from.buckets[i], to.buckets[i]);
    between.count += between.buckets[i];
  }
  if (between.count == 0) return std::numeric_limits<double>::quiet_NaN();
  return between.quantile(q);
}

void write_number(std::string& out, float value) {
  if (!std::isfinite(value)) {
    out += "null";
  } else if (value == 0) {
    out += '0';
  } else {
    fmt::format_to(std::back_inserter(out), "{:.7g}", value);
  }
}

}  // namespace

std::vector<std::string> history_columns() {
  std::vector<std::string> names;
  for (const Column& column : kColumns) names.emplace_back(column.name);
  for (const std::string_view outcome : kOutcomeNames) {
    names.push_back("requests:" + std::string(outcome));
  }
  for (const std::string_view quantile : kQuantiles) names.emplace_back(quantile);
  return names;
}

History::History() = default;

History::Rows::Rows(std::size_t capacity)
    : ends(capacity),
      spans(capacity),
      values(std::make_unique_for_overwrite<float[]>(capacity * kWidth)) {}

History::Reading History::read(const Snapshot& snapshot, std::int64_t now_ms) {
  Reading reading;
  reading.time_ms = now_ms;
  reading.values.reserve(kReadings);
  for (const Column& column : kColumns) reading.values.push_back(column.value(snapshot));
  for (const std::uint64_t requests : snapshot.requests) {
    reading.values.push_back(static_cast<double>(requests));
  }
  reading.latency = {snapshot.latency[0], snapshot.latency[1]};
  return reading;
}

void History::Rows::add(const Reading& from, const Reading& to) {
  const std::size_t at = index(count);
  if (count == ends.size()) {
    first = (first + 1) % ends.size();
  } else {
    ++count;
  }
  ends[at] = to.time_ms;
  spans[at] = to.time_ms - from.time_ms;
  float* const row = &values[at * kWidth];
  for (std::size_t i = 0; i < kReadings; ++i) {
    const bool gauge = i < kColumns.size() && kColumns[i].kind == Kind::kGauge;
    row[i] =
        static_cast<float>(gauge ? to.values[i] : std::max(0.0, to.values[i] - from.values[i]));
  }
  constexpr std::array kProbabilities = {0.5, 0.99};
  for (std::size_t i = 0; i < kQuantiles.size(); ++i) {
    row[kReadings + i] = static_cast<float>(
        quantile_between(from.latency[i / 2], to.latency[i / 2], kProbabilities[i % 2]));
  }
}

void History::note(const Snapshot& snapshot, std::int64_t now_ms) {
  Reading now = read(snapshot, now_ms);
  if (second_began_.values.empty()) {
    minute_began_ = now;
    second_began_ = std::move(now);
    return;
  }
  if (now_ms <= second_began_.time_ms) return;
  seconds_.add(second_began_, now);
  if (now_ms / kMinuteMs != minute_began_.time_ms / kMinuteMs) {
    minutes_.add(minute_began_, now);
    minute_began_ = now;
  }
  second_began_ = std::move(now);
}

void History::Rows::write(std::string& out, std::int64_t since_ms) const {
  std::size_t from = 0;
  while (from < count && ends[index(from)] <= since_ms) ++from;
  const auto list = [&](auto&& write_row) {
    out += '[';
    for (std::size_t row = from; row < count; ++row) {
      if (row != from) out += ',';
      write_row(index(row));
    }
    out += ']';
  };
  const auto number = [&out](std::int64_t value) {
    fmt::format_to(std::back_inserter(out), "{}", value);
  };
  out += "{\"end\":";
  list([&](std::size_t at) { number(ends[at]); });
  out += ",\"span\":";
  list([&](std::size_t at) { number(spans[at]); });
  out += ",\"values\":{";
  const std::vector<std::string> names = history_columns();
  bool first_column = true;
  for (std::size_t column = 0; column < kWidth; ++column) {
    bool is_zero = true;
    for (std::size_t row = from; row < count && is_zero; ++row) {
      is_zero = values[index(row) * kWidth + column] == 0;
    }
    if (is_zero) continue;
    fmt::format_to(std::back_inserter(out), "{}\"{}\":", first_column ? "" : ",", names[column]);
    first_column = false;
    list([&](std::size_t at) { write_number(out, values[at * kWidth + column]); });
  }
  out += "}}";
}

std::string History::json(std::int64_t since_ms) const {
  std::string out = "{\"seconds\":";
  seconds_.write(out, since_ms);
  out += ",\"minutes\":";
  minutes_.write(out, since_ms);
  out += '}';
  return out;
}

std::size_t History::memory_bytes() const {
  std::size_t sum = 0;
  for (const Rows* rows : {&seconds_, &minutes_}) {
    sum += rows->ends.size() * (kWidth * sizeof(float) + 2 * sizeof(std::int64_t));
  }
  return sum;
}

}  // namespace encore::server
