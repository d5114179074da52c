// encore-sim theory codes: a Bloom filter against superimposed codes and bit vectors.
#include <cmath>

#include "filter/mean.h"
#include "filter/superimposed_theory.h"
#include "filter/theory.h"
#include "sim/cli/blocks_theory.h"
#include "sim/cli/commands.h"
#include "sim/cli/parallel.h"
#include "sim/replay/code_experiment.h"

namespace encore::sim {
namespace {

constexpr NumberRange kCodeKeys{.min = 1, .max = 1'000'000'000};

class CodesCommand final : public Command {
 public:
  std::string name() const override { return "theory codes"; }
  std::string summary() const override {
    return "Compare a Bloom filter with superimposed codes and bit vectors, exactly and measured";
  }
  std::string example() const override {
    return "encore-sim theory codes --keys 1000 --bits 10000 --hashes 4,7";
  }
  void declare(Arguments& a) override {
    a.number("--keys", keys_, "number of distinct keys", kCodeKeys);
    a.number("--bits", bits_, "bits of filter, code and vector",
             {.min = 1, .max = filter::kBitsMax});
    a.text("--hashes", hashes_, "positions per key: 7, 1..8 or 1,2,4");
    a.number("--universe", universe_, "keys that can occur, one bit each in the bitmap",
             {.min = 1, .max = std::uint64_t{1} << 60U});
    a.number("--filters", filters_, "measured filters of each kind, from --seed on; 0: none",
             {.min = 0, .max = 100'000});
    a.number("--tests", tests_, "absent keys that each filter tests", kCodeKeys);
    a.number("--seed", seed_, "seed of the first filter");
  }
  Result<Outcome> run(const Context& context) override {
    const auto weights =
        parse_numbers("--hashes", hashes_, {.min = 1, .max = filter::kCodeWeightMax});
    if (!weights) {
      return std::unexpected(weights.error());
    }
    for (const std::uint64_t weight : *weights) {
      if (weight > bits_) {
        return fail("--hashes " + std::to_string(weight) + " with " + std::to_string(bits_) +
                    " bits, accepted: up to that many different positions");
      }
    }
    Outcome outcome;
    outcome.report.seed = seed_;
    outcome.report.parameters = {{"keys", keys_},       {"bits", bits_},
                                 {"hashes", hashes_},   {"universe", universe_},
                                 {"filters", filters_}, {"tests", tests_}};
    Table table{.key = "rows",
                .title = "",
                .columns = {{"structure", "structure", Style::kText},
                            {"hashes", "k", Style::kCount},
                            {"bytes", "memory", Style::kBytes},
                            {"set_bits", "bits set", Style::kReal},
                            {"set_bits_measured", "measured", Style::kReal},
                            {"z_set_bits", "z", Style::kReal},
                            {"fpr_theory", "FPR", Style::kRate},
                            {"fpr_measured", "measured", Style::kRate},
                            {"z_theory", "z", Style::kReal}},
                .rows = {}};
    table.rows = simple_rows();
    context.monitor.begin("", 2 * weights->size() * filters_ * (keys_ + tests_));
    for (const std::uint64_t weight : *weights) {
      for (const CodeKind kind : {CodeKind::kSuperimposed, CodeKind::kBloom}) {
        if (context.monitor.stopped()) {
          break;
        }
        auto row = measured_row(kind, static_cast<std::uint32_t>(weight), context.monitor);
        if (!row) {
          return std::unexpected(row.error());
        }
        table.rows.push_back(std::move(*row));
      }
      append_vector(static_cast<std::uint32_t>(weight), table.rows);
    }
    outcome.report.tables.push_back(std::move(table));
    outcome.report.notes.push_back(
        "The code sets k different bits per key, the filter k that may coincide, the bit vector "
        "one; \"at this rate\" is as large as the rate of the filter above needs.");
    return outcome;
  }

 private:
  // Structures that theory alone describes.
  std::vector<Row> simple_rows() const {
    const auto keys = static_cast<double>(keys_);
    const filter::FilterShape one{filter::Layout::kClassic, bits_, 1};
    std::vector<Row> rows;
    rows.push_back({{"structure", std::string("bitmap of the universe")},
                    {"hashes", std::uint64_t{1}},
                    {"bytes", (universe_ + 7) / 8},
                    {"set_bits", std::fmin(keys, static_cast<double>(universe_))},
                    {"fpr_theory", 0.0}});
    rows.push_back({{"structure", std::string("bit vector, one hash")},
                    {"hashes", std::uint64_t{1}},
                    {"bytes", (bits_ + 7) / 8},
                    {"set_bits", filter::expected_set_bits(one, keys)},
                    {"fpr_theory", filter::fpr(one, keys)}});
    return rows;
  }

  // The bit vector with the rate of a filter with so many hashes.
  void append_vector(std::uint32_t weight, std::vector<Row>& rows) const {
    const auto keys = static_cast<double>(keys_);
    const double rate = exact_fpr(CodeKind::kBloom, weight);
    if (weight == 1 || rate <= 0 || rate >= 1) {
      return;
    }
    const double size = std::ceil(filter::bit_vector_size(keys, rate));
    rows.push_back({{"structure", std::string("bit vector at this rate")},
                    {"hashes", std::uint64_t{1}},
                    {"bytes", std::ceil(size / 8)},
                    {"set_bits", size * rate},
                    {"fpr_theory", rate}});
  }

  double exact_fpr(CodeKind kind, std::uint32_t weight) const {
    const filter::FilterShape shape{filter::Layout::kClassic, bits_, weight};
    return kind == CodeKind::kBloom ? filter::fpr_exact(shape, keys_)
                                          .value_or(filter::fpr(shape, static_cast<double>(keys_)))
                                    : filter::superimposed_fpr({bits_, weight}, keys_);
  }

  Result<Row> measured_row(CodeKind kind, std::uint32_t weight, Monitor& monitor) const {
    const auto keys = static_cast<double>(keys_);
    const filter::FilterShape shape{filter::Layout::kClassic, bits_, weight};
    const bool bloom = kind == CodeKind::kBloom;
    const double set_bits = bloom ? filter::expected_set_bits(shape, keys)
                                  : filter::superimposed_set_bits({bits_, weight}, keys);
    const double rate = exact_fpr(kind, weight);
    Row row = {{"structure", std::string(bloom ? "Bloom filter" : "superimposed code")},
               {"hashes", std::uint64_t{weight}},
               {"bytes", (bits_ + 7) / 8},
               {"set_bits", set_bits},
               {"fpr_theory", rate}};
    std::vector<Result<CodeCount>> counts(filters_);
    parallel_for(filters_, [&](std::size_t i) {
      if (!monitor.stopped()) {
        counts[i] = run_code({.kind = kind,
                              .bits = bits_,
                              .hashes = weight,
                              .keys = keys_,
                              .tests = tests_,
                              .seed = seed_ + i},
                             monitor);
      }
    });
    std::vector<double> rates;
    std::vector<double> bits;
    for (const auto& count : counts) {
      if (!count) {
        return std::unexpected(count.error());
      }
      rates.push_back(static_cast<double>(count->false_positives) / static_cast<double>(tests_));
      bits.push_back(static_cast<double>(count->set_bits));
    }
    // An interrupted sample is left out.
    if (!rates.empty() && !monitor.heard) {
      const filter::SampleMean measured_bits = filter::sample_mean(bits, set_bits);
      const filter::SampleMean measured_rate = filter::sample_mean(rates, rate);
      row.push_back({"set_bits_measured", measured_bits.mean});
      row.push_back({"z_set_bits", of(measured_bits.sigmas)});
      row.push_back({"fpr_measured", measured_rate.mean});
      row.push_back({"z_theory", of(measured_rate.sigmas)});
    }
    return row;
  }

  std::uint64_t keys_ = 1000;
  std::uint64_t bits_ = 10'000;
  std::string hashes_ = "1,4,7";
  std::uint64_t universe_ = std::uint64_t{1} << 32U;
  std::uint64_t filters_ = 100;
  std::uint64_t tests_ = 10'000;
  std::uint64_t seed_ = 1;
};

}  // namespace

std::unique_ptr<Command> make_theory_codes_command() { return std::make_unique<CodesCommand>(); }

}  // namespace encore::sim
