// encore-sim theory table, layouts: the FPR for each of some bits a key and numbers of hashes.
#include <array>
#include <utility>

#include "filter/theory.h"
#include "sim/cli/commands.h"

namespace encore::sim {
namespace {

using filter::Layout;

// Beyond a few thousand keys only the ratio counts.
constexpr std::uint64_t kKeys = 1000000;

double fpr_of(Layout layout, std::uint64_t bits_per_key, std::uint64_t hashes) {
  return filter::fpr({layout, bits_per_key * kKeys, static_cast<std::uint32_t>(hashes)},
                     static_cast<double>(kKeys));
}

// The grid that both commands are about.
struct Grid {
  std::vector<std::uint64_t> bits_per_key;  // 1 to 1000
  std::vector<std::uint64_t> hashes;        // 1 to kHashesMax
};

class GridCommand : public Command {
 public:
  struct Defaults {
    std::string bits_per_key;
    std::string hashes;
  };
  explicit GridCommand(Defaults defaults) : lists_(std::move(defaults)) {}

  void declare(Arguments& a) override {
    a.text("--bits-per-key", lists_.bits_per_key, "bits per key (m/n), whole numbers");
    a.text("--hashes", lists_.hashes, "numbers of hashes");
  }
  Result<Outcome> run(const Context& context) override {
    auto grid = read_grid();
    if (!grid) {
      return std::unexpected(grid.error());
    }
    Outcome outcome;
    outcome.report.parameters = {{"bits_per_key", lists_.bits_per_key}, {"hashes", lists_.hashes}};
    outcome.report.tables = tables(*grid, context.monitor);
    return outcome;
  }

 private:
  virtual std::vector<Table> tables(const Grid& grid, Monitor& monitor) const = 0;

  Result<Grid> read_grid() const {
    auto ratios = parse_numbers("--bits-per-key", lists_.bits_per_key, {.min = 1, .max = 1000});
    auto hashes = parse_numbers("--hashes", lists_.hashes, {.min = 1, .max = filter::kHashesMax});
    if (!ratios || !hashes) {
      return std::unexpected(ratios ? hashes.error() : ratios.error());
    }
    return Grid{std::move(*ratios), std::move(*hashes)};
  }

  Defaults lists_;
};

Table sizing_table() {
  Table table{.key = "sizing",
              .title = "Sizes for n keys at an FPR of p",
              .columns = {{"keys", "n", Style::kCount},
                          {"fpr", "p", Style::kRate},
                          {"bits", "m", Style::kCount},
                          {"hashes_ceiling", "ceil k", Style::kCount},
                          {"hashes", "best k", Style::kCount}},
              .rows = {}};
  constexpr std::array kGoals = {filter::SizingGoal{1000, 0.1},    filter::SizingGoal{1000, 0.05},
                                 filter::SizingGoal{1000, 0.01},   filter::SizingGoal{1000, 0.005},
                                 filter::SizingGoal{1000, 0.001},  filter::SizingGoal{1000, 0.0005},
                                 filter::SizingGoal{1000, 0.0001}, filter::SizingGoal{3000, 0.01},
                                 filter::SizingGoal{18232, 0.001}, filter::SizingGoal{1e6, 0.01},
                                 filter::SizingGoal{1e6, 0.001}};
  for (const filter::SizingGoal& goal : kGoals) {
    const filter::ClassicSizing sizing = filter::size_classic(goal);
    table.rows.push_back({{"keys", goal.keys},
                          {"fpr", goal.fpr},
                          {"bits", sizing.bits},
                          {"hashes_ceiling", std::uint64_t{sizing.hashes_ceiling}},
                          {"hashes", std::uint64_t{sizing.hashes}}});
  }
  return table;
}

class TableCommand final : public GridCommand {
 public:
  TableCommand() : GridCommand({.bits_per_key = "2..20", .hashes = "1..14"}) {}
  std::string name() const override { return "theory table"; }
  std::string summary() const override {
    return "Print reference tables: false-positive rate by bits per key and hashes";
  }
  std::string example() const override {
    return "encore-sim theory table --bits-per-key 5,10,20 --hashes 1..14";
  }

