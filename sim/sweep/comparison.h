// Comparison of two sets of results: setting by setting, with the interval of each difference.
// Values.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "sim/report/report.h"
#include "sim/sweep/statistics.h"

namespace encore::sim {

// Results chosen from a file: "results.jsonl:eviction=lru,admission=always" are the lines with
// these options, which are no part of the settings that are then compared. A value with a comma
// stands in quotation marks: eviction="s3-fifo(small=0.2,ghost=2)"; two of them in it are one.
struct Selection {
  std::string path;
  std::vector<std::pair<std::string, std::string>> options;
};
Result<Selection> parse_selection(const std::string& text);
// Errors: no line has these options; the message lists values of the option that are there.
Result<std::vector<Row>> selected(const Selection& selection, std::vector<Row> rows);

// The source of an interval.
enum class IntervalSource : std::uint8_t {
  kExact,   // one run each over the whole trace, without parts: no interval
  kParts,   // parts of the trace, one after the other (replay --parts)
  kSeeds,   // runs that differ in the seed alone, if that is wider
  kSample,  // two samples
  kTraces   // means of several traces
};
std::string_view to_string(IntervalSource source);

struct Compared {
  std::string trace;
  std::string setting;  // "cache-size=1% fpr=0.01"
  double first = 0;     // object hit ratios
  double second = 0;
  Estimate hits;       // second - first
  Estimate byte_hits;  // likewise
  // Share of the bytes written that the second has more; nothing where the first wrote none.
  std::optional<Estimate> written;
  IntervalSource source = IntervalSource::kExact;
  std::size_t pairs = 1;
  std::vector<double> moved = {};              // how far each part of the trace moves `hits`
  std::map<std::string, double> by_seed = {};  // the difference in hits of each seed
};

// The mean difference in hits. Settings of one trace are not independent, so each trace gives one
// observation: the mean over its settings. Several traces: Student's t over these. One trace: the
// interval of its settings' mean, by the parts that they share. Why: docs/decisions/0616.
struct MeanDifference {
  Estimate hits;
  std::size_t traces = 1;
  IntervalSource source = IntervalSource::kExact;
};

struct Comparison {
  std::vector<Compared> settings;
  std::size_t only_first = 0;  // settings that the other has not
  std::size_t only_second = 0;
  MeanDifference mean;
};

// Errors: no setting is in both.
Result<Comparison> compare(const std::vector<Row>& first, const std::vector<Row>& second);

// The setting of a line without its seed, and of what `without` names: "cache-size=1% fpr=0.01".
std::string setting_of(const Row& line,
                       const std::vector<std::pair<std::string, std::string>>& without = {});

// A number of the line's result; 0 where there is none.
double number_of(const Row& line, std::string_view key);
// Bytes that a device is given: what the disk takes where there is one, else what the memory does.
double written_of(const Row& line);
std::string text_of(const Row& line, std::string_view key);

}  // namespace encore::sim
