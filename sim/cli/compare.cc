// encore-sim compare: two sets of results, setting by setting.
#include <algorithm>
#include <array>
#include <cstdio>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/cli/commands.h"
#include "sim/sweep/comparison.h"
#include "sim/sweep/task_results.h"

namespace encore::sim {
namespace {

class CompareCommand final : public Command {
 public:
  std::string name() const override { return "compare"; }
  std::string summary() const override {
    return "Compare two sets of results, with the interval of each difference, and of their mean: "
           "by Student's t over traces, or by the parts of a single trace";
  }
  std::string example() const override {
    return "encore-sim compare policies.results/results.jsonl:eviction=lru "
           "policies.results/results.jsonl:eviction=gdsf --worse-max 1";
  }
  void declare(Arguments& a) override {
    a.word("A", first_,
           "results of sweep, or a report of replay in JSON; FILE:OPTION=VALUE,... chooses runs, "
           "a value with commas in quotation marks");
    a.word("B", second_, "the results that are compared with it");
    a.text("--worse-max", worse_max_,
           "exit with 1 if B surely has fewer hits somewhere, by more than so many percentage "
           "points (default: any difference is fine)");
  }

  Result<Outcome> run(const Context& /*context*/) override {
    const auto worst = worse_max_.empty()
                           ? Result<double>(0)
                           : parse_real("--worse-max", worse_max_, {.min = 0, .max = 100});
    if (!worst) return std::unexpected(worst.error());
    const auto first = rows_of(first_);
    const auto second = first ? rows_of(second_) : std::unexpected(first.error());
    if (!second) return std::unexpected(second.error());
    auto comparison = compare(*first, *second);
    if (!comparison) return std::unexpected(comparison.error());
    Outcome outcome;
    outcome.report.parameters = {{"a", first_}, {"b", second_}, {"worse_max", worse_max_}};
    fill(outcome.report, *comparison);
    std::size_t worse = 0;
    for (const Compared& one : comparison->settings) {
      worse += one.hits.high < -*worst / 100 ? 1U : 0U;
    }
    if (!worse_max_.empty() && comparison->only_first != 0) {
      outcome.verdict = Verdict::kCheckFailed;
      outcome.report.notes.push_back("B has not all settings of A: no gate for what is missing.");
    }
    if (!worse_max_.empty() && worse != 0) {
      outcome.verdict = Verdict::kCheckFailed;
      outcome.report.notes.push_back(std::to_string(worse) + " settings are worse by more than " +
                                     worse_max_ + " percentage points.");
    }
    return outcome;
  }

 private:
  static Result<std::vector<Row>> rows_of(const std::string& text) {
    const auto selection = parse_selection(text);
    if (!selection) return std::unexpected(selection.error());
    auto rows = read_results(selection->path);
    if (!rows) return std::unexpected(rows.error());
    return selected(*selection, std::move(*rows));
  }

  // Takes the options that all settings have, and returns them.
  static std::string take_common(std::vector<Compared>& settings) {
    std::string common;
    std::string_view left = settings.front().setting;
    const std::string first(left);
    for (left = first; settings.size() > 1 && !left.empty();) {
      const std::string option(left.substr(0, left.find(' ')));
      left.remove_prefix(std::min(left.size(), option.size() + 1));
      const bool all = std::ranges::all_of(settings, [&](const Compared& one) {
        return (" " + one.setting + " ").contains(" " + option + " ");
      });
      if (!all) continue;
      common += (common.empty() ? "" : " ") + option;
      for (Compared& one : settings) {
        std::string padded = " " + one.setting + " ";
        padded.erase(padded.find(" " + option + " "), option.size() + 1);
        one.setting = padded.size() < 2 ? "" : padded.substr(1, padded.size() - 2);
      }
    }
    return common;
  }

  static std::string verdict_of(const Estimate& hits) {
    if (hits.is_exact()) return hits.value > 0 ? "more" : hits.value < 0 ? "fewer" : "the same";
    return hits.low > 0 ? "more" : hits.high < 0 ? "fewer" : "not shown";
  }