 private:
  std::vector<Table> tables(const Grid& grid, Monitor& monitor) const override {
    Table table{.key = "rows",
                .title = "",
                .columns = {{"bits_per_key", "bits a key", Style::kCount}},
                .rows = {}};
    for (const std::uint64_t k : grid.hashes) {
      table.columns.push_back({"k" + std::to_string(k), "k=" + std::to_string(k), Style::kRate});
    }
    table.columns.push_back({"best_hashes", "best k", Style::kCount});
    table.columns.push_back({"best_fpr", "FPR", Style::kRate});
    for (const std::uint64_t ratio : grid.bits_per_key) {
      if (monitor.stopped()) {
        break;
      }
      Row row = {{"bits_per_key", ratio}};
      for (const std::uint64_t k : grid.hashes) {
        row.push_back({"k" + std::to_string(k), fpr_of(Layout::kClassic, ratio, k)});
      }
      const std::uint32_t best =
          filter::best_hashes({Layout::kClassic, ratio * kKeys, 1}, static_cast<double>(kKeys));
      row.push_back({"best_hashes", std::uint64_t{best}});
      row.push_back({"best_fpr", fpr_of(Layout::kClassic, ratio, best)});
      table.rows.push_back(std::move(row));
    }
    return {std::move(table), sizing_table()};
  }
};

class LayoutsCommand final : public GridCommand {
 public:
  LayoutsCommand() : GridCommand({.bits_per_key = "8,10,12,16", .hashes = "4,7,8,11"}) {}
  std::string name() const override { return "theory layouts"; }
  std::string summary() const override {
    return "Print the false-positive rate of each layout at the same memory";
  }
  std::string example() const override {
    return "encore-sim theory layouts --bits-per-key 10,16 --hashes 7,8,11";
  }

 private:
  std::vector<Table> tables(const Grid& grid, Monitor& monitor) const override {
    Table table{.key = "rows",
                .title = "",
                .columns = {{"bits_per_key", "bits a key", Style::kCount},
                            {"hashes", "k", Style::kCount},
                            {"classic", "classic", Style::kRate},
                            {"partitioned", "partitioned", Style::kRate},
                            {"blocked", "blocked", Style::kRate},
                            {"split", "split 8x64", Style::kRate},
                            {"split_32", "split 8x32", Style::kRate},
                            {"blocked_exact", "blocked, exact", Style::kRate}},
                .rows = {}};
    for (const std::uint64_t ratio : grid.bits_per_key) {
      if (monitor.stopped()) {
        break;
      }
      for (const std::uint64_t k : grid.hashes) {
        table.rows.push_back(make_row(ratio, k));
      }
    }
    return {std::move(table)};
  }

  static Row make_row(std::uint64_t ratio, std::uint64_t k) {
    Row row = {{"bits_per_key", ratio}, {"hashes", k}};
    for (const Layout layout : {Layout::kClassic, Layout::kPartitioned}) {
      row.push_back({std::string(to_string(layout)), fpr_of(layout, ratio, k)});
    }
    const filter::FilterShape blocked{Layout::kBlocked, ratio * kKeys,
                                      static_cast<std::uint32_t>(k)};
    row.push_back({"blocked", filter::fpr_blocked(blocked, static_cast<double>(kKeys),
                                                  static_cast<double>(filter::kLineBits))});
    const bool split = k == filter::kSplitHashes;
    const auto split_fpr = [&](filter::SplitLine words) {
      return split ? Value{filter::fpr_split(static_cast<double>(ratio * kKeys),
                                             static_cast<double>(kKeys), words)}
                   : Value{};
    };
    row.push_back({"split", split_fpr({8, 64})});
    row.push_back({"split_32", split_fpr({8, 32})});
    row.push_back({"blocked_exact", fpr_of(Layout::kBlocked, ratio, k)});
    return row;
  }
};

}  // namespace

std::vector<std::unique_ptr<Command>> make_theory_grid_commands() {
  std::vector<std::unique_ptr<Command>> all;
  all.push_back(std::make_unique<TableCommand>());
  all.push_back(std::make_unique<LayoutsCommand>());
  return all;
}

}  // namespace encore::sim
