// encore-filter hashes: the speed of each hash next to its false positives.
#include <array>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <ostream>

#include "filter/cli/command.h"
#include "filter/cli/hash_measure.h"
#include "filter/theory.h"

namespace encore::filter {
namespace {

using Json = nlohmann::ordered_json;

class HashesCommand final : public Command {
 public:
  std::string name() const override { return "hashes"; }
  std::string summary() const override {
    return "Measure each hash: CPU time, false positives next to theory, and evenness";
  }
  std::string examples() const override {
    return "encore-filter hashes\n"
           "encore-filter hashes --keys 1000 --bits 10000 --hashes 3 --no-timing";
  }
  void declare(Arguments& a) override {
    a.number("--keys", trial_.keys, "keys in each filter; as many others are tested",
             {.min = 1, .max = 10'000'000});
    a.number("--bits", trial_.bits, "bits of a filter (m)", {.min = 1, .max = 1U << 30U});
    a.number("--hashes", hashes_, "hashes per key (k)", {.min = 1, .max = kHashesMax});
    a.number("--key-size", trial_.key_bytes, "bytes of a key", {.min = 8, .max = 1U << 20U});
    a.number("--filters", trial_.filters, "filters of each hash, each with other keys",
             {.min = 2, .max = 100'000});
    a.number("--seed", trial_.seed, "seed of the keys");
    a.number("--rounds", rounds_, "rounds of 2 ms, the median of which is the time",
             {.min = 1, .max = 10'000});
    a.text("--hash", hash_, "one hash, as in build, or all");
    a.flag("--no-timing", no_timing_, "leave out the times");
    a.flag("--json", json_, "print a JSON object");
  }
  Result<SearchOutcome> run(const Context& context) override {
    std::vector<HashFamily> families;
    if (hash_ == "all") {
      for (int i = 0; i <= static_cast<int>(kLastFamily); ++i) {
        families.push_back(static_cast<HashFamily>(i));
      }
    } else {
      const auto family = parse_hash_family(hash_);
      if (!family) {
        return fail(family.error().message + ", all");
      }
      families.push_back(*family);
    }
    trial_.hashes = static_cast<std::uint32_t>(hashes_);
    context.monitor.begin("", families.size() * trial_.filters);
    Json rows = Json::array();
    std::string refused;
    for (const HashFamily family : families) {
      trial_.family = family;
      auto row = measured(context.monitor);
      if (!row && families.size() == 1) {
        return std::unexpected(row.error());
      }
      if (!row) {
        refused += row.error().message + "\n";
        row = Json{{"hash", to_string(family)}};
      }
      rows.push_back(std::move(*row));
    }
    if (json_) {
      context.out << Json({{"rows", rows}}).dump(2) << "\n";
    } else {
      print(rows, context.out);
      context.out << refused;
    }
    return SearchOutcome::kSomething;
  }

 private:
  Result<Json> measured(Monitor& monitor) const {
    const auto quality = measure_quality(trial_, monitor);
    if (!quality) {
      return std::unexpected(quality.error());
    }
    Json row = {{"hash", to_string(trial_.family)}};
    if (!no_timing_) {
      const auto nanoseconds = measure_time(trial_, rounds_);
      if (!nanoseconds) {
        return std::unexpected(nanoseconds.error());
      }
      row["ns_per_key"] = *nanoseconds;
      row["bytes_per_second"] = 1e9 * static_cast<double>(trial_.key_bytes) / *nanoseconds;
    }
    const bool fields = field_width(trial_.family, trial_.bits) != 0;
    row["fpr_measured"] = quality->fpr;
    row["fpr_theory"] = quality->theory;
    row["sigmas"] = quality->sigmas;
    row["fpr_fields"] = fields ? Json(quality->own_theory) : Json();
    row["sigmas_fields"] = fields ? Json(quality->own_sigmas) : Json();
    row["sigmas_even"] = quality->evenness;
    return row;
  }

  static std::string shown(const Json& row, const char* key, const char* format, double unit = 1) {
    const auto at = row.find(key);
    if (at == row.end() || at->is_null()) {
      return "-";
    }
    std::array<char, 32> text{};
    std::snprintf(text.data(), text.size(), format, at->get<double>() / unit);
    return text.data();
  }

  void print(const Json& rows, std::ostream& out) const {
    std::array<char, 200> line{};
    const auto put = [&](const std::array<std::string, 9>& cells) {
      std::snprintf(line.data(), line.size(), "%-16s", cells[0].c_str());
      out << line.data();
      if (!no_timing_) {
        std::snprintf(line.data(), line.size(), "%8s%9s", cells[1].c_str(), cells[2].c_str());
        out << line.data();
      }
      std::snprintf(line.data(), line.size(), "%11s%11s%8s%11s%8s%9s\n", cells[3].c_str(),
                    cells[4].c_str(), cells[5].c_str(), cells[6].c_str(), cells[7].c_str(),
                    cells[8].c_str());
      out << line.data();
    };
    put({"hash", "ns/key", "MB/s", "measured", "theory", "sigmas", "by fields", "sigmas",
         "uneven"});
    for (const Json& row : rows) {
      put({row["hash"].get<std::string>(), shown(row, "ns_per_key", "%.1f"),
           shown(row, "bytes_per_second", "%.0f", 1e6), shown(row, "fpr_measured", "%.6f"),
           shown(row, "fpr_theory", "%.6f"), shown(row, "sigmas", "%.1f"),
           shown(row, "fpr_fields", "%.6f"), shown(row, "sigmas_fields", "%.1f"),
           shown(row, "sigmas_even", "%.1f")});
    }
  }

  HashTrial trial_{.keys = 10'000, .bits = 100'000, .key_bytes = 32, .filters = 20, .seed = 1};
  std::uint64_t hashes_ = 4;
  std::uint64_t rounds_ = 9;
  std::string hash_ = "all";
  bool no_timing_ = false;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> make_hashes_command() { return std::make_unique<HashesCommand>(); }

}  // namespace encore::filter
