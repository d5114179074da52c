// encore-sim theory size, capacity, pair, ring: formulas as tables.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <numbers>

#include "filter/theory.h"
#include "sim/cli/blocks_theory.h"
#include "sim/cli/commands.h"
#include "sim/cli/hash_counts.h"

namespace encore::sim {
namespace {

using filter::Layout;

constexpr std::array kLayouts = {Layout::kClassic, Layout::kPartitioned, Layout::kBlocked,
                                 Layout::kSplit};

// "all" or one name.
Result<std::vector<Layout>> parse_layouts(const std::string& text) {
  if (text == "all") {
    return std::vector<Layout>(kLayouts.begin(), kLayouts.end());
  }
  const auto layout = filter::parse_layout(text);
  if (!layout) {
    return fail(layout.error().message + ", all");
  }
  return std::vector<Layout>{*layout};
}

std::string plain(double number) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%g", number);
  return text.data();
}

std::string name_of(Layout layout) { return std::string(to_string(layout)); }

constexpr RealRange kFprs{.min = 0, .max = 1, .without_min = true, .without_max = true};
// So many that a thousand generations of them can be counted.
constexpr NumberRange kCapacities{.min = 0, .max = std::uint64_t{1} << 52U};
constexpr NumberRange kBits{.min = 1, .max = filter::kBitsMax};

Result<void> check_shape(Layout layout, std::uint64_t bits, std::uint64_t hashes) {
  const auto checked = filter::checked({.layout = layout,
                                        .bits = bits,
                                        .hashes = static_cast<std::uint32_t>(hashes),
                                        .capacity = 1,
                                        .seed = {}});
  return checked ? Result<void>{} : std::unexpected(checked.error());
}

Table rows_of(std::vector<Column> columns) {
  return {.key = "rows", .title = "", .columns = std::move(columns), .rows = {}};
}

class SizeCommand final : public Command {
 public:
  std::string name() const override { return "theory size"; }
  std::string summary() const override {
    return "Print bits and hashes for a number of keys at a false-positive rate";
  }
  std::string example() const override {
    return "encore-sim theory size --keys 1000000 --fpr 0.01";
  }
  void declare(Arguments& a) override {
    a.number("--keys", keys_, "number of distinct keys", {.min = 1});
    a.real("--fpr", fpr_, "false-positive rate with all keys inserted", kFprs);
    a.text("--layout", layout_, "classic, partitioned, blocked, split, all");
  }
  Result<Outcome> run(const Context& context) override {
    const auto layouts = parse_layouts(layout_);
    if (!layouts) {
      return std::unexpected(layouts.error());
    }
    Outcome outcome;
    outcome.report.parameters = {{"keys", keys_}, {"fpr", fpr_}, {"layout", layout_}};
    Table table = rows_of({{"layout", "layout"},
                           {"bits", "bits", Style::kCount},
                           {"bytes", "memory", Style::kBytes},
                           {"bits_per_key", "bits a key", Style::kReal},
                           {"hashes", "k", Style::kCount},
                           {"hashes_ceiling", "ceil(m/n ln 2)", Style::kCount},
                           {"fpr", "FPR", Style::kRate}});
    for (const Layout layout : *layouts) {
      if (context.monitor.stopped()) {
        break;
      }
      const auto sized = size(layout);
      if (!sized && layouts->size() == 1) {
        return std::unexpected(sized.error());
      }
      if (!sized) {
        table.rows.push_back({{"layout", name_of(layout)}});
        outcome.report.notes.push_back(sized.error().message + ".");
        continue;
      }
      table.rows.push_back(
          {{"layout", name_of(layout)},
           {"bits", sized->sizing.bits},
           {"bytes", (sized->sizing.bits + 7) / 8},
           {"bits_per_key", static_cast<double>(sized->sizing.bits) / static_cast<double>(keys_)},
           {"hashes", std::uint64_t{sized->sizing.hashes}},
           {"hashes_ceiling", sized->ceiling},
           {"fpr", sized->sizing.fpr}});
    }
    outcome.report.tables.push_back(std::move(table));
    return outcome;
  }

