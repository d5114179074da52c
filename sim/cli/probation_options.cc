#include "sim/cli/probation_options.h"

#include <string_view>

#include "base/cli/lists.h"
#include "config/config.h"

namespace encore::sim {
namespace {

constexpr std::string_view kSamples = "samples";
// Something has to be left for what waits.
constexpr double kCopiesMax = 0.99;

}  // namespace

void ProbationArguments::declare(Arguments& a) {
  a.text("--window", windows_text_,
         "probation: keys per generation, in objects that the full disk holds (0.5), or samples, "
         "which choose it; a list");
  a.text("--write-cost", costs_text_,
         "probation with samples: cost of a byte written, in bytes fetched, 0 to 100; a list");
  a.flag("--fill", fill_,
         "probation: write every object that leaves memory until the disk was full once (the "
         "default)");
  a.flag("--no-fill", no_fill_, "probation: write only objects requested again, from the start");
  a.real("--copies", copies_,
         "probation: share of the memory for copies of objects hit twice on disk",
         {.min = 0, .max = kCopiesMax});
  a.text("--wait-max", wait_max_text_, "probation: longest wait in memory, as 1h (0s: no limit)");
}

Result<void> ProbationArguments::read(const Arguments& arguments) {
  if (fill_ && no_fill_) {
    return fail("--fill and --no-fill, accepted: one of them");
  }
  const auto words = parse_words("--window", windows_text_);
  const auto costs = parse_reals("--write-cost", costs_text_,
                                 {.min = 0, .max = cache::ProbationSamples::kWriteCostMax});
  const auto wait_max = parse_time_span("--wait-max", wait_max_text_);
  if (!words || !costs || !wait_max) {
    return std::unexpected(!words ? words.error() : !costs ? costs.error() : wait_max.error());
  }
  costs_ = *costs;
  wait_max_ = *wait_max;
  windows_.clear();
  bool by_samples = false;
  for (const std::string& word : *words) {
    if (word == kSamples) {
      by_samples = true;
      windows_.emplace_back();
      continue;
    }
    const auto window = parse_real(
        "--window", word, {.min = 0, .max = cache::ProbationRule::kWindowMax, .without_min = true});
    if (!window) {
      return fail("--window \"" + word + "\", accepted: above 0 and up to 2, or samples");
    }
    windows_.emplace_back(*window);
  }
  if (arguments.given("--write-cost") && !by_samples) {
    return fail("--write-cost has no effect without --window samples");
  }
  return {};
}

Result<std::vector<PlannedKernel>> ProbationArguments::expand(
    const std::vector<PlannedKernel>& planned, const DiskArguments& disk,
    const Arguments& arguments) const {
  std::vector<PlannedKernel> all;
  bool any = false;
  for (const PlannedKernel& kernel : planned) {
    const bool is_kernels = kernel.options.admission.policy == cache::AdmissionPolicy::kProbation;
    if (!kernel.probation && !is_kernels) {
      all.push_back(kernel);
      continue;
    }
    any = true;
    const std::vector<double> costs = is_kernels && !arguments.given("--write-cost")
                                          ? std::vector{config::Admission{}.write_cost}
                                          : costs_;
    for (ReplayProbation& probation : rules_for(kernel, disk, costs)) {
      all.push_back(kernel);
      (is_kernels ? all.back().tuning : all.back().probation) = probation;
      all.back().options.admission.fill = !no_fill_;
      all.back().options.admission.wait_max = wait_max_;
      if (is_kernels && !arguments.given("--disk-reinsert")) {
        all.back().options.disk_rules.reinsert_percent = config::Cache{}.disk_reinsert;
        all.back().tuning->settings.move_share = config::Cache{}.disk_reinsert / 100.0;
      }
    }
  }
  if (any) {
    return all;
  }
  for (const char* option :
       {"--window", "--write-cost", "--fill", "--no-fill", "--copies", "--wait-max"}) {
    if (arguments.given(option)) {
      return fail(std::string(option) + " needs --admission probation");
    }
  }
  return all;
}

std::vector<ReplayProbation> ProbationArguments::rules_for(const PlannedKernel& planned,
                                                           const DiskArguments& disk,
                                                           const std::vector<double>& costs) const {
  ReplayProbation probation;
  probation.settings = {.disk_bytes = disk.bytes(),
                        .segment_bytes = disk.wanted_segment_bytes(),
                        .move_share = disk.reinsert(),
                        .keys = planned.options.admission.filter,
                        .fill = !no_fill_,
                        .wait_max = wait_max_};
  probation.copies_share = copies_;
  std::vector<ReplayProbation> all;
  for (const std::optional<double>& window : windows_) {
    if (window) {
      probation.settings.rule.window = *window;
      probation.write_cost.reset();
      all.push_back(probation);
      continue;
    }
    for (const double cost : costs) {
      probation.settings.rule = {};
      probation.write_cost = cost;
      all.push_back(probation);
    }
  }
  return all;
}

void ProbationArguments::append_parameters(Row& row) const {
  row.insert(row.end(), {Field{"window", windows_text_},
                         {"write_cost", costs_text_},
                         {"fill", !no_fill_},
                         {"copies", copies_},
                         {"wait_max", wait_max_text_}});
}

}  // namespace encore::sim
