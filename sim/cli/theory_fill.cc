// encore-sim theory fill: what theory says of a filter that holds so many keys.
#include <algorithm>

#include "filter/theory.h"
#include "sim/cli/commands.h"
#include "sim/cli/hash_counts.h"

namespace encore::sim {
namespace {

class TheoryFillCommand final : public Command {
 public:
  std::string name() const override { return "theory fill"; }
  std::string summary() const override {
    return "Print the false-positive rate of a full filter, and while it fills";
  }
  std::string example() const override {
    return "encore-sim theory fill --keys 80000 --bits 800000 --hashes 1..9";
  }
  void declare(Arguments& a) override {
    a.number("--keys", keys_, "number of distinct keys", {.min = 1});
    a.number("--bits", bits_, "bits of the filter", {.min = 1, .max = filter::kBitsMax});
    a.text("--hashes", hashes_, "numbers of hashes: 7, 1..8 or 1,2,4");
    a.text("--layout", layout_, "classic, partitioned, blocked, split");
  }

  Result<Outcome> run(const Context& context) override {
    const auto layout = filter::parse_layout(layout_);
    if (!layout) {
      return std::unexpected(layout.error());
    }
    const auto counts = hash_counts(context, *layout, hashes_);
    if (!counts) {
      return std::unexpected(counts.error());
    }
    Outcome outcome;
    outcome.report.parameters = {
        {"keys", keys_}, {"bits", bits_}, {"hashes", hashes_}, {"layout", layout_}};
    Table table{.key = "rows",
                .title = "",
                .columns = {{"hashes", "k", Style::kCount},
                            {"fpr_exponential", "exponential", Style::kRate},
                            {"fpr_full", "full", Style::kRate},
                            {"fpr_exact", "exact", Style::kRate},
                            {"fpr_incremental", "incremental", Style::kRate},
                            {"fpr_incremental_exact", "exact", Style::kRate}},
                .rows = {}};
    Chart chart{.title = "False-positive rate by number of hashes",
                .x_label = "hashes",
                .y_label = "false-positive rate",
                .series = {{.name = "full", .points = {}}, {.name = "incremental", .points = {}}}};
    for (const std::uint64_t count : *counts) {
      if (context.monitor.stopped()) {
        break;
      }
      const auto checked = filter::checked({.layout = *layout,
                                            .bits = bits_,
                                            .hashes = static_cast<std::uint32_t>(count),
                                            .capacity = 1,
                                            .seed = {}});
      if (!checked) {
        return std::unexpected(checked.error());
      }
      const filter::FilterShape shape = checked->shape();
      const auto exact = filter::fpr_exact(shape, keys_);
      const auto incremental = filter::fpr_incremental_exact(shape, keys_);
      const auto keys = static_cast<double>(keys_);
      const bool classic = *layout == filter::Layout::kClassic;
      const double full = filter::fpr(shape, keys);
      const double filling = filter::fpr_incremental(shape, keys);
      const auto k = static_cast<double>(count);
      chart.series[0].points.push_back({.x = k, .y = full});
      chart.series[1].points.push_back({.x = k, .y = filling});
      table.rows.push_back(
          {{"hashes", count},
           {"fpr_exponential", classic ? Value{filter::fpr_exponential(shape, keys)} : Value{}},
           {"fpr_full", full},
           {"fpr_exact", exact ? Value{*exact} : Value{}},
           {"fpr_incremental", filling},
           {"fpr_incremental_exact", incremental ? Value{*incremental} : Value{}}});
    }
    outcome.report.charts.push_back(std::move(chart));
    outcome.report.tables.push_back(std::move(table));
    return outcome;
  }

 private:
  std::uint64_t keys_ = 80000;
  std::uint64_t bits_ = 800000;
  std::string hashes_ = "1..8";
  std::string layout_ = "classic";
};

}  // namespace

std::unique_ptr<Command> make_theory_fill_command() {
  return std::make_unique<TheoryFillCommand>();
}

}  // namespace encore::sim
