// encore-filter info: what a filter is, how full it is, how often it errs.
#include <array>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <ostream>

#include "filter/cli/advice.h"
#include "filter/cli/command.h"
#include "filter/cli/filter_file.h"
#include "filter/theory.h"

namespace encore::filter {
namespace {

using Json = nlohmann::ordered_json;

// JSON has no infinity.
Json number(double value) { return std::isfinite(value) ? Json(value) : Json(); }

// The capacity is a plan unless it is what follows from bits and hashes.
Json advice_of(const AnyFilterInfo& info) {
  const AdviceSource source{
      .capacity_given = info.capacity != half_full_capacity(info.parameters.shape()),
      .keys_read = {}};
  Json advice = Json::array();
  for (std::string& text : advice_for(info, source)) {
    advice.push_back(std::move(text));
  }
  return advice;
}

Json report_of(const FilterFile& file) {
  const AnyFilterInfo info = file.filter.info();
  const FilterParameters& parameters = info.parameters;
  Json report = {{"kind", to_string(info.kind)},
                 {"form", to_string(file.form)},
                 {"layout", to_string(parameters.layout)},
                 {"hash", to_string(parameters.hash)}};
  report["seed"] =
      parameters.seed == Seed{} ? Json() : Json("fingerprint " + fingerprint(parameters.seed));
  report["bits"] = parameters.bits;
  report["hashes"] = parameters.hashes;
  report["capacity"] = info.capacity;
  report["set_bits"] = info.set_bits;
  report["fill"] = info.fill;
  // All ones say nothing of how many keys made them.
  report["keys"] = std::isfinite(info.keys_estimated) ? Json(info.keys) : Json();
  report["keys_estimated"] = number(info.keys_estimated);
  report["keys_error"] = number(info.keys_error);
  report["fpr_now"] = info.fpr_now;
  report["fpr_capacity"] = info.fpr_capacity;
  if (Json advice = advice_of(info); !advice.empty()) {
    report["advice"] = std::move(advice);
  }
  if (info.kind == FilterKind::kScalable || info.kind == FilterKind::kGrowable) {
    report["slices"] = info.slices;
  }
  if (info.kind == FilterKind::kCounting) {
    report["overflows"] = info.overflows;
  }
  return report;
}

std::string shown(const Json& value) {
  if (value.is_null()) {
    return "none";
  }
  if (!value.is_number_float()) {
    return value.is_string() ? value.get<std::string>() : value.dump();
  }
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.6g", value.get<double>());
  return text.data();
}

void print(const Json& report, std::ostream& out) {
  constexpr std::size_t kColumn = 16;
  for (const auto& [key, value] : report.items()) {
    const Json values = value.is_array() ? value : Json::array({value});
    for (const Json& each : values) {
      out << key << std::string(kColumn - key.size(), ' ') << shown(each) << "\n";
    }
  }
}

class InfoCommand final : public Command {
 public:
  std::string name() const override { return "info"; }
  std::string summary() const override {
    return "Print kind, fill, number of keys and false-positive rate of a filter";
  }
  std::string examples() const override {
    return "encore-filter info thousand.enc\n"
           "encore-filter info --json thousand.enc";
  }
  void declare(Arguments& a) override {
    a.file("FILTER", file_, "filter in any form except raw bits; - for standard input");
    a.flag("--json", json_, "print a JSON object");
  }
  Result<SearchOutcome> run(const Context& context) override {
    const auto loaded = load_filter(file_, context.in);
    if (!loaded) {
      return std::unexpected(loaded.error());
    }
    const Json report = report_of(*loaded);
    if (json_) {
      context.out << report.dump(2) << "\n";
    } else {
      print(report, context.out);
    }
    return SearchOutcome::kSomething;
  }

 private:
  std::string file_;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> make_info_command() { return std::make_unique<InfoCommand>(); }

}  // namespace encore::filter
