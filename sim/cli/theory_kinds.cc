// encore-sim theory scalable, counting, union, kinds: filters that grow, forget, are put together,
// and what each costs.
#include <algorithm>
#include <cmath>

#include "filter/counting_theory.h"
#include "filter/scalable_theory.h"
#include "filter/theory.h"
#include "sim/cli/commands.h"
#include "sim/cli/hash_counts.h"

namespace encore::sim {
namespace {

using filter::FilterShape;
using filter::Layout;

constexpr RealRange kFullFprs{.min = 0, .max = 1, .without_min = true, .without_max = true};
constexpr NumberRange kFilterBits{.min = 1, .max = filter::kBitsMax};
constexpr NumberRange kKeyCounts{.min = 1, .max = std::uint64_t{1} << 52U};

Result<FilterShape> shape_of(const std::string& layout, std::uint64_t bits, std::uint64_t hashes) {
  const auto parsed = filter::parse_layout(layout);
  if (!parsed) {
    return std::unexpected(parsed.error());
  }
  const auto checked = filter::checked({.layout = *parsed,
                                        .bits = bits,
                                        .hashes = static_cast<std::uint32_t>(hashes),
                                        .capacity = 1,
                                        .seed = {}});
  return checked ? Result<FilterShape>(checked->shape()) : std::unexpected(checked.error());
}

Result<std::vector<std::uint64_t>> hashes_for(const Context& context, const std::string& layout,
                                              const std::string& hashes) {
  const auto parsed = filter::parse_layout(layout);
  if (!parsed) {
    return std::unexpected(parsed.error());
  }
  return hash_counts(context, *parsed, hashes);
}

class ScalableCommand final : public Command {
 public:
  std::string name() const override { return "theory scalable"; }
  std::string summary() const override {
    return "Compare a scalable filter with a list of equal filters, by number of keys";
  }
  std::string example() const override {
    return "encore-sim theory scalable --capacity 1000 --fpr 0.01 --keys 1000,10000,1000000";
  }
  void declare(Arguments& a) override {
    a.number("--capacity", capacity_, "keys of the first slice", kKeyCounts);
    a.real("--fpr", fpr_, "largest compound rate; rate of each slice in the list", kFullFprs);
    a.real("--growth", growth_, "growth factor of slice capacities (s)", {.min = 1, .max = 16});
    a.real("--tightening", tightening_, "tightening factor of slice rates (r)",
           {.min = 0, .max = 1, .without_min = true, .without_max = true});
    a.text("--keys", keys_, "numbers of keys: 1000,10000");
    a.text("--layout", layout_, "classic, partitioned, blocked, split");
  }
  Result<Outcome> run(const Context& context) override {
    const auto layout = filter::parse_layout(layout_);
    const auto keys = parse_numbers("--keys", keys_, kKeyCounts);
    if (!layout || !keys) {
      return std::unexpected(layout ? keys.error() : layout.error());
    }
    const filter::ScalableOptions options{.layout = *layout,
                                          .seed = {},
                                          .capacity = capacity_,
                                          .fpr = fpr_,
                                          .growth = growth_,
                                          .tightening = tightening_};
    Outcome outcome;
    outcome.report.parameters = {{"capacity", capacity_},     {"fpr", fpr_},   {"growth", growth_},
                                 {"tightening", tightening_}, {"keys", keys_}, {"layout", layout_}};
    Table table{.key = "rows",
                .title = "",
                .columns = {{"keys", "keys", Style::kCount},
                            {"slices", "slices", Style::kCount},
                            {"bits_per_key", "bits a key", Style::kReal},
                            {"fpr", "FPR", Style::kRate},
                            {"fpr_full", "slices full", Style::kRate},
                            {"growable_slices", "equal ones", Style::kCount},
                            {"growable_bits_per_key", "bits a key", Style::kReal},
                            {"growable_fpr", "FPR", Style::kRate},
                            {"plain_bits_per_key", "made for it", Style::kReal}},
                .rows = {}};
    for (const std::uint64_t count : *keys) {
      if (context.monitor.stopped()) {
        break;
      }
      table.rows.push_back(row(options, count));
    }
    outcome.report.notes.push_back(
        "\"Equal ones\": a list of filters of the first capacity, each at the rate --fpr; \"made "
        "for "
        "it\": one filter of that many keys at that rate. Beyond " +
        std::to_string(filter::kSlicesMax) + " slices the rows are empty.");
    outcome.report.tables.push_back(std::move(table));
    return outcome;
  }

