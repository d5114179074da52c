#include "sim/sweep/sweep_file.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <optional>
#include <utility>

#include "config/toml_document.h"
#include "sim/sweep/read_file.h"

namespace encore::sim {
namespace {

using config::TomlTable;
using config::TomlValue;

constexpr std::size_t kPointsMax = 10'000;

// Options of `replay` that a sweep has in its own hands, or whose results are no rows.
constexpr std::array<std::string_view, 12> kOwn = {"json",     "html",      "svg",    "png",
                                                   "interval", "mrc",       "bounds", "hold",
                                                   "threads",  "no-timing", "parts",  "help"};

// Options whose lists would make several runs of one.
constexpr std::array<std::string_view, 10> kListed = {
    "cache-size",   "eviction",    "admission",      "capacity", "fpr",
    "min-requests", "probability", "size-threshold", "window",   "write-cost"};

// Without an exponent, which sizes and counts do not have: 100000, 0.00001.
std::string text_of(double number) {
  std::array<char, 400> text{};
  const auto [end, error] =
      std::to_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed);
  return {text.data(), end};
}

// A number with what follows it: "10%", "64MiB", 7.
struct Measure {
  double number = 0;
  std::string unit;
  bool is_whole = false;
};

std::optional<Measure> measure_of(const TomlValue& value) {
  if (const auto* whole = std::get_if<std::int64_t>(&value.value)) {
    return Measure{.number = static_cast<double>(*whole), .unit = {}, .is_whole = true};
  }
  if (const auto* real = std::get_if<double>(&value.value)) {
    return std::isfinite(*real) ? std::optional(Measure{.number = *real, .unit = {}})
                                : std::nullopt;
  }
  const auto* text = std::get_if<std::string>(&value.value);
  if (text == nullptr) return std::nullopt;
  Measure read;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), read.number);
  if (error != std::errc{} || !std::isfinite(read.number)) return std::nullopt;
  read.unit.assign(end, text->data() + text->size());
  read.is_whole = std::string_view(text->data(), end).find_first_not_of("-0123456789") ==
                  std::string_view::npos;
  return read;
}

std::unexpected<Error> refuse(const std::string& place, const std::string& what) {
  return fail(place + ": " + what);
}

constexpr const char* kRangeAccepted =
    "accepted: { from, to }, { from, to, step } or { from, to, points }, with numbers of one unit "
    "from the smallest to the largest";

struct Range {
  Measure from;
  Measure to;
  std::optional<double> step;
  std::optional<std::size_t> points;
};

Result<Range> range_of(const TomlTable& table, const std::string& place) {
  Range range;
  bool has_from = false;
  bool has_to = false;
  std::string step_unit;
  for (const auto& [key, value] : table) {
    const auto measure = measure_of(value);
    if (!measure) return refuse(value.place, key + " is no number; " + kRangeAccepted);
    if (key == "from") {
      range.from = *measure;
      has_from = true;
    } else if (key == "to") {
      range.to = *measure;
      has_to = true;
    } else if (key == "step") {
      range.step = measure->number;
      step_unit = measure->unit;
    } else if (key == "points" && measure->is_whole && measure->unit.empty() &&
               measure->number >= 2 && measure->number <= static_cast<double>(kPointsMax)) {
      range.points = static_cast<std::size_t>(measure->number);
    } else if (key == "points") {
      return refuse(value.place, "points, accepted: 2 to " + std::to_string(kPointsMax));
    } else {
      return refuse(value.place, "unknown key " + key + "; " + kRangeAccepted);
    }
  }
  const bool fits = has_from && has_to && range.from.unit == range.to.unit &&
                    (step_unit.empty() || step_unit == range.from.unit) &&
                    range.from.number <= range.to.number && !(range.step && range.points) &&
                    (!range.step || *range.step > 0) && (!range.points || range.from.number > 0);
  if (!fits) return refuse(place, kRangeAccepted);
  return range;
}

Result<std::vector<std::string>> values_of(const Range& range, const std::string& place) {
  std::vector<std::string> values;
  const double from = range.from.number;
  const double to = range.to.number;
  const bool whole = range.from.is_whole && range.to.is_whole;
  const auto add = [&](double number) {
    const std::string text = text_of(number) + range.from.unit;
    if (values.empty() || values.back() != text) values.push_back(text);
  };
  if (range.points) {
    for (std::size_t i = 0; i < *range.points; ++i) {
      const double share = static_cast<double>(i) / static_cast<double>(*range.points - 1);
      const double number = i + 1 == *range.points ? to : from * std::pow(to / from, share);
      // Whole numbers stay whole; others keep four digits, which a person can read.
      const double digits = std::pow(10, 3 - std::floor(std::log10(number)));
      add(i == 0 || i + 1 == *range.points  ? number
          : whole && range.from.unit != "%" ? std::round(number)
                                            : std::round(number * digits) / digits);
    }
    return values;
  }
  const double step = range.step.value_or(1);
  const double count = std::floor((to - from) / step * (1 + 1e-12)) + 1;
  if (count > static_cast<double>(kPointsMax)) {
    return refuse(
        place, "a range of " + text_of(count) + " values, accepted: " + std::to_string(kPointsMax));
  }
  for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
    // 0.1 + 2 * 0.1 is not written 0.3: twelve digits are more than a step has.
    const double number = from + static_cast<double>(i) * step;
    add(std::round(number * 1e12) / 1e12);
  }
  return values;
}

Result<std::string> scalar_of(const TomlValue& value) {
  if (const auto* text = std::get_if<std::string>(&value.value)) return *text;
  if (const auto* whole = std::get_if<std::int64_t>(&value.value)) return std::to_string(*whole);
  if (const auto* real = std::get_if<double>(&value.value)) return text_of(*real);
  return refuse(value.place, "accepted: a text or a number");
}