 private:
  struct Sized {
    filter::Sizing sizing;
    Value ceiling;
  };
  // Errors: no filter of the layout reaches the goal.
  Result<Sized> size(Layout layout) const {
    const filter::SizingGoal goal{static_cast<double>(keys_), fpr_};
    // k = log2(1/p): half of the bits are set, and each test finds one that is.
    const double hashes = std::ceil(-std::log2(fpr_));
    const std::string wanted = "--fpr " + plain(fpr_) + " for " + std::to_string(keys_) + " keys";
    if (layout != Layout::kClassic) {
      const filter::Sizing sizing = filter::size_for(layout, goal);
      return sizing.reached ? Result<Sized>(Sized{sizing, {}})
                            : fail(wanted + ": layout " + name_of(layout) + " comes down to " +
                                   plain(sizing.fpr) + " in 512 GiB with k up to " +
                                   std::to_string(filter::kHashesMax) +
                                   "; a classic filter would need k = " + plain(hashes));
    }
    constexpr double kLn2 = std::numbers::ln2;
    const double bits = -goal.keys * std::log(fpr_) / (kLn2 * kLn2);
    if (hashes > filter::kHashesMax || bits > 0x1p63) {
      return fail(wanted + ": a classic filter would need k = " + plain(hashes) + " and " +
                  plain(bits) + " bits, accepted: k up to " + std::to_string(filter::kHashesMax) +
                  " and 2^63 bits");
    }
    const filter::ClassicSizing classic = filter::size_classic(goal);
    return Sized{{classic.bits, classic.hashes,
                  filter::fpr({layout, classic.bits, classic.hashes}, goal.keys)},
                 std::uint64_t{classic.hashes_ceiling}};
  }

  std::uint64_t keys_ = 1000000;
  double fpr_ = 0.01;
  std::string layout_ = "all";
};

class CapacityCommand final : public Command {
 public:
  std::string name() const override { return "theory capacity"; }
  std::string summary() const override {
    return "Print the most keys that keep a false-positive rate in a number of bits";
  }
  std::string example() const override {
    return "encore-sim theory capacity --bits 800000000 --fpr 0.01";
  }
  void declare(Arguments& a) override {
    a.number("--bits", bits_, "bits of the filter", kBits);
    a.real("--fpr", fpr_, "false-positive rate of the full filter", kFprs);
    a.text("--layout", layout_, "classic, partitioned, blocked, split, all");
  }
  Result<Outcome> run(const Context& context) override {
    const auto layouts = parse_layouts(layout_);
    if (!layouts) {
      return std::unexpected(layouts.error());
    }
    Outcome outcome;
    outcome.report.parameters = {{"bits", bits_}, {"fpr", fpr_}, {"layout", layout_}};
    Table table = rows_of({{"layout", "layout"},
                           {"hashes", "k", Style::kCount},
                           {"capacity", "capacity", Style::kCount},
                           {"capacity_closed_form", "m (ln 2)^2 / -ln p", Style::kCount},
                           {"bits_per_key", "bits a key", Style::kReal},
                           {"half_full_capacity", "half full at", Style::kCount}});
    for (const Layout layout : *layouts) {
      if (context.monitor.stopped()) {
        break;
      }
      // With k = 1 every layout but split fits any number of bits.
      const std::uint64_t hashes = layout == Layout::kSplit ? filter::kSplitHashes : 1;
      if (auto fine = check_shape(layout, bits_, hashes); !fine) {
        return std::unexpected(fine.error());
      }
      table.rows.push_back(best_row(layout));
      if (std::holds_alternative<std::monostate>(table.rows.back()[1].value)) {
        outcome.report.notes.push_back("No key fits into a " + name_of(layout) + " filter of " +
                                       std::to_string(bits_) + " bits at this rate.");
      }
    }
    outcome.report.tables.push_back(std::move(table));
    return outcome;
  }