 private:
  Row row(const filter::ScalableOptions& options, std::uint64_t count) const {
    const auto keys = static_cast<double>(count);
    filter::ScalableOptions equal = options;
    equal.growth = equal.tightening = 1;
    const filter::ScalableForecast grown = filter::forecast(options, keys);
    const filter::ScalableForecast list = filter::forecast(equal, keys);
    const filter::Sizing plain = filter::size_for(options.layout, {keys, fpr_});
    Row row = {{"keys", count}};
    const auto of = [](bool known, double number) { return known ? Value{number} : Value{}; };
    row.push_back({"slices", grown.reached ? Value{std::uint64_t{grown.slices}} : Value{}});
    row.push_back({"bits_per_key", of(grown.reached, grown.bits / keys)});
    row.push_back({"fpr", of(grown.reached, grown.fpr)});
    row.push_back({"fpr_full", of(grown.reached, grown.fpr_full)});
    row.push_back({"growable_slices", list.reached ? Value{std::uint64_t{list.slices}} : Value{}});
    row.push_back({"growable_bits_per_key", of(list.reached, list.bits / keys)});
    row.push_back({"growable_fpr", of(list.reached, list.fpr)});
    row.push_back(
        {"plain_bits_per_key", of(plain.reached, static_cast<double>(plain.bits) / keys)});
    return row;
  }

  std::uint64_t capacity_ = 1000;
  double fpr_ = 0.01;
  double growth_ = 2;
  double tightening_ = 0.85;
  std::string keys_ = "1000,10000,100000,1000000";
  std::string layout_ = "classic";
};

class CountingCommand final : public Command {
 public:
  std::string name() const override { return "theory counting"; }
  std::string summary() const override {
    return "Print rate and overflows of a counting filter with four bits per counter";
  }
  std::string example() const override {
    return "encore-sim theory counting --keys 80000 --bits 800000 --hashes 4,7";
  }
  void declare(Arguments& a) override {
    a.number("--keys", keys_, "number of distinct keys", kKeyCounts);
    a.number("--bits", bits_, "counters of the filter", kFilterBits);
    a.text("--hashes", hashes_, "numbers of hashes: 7, 1..8 or 1,2,4");
    a.text("--layout", layout_, "classic, partitioned, blocked, split");
  }
  Result<Outcome> run(const Context& context) override {
    const auto counts = hashes_for(context, layout_, hashes_);
    if (!counts) {
      return std::unexpected(counts.error());
    }
    Outcome outcome;
    outcome.report.parameters = {
        {"keys", keys_}, {"bits", bits_}, {"hashes", hashes_}, {"layout", layout_}};
    Table table{.key = "rows",
                .title = "",
                .columns = {{"hashes", "k", Style::kCount},
                            {"fill", "above zero", Style::kPercent},
                            {"fpr", "FPR", Style::kRate},
                            {"counter_overflows", "a counter reaches 16", Style::kRate},
                            {"overflows", "overflows", Style::kRate},
                            {"bound", "at most (Fan et al.)", Style::kRate},
                            {"bytes", "memory", Style::kBytes}},
                .rows = {}};
    const auto keys = static_cast<double>(keys_);
    for (const std::uint64_t count : *counts) {
      if (context.monitor.stopped()) {
        break;
      }
      const auto shape = shape_of(layout_, bits_, count);
      if (!shape) {
        return std::unexpected(shape.error());
      }
      const auto bits = static_cast<double>(shape->bits);
      table.rows.push_back(
          {{"hashes", count},
           {"fill", filter::expected_set_bits(*shape, keys) / bits},
           {"fpr", filter::fpr(*shape, keys)},
           {"counter_overflows", filter::counter_reaches(*shape, keys, filter::kCounterMax + 1)},
           {"overflows", filter::expected_overflows(*shape, keys)},
           {"bound", shape->layout == Layout::kClassic
                         ? Value{std::min(1.0, filter::overflow_bound(*shape, keys))}
                         : Value{}},
           {"bytes", (shape->bits + 1) / 2}});
    }
    outcome.report.notes.push_back(
        "\"Overflows\" is the expected number of increments of counters at 15; the bound is on the "
        "probability of any.");
    outcome.report.tables.push_back(std::move(table));
    return outcome;
  }

