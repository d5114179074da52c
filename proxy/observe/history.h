// History: the data of the live page's charts, for each second of the last hour and each minute of
// the last day. Its memory is bounded: kSeconds + kMinutes rows of a float a column, some
// 1.4 MiB, of which the pages come with the rows. Pure: it receives the time. Confined to one
// thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "proxy/observe/snapshot.h"

namespace encore::server {

// Names of the columns. They are differences of counters over the row's time ("requests:" and the
// outcome, and others), gauges as they were at its end, and quantiles of the requests that ended in
// it, in seconds, if there were any.
std::vector<std::string> history_columns();

class History {
 public:
  static constexpr std::size_t kSeconds = 3600;
  static constexpr std::size_t kMinutes = 24 * 60;

  History();

  // Adds a row that ends now, and one of a minute where that is over. Times are milliseconds since
  // 1970 and grow; a call that comes late makes a longer row. The first call makes none: there is
  // nothing to compare with.
  void note(const Snapshot& snapshot, std::int64_t now_ms);

  // {"seconds": ROWS, "minutes": ROWS}, with ROWS as {"end": [ms...], "span": [ms...], "values":
  // {column: [...]}} of the rows that ended after `since_ms`, the oldest first. Columns that are 0
  // in all of these are left out; null is a quantile of nothing.
  std::string json(std::int64_t since_ms) const;

  std::size_t memory_bytes() const;

 private:
  // All that rows are made from, at one moment.
  struct Reading {
    std::vector<double> values;
    std::array<LatencySnapshot, 2> latency;  // for hits and misses
    std::int64_t time_ms = 0;
  };
  // A ring of rows.
  struct Rows {
    explicit Rows(std::size_t capacity);
    void add(const Reading& from, const Reading& to);
    void write(std::string& out, std::int64_t since_ms) const;
    std::size_t index(std::size_t row) const { return (first + row) % ends.size(); }

    std::vector<std::int64_t> ends;
    std::vector<std::int64_t> spans;
    // Row by row. Not zeroed: its pages come into memory with the rows.
    std::unique_ptr<float[]> values;
    std::size_t first = 0;
    std::size_t count = 0;
  };
  static Reading read(const Snapshot& snapshot, std::int64_t now_ms);

  Rows seconds_{kSeconds};
  Rows minutes_{kMinutes};
  Reading second_began_;
  Reading minute_began_;
};

}  // namespace encore::server