 private:
  // The k that lets the most keys in.
  Row best_row(Layout layout) const {
    // Lines are whole.
    const bool lines = layout == Layout::kBlocked || layout == Layout::kSplit;
    const std::uint64_t bits =
        lines ? (bits_ + filter::kLineBits - 1) / filter::kLineBits * filter::kLineBits : bits_;
    filter::FilterShape best{layout, bits, layout == Layout::kSplit ? filter::kSplitHashes : 1};
    double capacity = filter::capacity_for(best, fpr_);
    for (std::uint32_t k = 1; layout != Layout::kSplit && k <= filter::kHashesMax && k <= bits;
         ++k) {
      const filter::FilterShape shape{layout, bits, k};
      const double keys = filter::capacity_for(shape, fpr_);
      if (keys > capacity) {
        capacity = keys;
        best = shape;
      }
    }
    const bool classic = layout == Layout::kClassic;
    const bool reached = capacity >= 1;
    return {
        {"layout", name_of(layout)},
        {"hashes", reached ? Value{std::uint64_t{best.hashes}} : Value{}},
        {"capacity", reached ? Value{static_cast<std::uint64_t>(capacity)} : Value{}},
        {"capacity_closed_form", classic ? Value{filter::capacity_classic(bits_, fpr_)} : Value{}},
        {"bits_per_key", reached ? Value{static_cast<double>(bits) / capacity} : Value{}},
        {"half_full_capacity", reached ? Value{filter::half_full_capacity(best)} : Value{}}};
  }

  std::uint64_t bits_ = 8000000;
  double fpr_ = 0.01;
  std::string layout_ = "all";
};

class PairCommand final : public Command {
 public:
  std::string name() const override { return "theory pair"; }
  std::string summary() const override {
    return "Print the false-positive rate of a rotating pair or ring over a cycle";
  }
  std::string example() const override {
    return "encore-sim theory pair --bits 800000 --capacity 80000 --hashes 4,7,8";
  }
  void declare(Arguments& a) override {
    a.number("--bits", bits_, "bits of one generation", kBits);
    a.number("--capacity", capacity_, "insertions per generation (0: half full)", kCapacities);
    a.text("--hashes", hashes_, "numbers of hashes");
    a.number("--generations", generations_, "number of generations; 2 is the pair",
             {.min = 2, .max = 1000});
    a.flag("--no-refresh", no_refresh_, "do not refresh keys found in an older generation");
    a.text("--layout", layout_, "classic, partitioned, blocked, split");
  }
  Result<Outcome> run(const Context& context) override {
    const auto layout = filter::parse_layout(layout_);
    if (!layout) {
      return std::unexpected(layout.error());
    }
    const auto hashes = hash_counts(context, *layout, hashes_);
    if (!hashes) {
      return std::unexpected(hashes.error());
    }
    Outcome outcome;
    outcome.report.parameters = {{"bits", bits_},           {"capacity", capacity_},
                                 {"hashes", hashes_},       {"generations", generations_},
                                 {"refresh", !no_refresh_}, {"layout", layout_}};
    Table table = rows_of({{"hashes", "k", Style::kCount},
                           {"capacity", "c", Style::kCount},
                           {"fpr_low", "low", Style::kRate},
                           {"fpr_mean", "mean", Style::kRate},
                           {"fpr_high", "high", Style::kRate},
                           {"fpr_low_effective", "low (effective)", Style::kRate},
                           {"fpr_mean_effective", "mean", Style::kRate},
                           {"fpr_high_effective", "high", Style::kRate},
                           {"remembered_least", "remembered from", Style::kCount},
                           {"remembered_most", "to", Style::kCount},
                           {"bytes", "memory", Style::kBytes}});
    for (const std::uint64_t k : *hashes) {
      if (context.monitor.stopped()) {
        break;
      }
      if (auto fine = check_shape(*layout, bits_, k); !fine) {
        return std::unexpected(fine.error());
      }
      std::string refused;
      table.rows.push_back(make_row(*layout, static_cast<std::uint32_t>(k), refused));
      if (!refused.empty()) {
        outcome.report.notes.push_back("k = " + std::to_string(k) +
                                       ": the effective rates are left out: " + refused + ".");
      }
    }
    outcome.report.tables.push_back(std::move(table));
    return outcome;
  }

