// encore-filter sizing: how large a filter has to be, or how much goes into one.
#include <array>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <ostream>

#include "base/units.h"
#include "filter/cli/command.h"
#include "filter/theory.h"

namespace encore::filter {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::array kLayouts = {Layout::kClassic, Layout::kPartitioned, Layout::kBlocked,
                                 Layout::kSplit};
constexpr RealRange kFprs{.min = 0, .max = 1, .without_min = true, .without_max = true};

struct Sized {
  Layout layout = Layout::kSplit;
  Sizing sizing;
  std::uint64_t capacity = 0;
};

class SizingCommand final : public Command {
 public:
  std::string name() const override { return "sizing"; }
  std::string summary() const override {
    return "Print bits and hashes for a number of keys and a rate, or the capacity of a number of "
           "bits";
  }
  std::string examples() const override {
    return "encore-filter sizing --capacity 3000 --fpr 0.01\n"
           "encore-filter sizing --bits 1000000 --fpr 0.01\n"
           "encore-filter sizing --bits 1000000 --capacity 100000";
  }
  void declare(Arguments& a) override {
    a.number("--capacity", capacity_, "keys", {.min = 1, .max = kBitsMax});
    a.real("--fpr", fpr_, "false-positive rate with all keys inserted", kFprs);
    a.number("--bits", bits_, "bits of the filter", {.min = 1, .max = kBitsMax});
    a.text("--layout", layout_, "classic, partitioned, blocked, split, all");
    a.flag("--json", json_, "print a JSON object");
  }
  Result<SearchOutcome> run(const Context& context) override {
    if ((capacity_ != 0) + (fpr_ != 0) + (bits_ != 0) != 2) {
      return fail("accepted: two of --capacity, --fpr and --bits");
    }
    Json rows = Json::array();
    for (const Layout layout : kLayouts) {
      if (layout_ != "all" && layout_ != to_string(layout)) {
        continue;
      }
      const auto sized = size(layout);
      if (!sized) {
        return std::unexpected(sized.error());
      }
      rows.push_back(
          {{"layout", to_string(layout)},
           {"bits", sized->sizing.bits},
           {"hashes", sized->sizing.hashes},
           {"capacity", sized->capacity},
           {"bits_per_key", static_cast<double>(sized->sizing.bits) /
                                static_cast<double>(std::max<std::uint64_t>(sized->capacity, 1))},
           {"fpr", sized->sizing.fpr}});
    }
    if (rows.empty()) {
      return fail(parse_layout(layout_).error().message + ", all");
    }
    if (json_) {
      context.out << Json({{"rows", rows}}).dump(2) << "\n";
    } else {
      print(rows, context.out);
    }
    return SearchOutcome::kSomething;
  }

 private:
  Result<Sized> size(Layout layout) const {
    const auto keys = static_cast<double>(capacity_);
    Sized sized{.layout = layout, .sizing = {}, .capacity = capacity_};
    if (bits_ == 0) {
      return size_for_goal(sized, {keys, fpr_});
    }
    const auto checked_bits = checked({.layout = layout,
                                       .hash = HashFamily::kXxh3,
                                       .bits = bits_,
                                       .hashes = layout == Layout::kSplit ? kSplitHashes : 1,
                                       .capacity = 1,
                                       .seed = {}});
    if (!checked_bits) {
      return std::unexpected(checked_bits.error());
    }
    FilterShape shape = checked_bits->shape();
    if (capacity_ != 0) {
      shape.hashes = best_hashes(shape, keys);
    } else {
      // k = log2(1/p) is the best where half of the bits are set, which is where this ends.
      shape.hashes = layout == Layout::kSplit ? kSplitHashes : best_at(shape);
      sized.capacity = static_cast<std::uint64_t>(capacity_for(shape, fpr_));
    }
    sized.sizing = {.bits = shape.bits,
                    .hashes = shape.hashes,
                    .fpr = fpr(shape, static_cast<double>(sized.capacity))};
    return sized;
  }
  Result<Sized> size_for_goal(Sized sized, const SizingGoal& goal) const {
    if (sized.layout == Layout::kClassic) {
      const ClassicSizing classic = size_classic(goal);
      sized.sizing = {.bits = classic.bits,
                      .hashes = classic.hashes,
                      .fpr = fpr({Layout::kClassic, classic.bits, classic.hashes}, goal.keys)};
    } else {
      sized.sizing = size_for(sized.layout, goal);
    }
    if (!sized.sizing.reached || sized.sizing.bits > kBitsMax) {
      return fail("no " + std::string(to_string(sized.layout)) + " filter of up to " +
                  std::to_string(kBitsMax) + " bits holds " + std::to_string(capacity_) +
                  " keys at this rate");
    }
    return sized;
  }
  // The k that lets the most keys in, next to log2(1/p).
  std::uint32_t best_at(FilterShape shape) const {
    const double ideal = std::min(-std::log2(fpr_), double{kHashesMax} - 3);
    std::uint32_t best = 1;
    double most = -1;
    const auto first = static_cast<std::uint32_t>(std::max(1.0, std::floor(ideal) - 3));
    for (shape.hashes = first; shape.hashes <= first + 6 && shape.hashes <= shape.bits;
         ++shape.hashes) {
      const double keys = capacity_for(shape, fpr_);
      if (keys > most) {
        most = keys;
        best = shape.hashes;
      }
    }
    return best;
  }
  static void print(const Json& rows, std::ostream& out) {
    std::array<char, 160> line{};
    std::snprintf(line.data(), line.size(), "%-12s%16s%11s%6s%16s%12s%14s\n", "layout", "bits",
                  "memory", "k", "capacity", "bits a key", "FPR");
    out << line.data();
    for (const Json& row : rows) {
      const auto bits = row["bits"].get<std::uint64_t>();
      std::snprintf(line.data(), line.size(), "%-12s%16llu%11s%6u%16llu%12.2f%14.6g\n",
                    row["layout"].get<std::string>().c_str(), static_cast<unsigned long long>(bits),
                    format_bytes((bits + 7) / 8).c_str(), row["hashes"].get<unsigned>(),
                    static_cast<unsigned long long>(row["capacity"].get<std::uint64_t>()),
                    row["bits_per_key"].get<double>(), row["fpr"].get<double>());
      out << line.data();
    }
  }

  std::uint64_t capacity_ = 0;
  std::uint64_t bits_ = 0;
  double fpr_ = 0;
  std::string layout_ = "all";
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> make_sizing_command() { return std::make_unique<SizingCommand>(); }

}  // namespace encore::filter