 private:
  std::uint64_t keys_ = 80000;
  std::uint64_t bits_ = 800000;
  std::string hashes_ = "1..8";
  std::string layout_ = "classic";
};

class UnionCommand final : public Command {
 public:
  std::string name() const override { return "theory union"; }
  std::string summary() const override {
    return "Print the rates of union and intersection of two filters of one shape";
  }
  std::string example() const override {
    return "encore-sim theory union --keys 80000 --others 80000 --common 20000 --bits 800000";
  }
  void declare(Arguments& a) override {
    a.number("--keys", keys_, "distinct keys in the first filter", kKeyCounts);
    a.number("--others", others_, "distinct keys in the second filter", kKeyCounts);
    a.number("--common", common_, "number of keys in both filters",
             {.min = 0, .max = kKeyCounts.max});
    a.number("--bits", bits_, "bits of each filter", kFilterBits);
    a.text("--hashes", hashes_, "numbers of hashes: 7, 1..8 or 1,2,4");
    a.text("--layout", layout_, "classic, partitioned, blocked, split");
  }
  Result<Outcome> run(const Context& context) override {
    const auto counts = hashes_for(context, layout_, hashes_);
    if (!counts) {
      return std::unexpected(counts.error());
    }
    if (common_ > std::min(keys_, others_)) {
      return fail("--common " + std::to_string(common_) + " of " +
                  std::to_string(std::min(keys_, others_)) +
                  " keys, accepted: no more than each filter has");
    }
    Outcome outcome;
    outcome.report.parameters = {{"keys", keys_}, {"others", others_}, {"common", common_},
                                 {"bits", bits_}, {"hashes", hashes_}, {"layout", layout_}};
    Table table{.key = "rows",
                .title = "",
                .columns = {{"hashes", "k", Style::kCount},
                            {"fill_first", "first", Style::kPercent},
                            {"fill_second", "second", Style::kPercent},
                            {"fill_or", "OR", Style::kPercent},
                            {"fill_and", "AND", Style::kPercent},
                            {"fpr_first", "FPR first", Style::kRate},
                            {"fpr_second", "second", Style::kRate},
                            {"fpr_or", "OR", Style::kRate},
                            {"fpr_and", "AND", Style::kRate}},
                .rows = {}};
    for (const std::uint64_t count : *counts) {
      if (context.monitor.stopped()) {
        break;
      }
      const auto shape = shape_of(layout_, bits_, count);
      if (!shape) {
        return std::unexpected(shape.error());
      }
      table.rows.push_back(row(*shape));
    }
    outcome.report.tables.push_back(std::move(table));
    return outcome;
  }

 private:
  Row row(const FilterShape& shape) const {
    const auto bits = static_cast<double>(shape.bits);
    const auto first = static_cast<double>(keys_);
    const auto second = static_cast<double>(others_);
    const double either = first + second - static_cast<double>(common_);
    const auto fill = [&](double keys) { return filter::expected_set_bits(shape, keys) / bits; };
    // For each bit: set in both = set in the first + set in the second - set in either.
    const double both = fill(first) + fill(second) - fill(either);
    const bool spread_evenly =
        shape.layout == Layout::kClassic || shape.layout == Layout::kPartitioned;
    return {{"hashes", std::uint64_t{shape.hashes}},
            {"fill_first", fill(first)},
            {"fill_second", fill(second)},
            {"fill_or", fill(either)},
            {"fill_and", both},
            {"fpr_first", filter::fpr(shape, first)},
            {"fpr_second", filter::fpr(shape, second)},
            {"fpr_or", filter::fpr(shape, either)},
            {"fpr_and", spread_evenly ? Value{std::pow(both, shape.hashes)} : Value{}}};
  }

