// MetricsWriter: text in the exposition format of Prometheus; every name begins with encore_.
// Thread-compatible.
#pragma once

#include <fmt/format.h>

#include <iterator>
#include <string>
#include <string_view>
#include <utility>

namespace encore::server {

// A text as the value of a label may be: without quotation marks, backslashes and newlines, and
// UTF-8 (other bytes become \xNN), for one that is not has the whole page refused.
std::string label_value(std::string_view text);

class MetricsWriter {
 public:
  // Starts the family of the samples that follow. Type: "counter", "gauge", "histogram".
  void family(std::string_view name, std::string_view type, std::string_view help) {
    fmt::format_to(std::back_inserter(out_), "# HELP encore_{} {}\n# TYPE encore_{} {}\n", name,
                   help, name, type);
  }
  // Labels as they are written, `disk="0"`, or none.
  template <typename T>
  void sample(std::string_view name, std::string_view labels, T value) {
    fmt::format_to(std::back_inserter(out_), "encore_{}{}{}{} {}\n", name,
                   labels.empty() ? "" : "{", labels, labels.empty() ? "" : "}", value);
  }
  // A family of one sample.
  template <typename T>
  void one(std::string_view name, std::string_view type, std::string_view help, T value) {
    family(name, type, help);
    sample(name, "", value);
  }
  std::string take() { return std::move(out_); }

 private:
  std::string out_;
};

// The samples of one histogram: buckets from the smallest to the one without bound, its sum last.
class HistogramWriter {
 public:
  // All are borrowed.
  HistogramWriter(MetricsWriter& out, std::string_view name, std::string_view labels)
      : out_(out), name_(name), labels_(labels) {}

  // How many there were up to that bound, and above the last one.
  void bucket(double bound, std::uint64_t count);
  template <typename T>
  void finish(T sum) {
    out_.sample(fmt::format("{}_sum", name_), labels_, sum);
    out_.sample(fmt::format("{}_count", name_), labels_, seen_);
  }

 private:
  MetricsWriter& out_;
  std::string_view name_;
  std::string_view labels_;
  std::uint64_t seen_ = 0;
};

}  // namespace encore::server