Result<SweptOption> option_of(const std::string& name, const TomlValue& value, bool is_swept) {
  SweptOption option{.name = name, .values = {}, .place = value.place};
  if (std::ranges::find(kOwn, name) != kOwn.end()) {
    return refuse(value.place, name + " is no option of a sweep's runs");
  }
  if (name.empty() || name.find_first_not_of("abcdefghijklmnopqrstuvwxyz-") != std::string::npos) {
    return refuse(value.place, "\"" + name + "\" is no option, accepted: one of encore-sim replay");
  }
  if (const auto* flag = std::get_if<bool>(&value.value)) {
    option.is_flag = true;
    option.values = {*flag ? "true" : "false"};
    return option;
  }
  if (const auto* table = std::get_if<TomlTable>(&value.value); table != nullptr && is_swept) {
    const auto range = range_of(*table, value.place);
    auto values = range ? values_of(*range, value.place) : std::unexpected(range.error());
    if (!values) return std::unexpected(values.error());
    option.values = std::move(*values);
    return option;
  }
  const auto* list = std::get_if<std::vector<TomlValue>>(&value.value);
  if (list == nullptr) {
    auto text = scalar_of(value);
    if (!text) return std::unexpected(text.error());
    option.values = {std::move(*text)};
    return option;
  }
  if (!is_swept && std::ranges::find(kListed, name) != kListed.end()) {
    return refuse(value.place, name + " has several values, accepted in [sweep]");
  }
  for (const TomlValue& each : *list) {
    const auto* flag = std::get_if<bool>(&each.value);
    if ((flag != nullptr) != std::holds_alternative<bool>(list->front().value) ||
        (flag != nullptr && !is_swept)) {
      return refuse(each.place, name + ": true and false, accepted without others and in [sweep]");
    }
    option.is_flag = option.is_flag || flag != nullptr;
    auto text = flag != nullptr ? Result<std::string>(*flag ? "true" : "false") : scalar_of(each);
    if (!text) return std::unexpected(text.error());
    if (std::ranges::find(option.values, *text) != option.values.end()) {
      return refuse(each.place, name + " has " + *text + " twice");
    }
    option.values.push_back(std::move(*text));
    option.places.push_back(each.place);
  }
  if (option.values.empty()) return refuse(value.place, name + " has an empty list");
  if (!is_swept && !option.is_flag) {
    std::string joined;
    for (const std::string& each : option.values) joined += (joined.empty() ? "" : ",") + each;
    option.values = {joined};
    option.places.clear();
  }
  return option;
}

Result<void> read_options(const TomlValue& table, bool is_swept, Sweep& sweep) {
  const auto* members = std::get_if<TomlTable>(&table.value);
  if (members == nullptr) return refuse(table.place, "accepted: a table of options");
  for (const auto& [name, value] : *members) {
    if (std::ranges::find(sweep.options, name, &SweptOption::name) != sweep.options.end()) {
      return refuse(value.place, name + " is in [fixed] and in [sweep]");
    }
    auto option = option_of(name, value, is_swept);
    if (!option) return std::unexpected(option.error());
    sweep.options.push_back(std::move(*option));
  }
  return {};
}

Result<void> read_traces(const TomlValue& value, Sweep& sweep) {
  const auto* list = std::get_if<std::vector<TomlValue>>(&value.value);
  if (list == nullptr) return refuse(value.place, "traces, accepted: a list of files");
  for (const TomlValue& each : *list) {
    const auto* path = std::get_if<std::string>(&each.value);
    if (path == nullptr || path->empty() || *path == "-" || path->find('\n') != std::string::npos) {
      return refuse(each.place, "traces, accepted: a list of files");
    }
    sweep.traces.push_back({.name = *path, .path = *path});
  }
  return {};
}

}  // namespace

Result<Sweep> parse_sweep(std::string_view text, std::string_view name) {
  const auto document = config::read_toml_document(text, name);
  if (!document) return std::unexpected(document.error());
  Sweep sweep;
  for (const auto& [key, value] : *document) {
    auto read =
        key == "traces"  ? read_traces(value, sweep)
        : key == "fixed" ? read_options(value, false, sweep)
        : key == "sweep"
            ? read_options(value, true, sweep)
            : refuse(value.place, "unknown key " + key + "; accepted: traces, [fixed], [sweep]");
    if (!read) return std::unexpected(read.error());
  }
  if (sweep.traces.empty()) {
    return fail(std::string(name) + ": without traces; add: traces = [\"trace.csv.zst\"]");
  }
  auto combinations = static_cast<double>(sweep.traces.size());
  for (const SweptOption& option : sweep.options) {
    combinations *= static_cast<double>(option.values.size());
  }
  if (combinations > static_cast<double>(kSweepRunsMax)) {
    return fail(std::string(name) + ": " + text_of(combinations) + " runs, accepted: at most " +
                std::to_string(kSweepRunsMax));
  }
  return sweep;
}

Result<Sweep> read_sweep(const std::string& path) {
  const auto text = read_file(path);
  if (!text) return std::unexpected(text.error());
  const std::size_t slash = path.rfind('/');
  auto sweep = parse_sweep(*text, slash == std::string::npos ? path : path.substr(slash + 1));
  if (sweep && slash != std::string::npos) {
    for (SweptTrace& trace : sweep->traces) {
      if (!trace.path.starts_with('/')) trace.path.insert(0, path.substr(0, slash + 1));
    }
  }
  return sweep;
}

}  // namespace encore::sim