  std::uint64_t keys_ = 80000;
  std::uint64_t others_ = 80000;
  std::uint64_t common_ = 0;
  std::uint64_t bits_ = 800000;
  std::string hashes_ = "1..8";
  std::string layout_ = "classic";
};

class KindsCommand final : public Command {
 public:
  std::string name() const override { return "theory kinds"; }
  std::string summary() const override {
    return "Compare the memory of all kinds of filters at one rate";
  }
  std::string example() const override {
    return "encore-sim theory kinds --keys 1000000 --fpr 0.01 --capacity 1000";
  }
  void declare(Arguments& a) override {
    a.number("--keys", keys_, "number of distinct keys", kKeyCounts);
    a.real("--fpr", fpr_, "false-positive rate with all keys inserted", kFullFprs);
    a.number("--capacity", capacity_, "keys of the first slice of growing filters", kKeyCounts);
  }
  Result<Outcome> run(const Context&) override {
    Outcome outcome;
    outcome.report.parameters = {{"keys", keys_}, {"fpr", fpr_}, {"capacity", capacity_}};
    table_ = {.key = "rows",
              .title = "",
              .columns = {{"kind", "kind"},
                          {"layout", "layout"},
                          {"parts", "filters", Style::kCount},
                          {"hashes", "k", Style::kCount},
                          {"bits_per_key", "bits a key", Style::kReal},
                          {"bytes", "memory", Style::kBytes},
                          {"fpr", "FPR", Style::kRate}},
              .rows = {}};
    for (const Layout layout :
         {Layout::kClassic, Layout::kPartitioned, Layout::kBlocked, Layout::kSplit}) {
      add_single(layout, "plain", 1);
    }
    add_single(Layout::kClassic, "counting", 4);
    add_pair();
    for (const double tightening : {0.5, 0.85, 0.9}) {
      add_growing(tightening, fpr_);
    }
    add_list();
    outcome.report.notes.push_back(
        "The pair certainly remembers the last --keys keys, all others every added key. The rates "
        "of the growable list add up to --fpr at this number of keys; a scalable filter keeps "
        "--fpr at any number.");
    outcome.report.tables.push_back(std::move(table_));
    return outcome;
  }

 private:
  struct Cost {
    std::uint64_t parts = 1;
    Value hashes;
    double bits = 0;
    double fpr = 0;
    bool reached = true;
  };
  void add(const std::string& kind, Layout layout, const Cost& cost) {
    const auto known = [&](const Value& value) { return cost.reached ? value : Value{}; };
    table_.rows.push_back({{"kind", kind},
                           {"layout", std::string(to_string(layout))},
                           {"parts", known(cost.parts)},
                           {"hashes", known(cost.hashes)},
                           {"bits_per_key", known(cost.bits / static_cast<double>(keys_))},
                           {"bytes", known(std::ceil(cost.bits / 8))},
                           {"fpr", known(cost.fpr)}});
  }
  void add_single(Layout layout, const std::string& kind, double bits_a_position) {
    const filter::Sizing sizing = filter::size_for(layout, {static_cast<double>(keys_), fpr_});
    add(kind, layout,
        {.hashes = std::uint64_t{sizing.hashes},
         .bits = bits_a_position * static_cast<double>(sizing.bits),
         .fpr = sizing.fpr,
         .reached = sizing.reached});
  }
  void add_pair() {
    const filter::Sizing sizing = filter::size_ring(
        {.layout = Layout::kClassic, .capacity = static_cast<double>(keys_), .fpr_worst = fpr_});
    add("rotating pair", Layout::kClassic,
        {.parts = 2,
         .hashes = std::uint64_t{sizing.hashes},
         .bits = 2 * static_cast<double>(sizing.bits),
         .fpr = 1 - (1 - sizing.fpr) * (1 - sizing.fpr),
         .reached = sizing.reached});
  }
  void add_growing(double tightening, double rate) {
    const filter::ScalableForecast forecast =
        filter::forecast({.seed = {},
                          .capacity = capacity_,
                          .fpr = rate,
                          .growth = tightening == 1 ? 1.0 : 2.0,
                          .tightening = tightening},
                         static_cast<double>(keys_));
    const std::string kind =
        tightening == 1 ? "growable" : "scalable, r = " + std::to_string(tightening).substr(0, 4);
    add(kind, Layout::kClassic,
        {.parts = forecast.slices,
         .hashes = {},
         .bits = forecast.bits,
         .fpr = forecast.fpr,
         .reached = forecast.reached});
  }
  void add_list() {
    const double slices = std::ceil(static_cast<double>(keys_) / static_cast<double>(capacity_));
    add_growing(1, -std::expm1(std::log1p(-fpr_) / slices));
  }

  std::uint64_t keys_ = 1000000;
  double fpr_ = 0.01;
  std::uint64_t capacity_ = 1000;
  Table table_;
};

}  // namespace

std::vector<std::unique_ptr<Command>> make_theory_kind_commands() {
  std::vector<std::unique_ptr<Command>> all;
  all.push_back(std::make_unique<ScalableCommand>());
  all.push_back(std::make_unique<CountingCommand>());
  all.push_back(std::make_unique<UnionCommand>());
  all.push_back(std::make_unique<KindsCommand>());
  return all;
}

}  // namespace encore::sim