 private:
  Row make_row(Layout layout, std::uint32_t k, std::string& refused) const {
    const filter::FilterShape shape{layout, bits_, k};
    const std::uint64_t capacity = capacity_ != 0 ? capacity_ : filter::half_full_capacity(shape);
    filter::Ring ring{.shape = shape,
                      .capacity = static_cast<double>(capacity),
                      .generations = static_cast<std::uint32_t>(generations_)};
    const filter::CycleFpr plain = filter::ring_cycle(ring);
    ring.refresh = !no_refresh_;
    ring.counting = filter::Counting::kEffective;
    refused = theory_refusal(ring);
    const bool holds = refused.empty();
    const filter::CycleFpr effective = holds ? filter::ring_cycle(ring) : filter::CycleFpr{};
    const auto known = [&](double p) { return holds ? Value{p} : Value{}; };
    return {{"hashes", std::uint64_t{k}},
            {"capacity", capacity},
            {"fpr_low", plain.low},
            {"fpr_mean", plain.mean},
            {"fpr_high", plain.high},
            {"fpr_low_effective", known(effective.low)},
            {"fpr_mean_effective", known(effective.mean)},
            {"fpr_high_effective", known(effective.high)},
            {"remembered_least", (generations_ - 1) * capacity},
            {"remembered_most", generations_ * capacity},
            {"bytes", generations_ * ((bits_ + 7) / 8)}};
  }

  std::uint64_t bits_ = 800000;
  std::uint64_t capacity_ = 0;
  std::string hashes_ = "4,7,8";
  std::uint64_t generations_ = 2;
  bool no_refresh_ = false;
  std::string layout_ = "classic";
};

class RingCommand final : public Command {
 public:
  std::string name() const override { return "theory ring"; }
  std::string summary() const override {
    return "Print the memory for a certainly remembered window, by number of generations";
  }
  std::string example() const override {
    return "encore-sim theory ring --window 1000000 --fpr 0.01 --generations 2..8";
  }
  void declare(Arguments& a) override {
    a.number("--window", window_, "insertions for which every key is certainly remembered",
             {.min = 1, .max = kCapacities.max});
    a.real("--fpr", fpr_, "worst false-positive rate of a cycle, over all generations", kFprs);
    a.text("--generations", generations_, "numbers of generations");
    a.text("--layout", layout_, "classic, partitioned, blocked, split");
  }
  Result<Outcome> run(const Context& context) override {
    const auto layout = filter::parse_layout(layout_);
    const auto generations = parse_numbers("--generations", generations_, {.min = 2, .max = 1000});
    if (!layout || !generations) {
      return std::unexpected(layout ? generations.error() : layout.error());
    }
    Outcome outcome;
    outcome.report.parameters = {
        {"window", window_}, {"fpr", fpr_}, {"generations", generations_}, {"layout", layout_}};
    Table table = rows_of({{"generations", "generations", Style::kCount},
                           {"hashes", "k", Style::kCount},
                           {"bits_per_key", "bits a key", Style::kReal},
                           {"bytes", "memory", Style::kBytes},
                           {"capacity", "insertions a generation", Style::kCount}});
    for (const std::uint64_t g : *generations) {
      if (context.monitor.stopped()) {
        break;
      }
      const filter::WindowCost cost =
          filter::window_cost(*layout, static_cast<std::uint32_t>(g), fpr_);
      if (!cost.reached) {
        return fail("--fpr " + plain(fpr_) + " with " + std::to_string(g) +
                    " generations: no filter of layout " + layout_ + " and k up to " +
                    std::to_string(filter::kHashesMax) +
                    " reaches it; a classic filter would need k = " +
                    plain(std::ceil(-std::log2(fpr_ / static_cast<double>(g)))));
      }
      table.rows.push_back(
          {{"generations", g},
           {"hashes", std::uint64_t{cost.hashes}},
           {"bits_per_key", cost.bits_per_key},
           {"bytes", cost.bits_per_key * static_cast<double>(window_) / 8},
           {"capacity", std::ceil(static_cast<double>(window_) / static_cast<double>(g - 1))}});
    }
    outcome.report.tables.push_back(std::move(table));
    return outcome;
  }

 private:
  std::uint64_t window_ = 1000000;
  double fpr_ = 0.01;
  std::string generations_ = "2..8";
  std::string layout_ = "classic";
};

}  // namespace

std::vector<std::unique_ptr<Command>> make_theory_commands() {
  std::vector<std::unique_ptr<Command>> all;
  all.push_back(std::make_unique<SizeCommand>());
  all.push_back(std::make_unique<CapacityCommand>());
  all.push_back(std::make_unique<PairCommand>());
  all.push_back(std::make_unique<RingCommand>());
  return all;
}

}  // namespace encore::sim
