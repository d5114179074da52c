// MetricsWriter: text in the exposition format of Prometheus; every name begins with encore_.
// Thread-compatible.
#pragma once

#include <fmt/core.h>

#include <iterator>
#include <string>
#include <string_view>

namespace encore::server {

class MetricsWriter {
 public:
  // What the samples that follow are of. Type: "counter", "gauge", "histogram".
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

}  // namespace encore::server