  static std::string mean_note(const Comparison& comparison) {
    const MeanDifference& mean = comparison.mean;
    std::array<char, 128> text{};
    std::snprintf(text.data(), text.size(), "Mean of B - A: %.3f %%", 100 * mean.hits.value);
    std::string note = text.data();
    if (mean.hits.is_exact()) return note + ", for this trace alone.";
    std::snprintf(text.data(), text.size(), ", 95 %% from %.3f to %.3f %%, ", 100 * mean.hits.low,
                  100 * mean.hits.high);
    note += text.data();
    if (mean.source == IntervalSource::kTraces) {
      return note + "by the means of " + std::to_string(mean.traces) +
             " traces: settings of one are not independent.";
    }
    return note + "by the " + std::string(to_string(mean.source)) +
           " of the one trace, which says nothing of others.";
  }

  static void fill(Report& report, Comparison& comparison) {
    const std::string common = take_common(comparison.settings);
    Table table{.key = "rows",
                .title = {},
                .columns = {{"trace", "trace"},
                            {"setting", "setting"},
                            {"first", "A", Style::kPercent},
                            {"second", "B", Style::kPercent},
                            {"difference", "B - A", Style::kPercent},
                            {"difference_low", "95 % from", Style::kPercent},
                            {"difference_high", "to", Style::kPercent},
                            {"byte_difference", "of bytes", Style::kPercent},
                            {"written_difference", "written", Style::kPercent},
                            {"by", "by"},
                            {"certainty", "sure", Style::kPercent},
                            {"verdict", "hits of B"}},
                .rows = {}};
    std::size_t more = 0;
    std::size_t fewer = 0;
    std::size_t unwritten = 0;
    for (const Compared& one : comparison.settings) {
      const std::string verdict = verdict_of(one.hits);
      const auto& written = one.written;
      unwritten += written ? 0U : 1U;
      more += verdict == "more" ? 1U : 0U;
      fewer += verdict == "fewer" ? 1U : 0U;
      table.rows.push_back({{"trace", one.trace},
                            {"setting", one.setting},
                            {"first", one.first},
                            {"second", one.second},
                            {"difference", one.hits.value},
                            {"difference_low", one.hits.low},
                            {"difference_high", one.hits.high},
                            {"byte_difference", one.byte_hits.value},
                            {"byte_difference_low", one.byte_hits.low},
                            {"byte_difference_high", one.byte_hits.high},
                            {"written_difference", written ? written->value : Value{}},
                            {"written_difference_low", written ? written->low : Value{}},
                            {"written_difference_high", written ? written->high : Value{}},
                            {"by", std::string(to_string(one.source))},
                            {"pairs", std::uint64_t{one.pairs}},
                            {"certainty", one.hits.certainty},
                            {"verdict", verdict}});
    }
    report.tables.push_back(std::move(table));
    const Estimate& mean = comparison.mean.hits;
    report.tables.push_back({.key = "mean",
                             .title = {},
                             .columns = {},
                             .rows = {{{"difference", mean.value},
                                       {"difference_low", mean.low},
                                       {"difference_high", mean.high},
                                       {"certainty", mean.certainty},
                                       {"by", std::string(to_string(comparison.mean.source))},
                                       {"traces", std::uint64_t{comparison.mean.traces}}}}});
    if (!common.empty()) report.notes.push_back("All settings: " + common + ".");
    report.notes.push_back(std::to_string(comparison.settings.size()) +
                           " settings: B has more in " + std::to_string(more) + ", fewer in " +
                           std::to_string(fewer) + ".");
    if (comparison.settings.size() > 1) {
      report.notes.push_back(mean_note(comparison));
    }
    if (unwritten != 0) {
      report.notes.push_back("written: A wrote nothing in " + std::to_string(unwritten) +
                             " settings, so B has no share of it.");
    }
    if (comparison.only_first + comparison.only_second != 0) {
      report.notes.push_back("Without a counterpart: " + std::to_string(comparison.only_first) +
                             " settings of A, " + std::to_string(comparison.only_second) +
                             " of B.");
    }
  }

  std::string first_;
  std::string second_;
  std::string worse_max_;
};

}  // namespace

std::unique_ptr<Command> make_compare_command() { return std::make_unique<CompareCommand>(); }

}  // namespace encore::sim
