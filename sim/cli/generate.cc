// encore-sim generate: synthetic traces.
#include <array>
#include <charconv>
#include <fstream>

#include "base/cli/lists.h"
#include "sim/cli/commands.h"
#include "sim/trace/trace_writer.h"
#include "sim/workload/request_generator.h"

namespace encore::sim {
namespace {

Result<Distribution> read_empirical(const std::string& path) {
  std::ifstream file(path);
  Distribution distribution{.kind = Distribution::Kind::kEmpirical, .values = {}};
  double value = 0;
  while (file >> value) {
    if (!(value >= 0 && value <= 1e15)) {
      return fail(path + ": " + std::to_string(value) + " is not a size");
    }
    distribution.values.push_back(value);
  }
  if (!file.eof() || distribution.values.empty()) {
    return fail("cannot read " + path + " as a list of numbers");
  }
  return distribution;
}

Result<std::vector<MixturePart>> parse_mixture(const std::string& text) {
  std::vector<MixturePart> parts;
  const auto words = parse_words("--mix", text);
  if (!words) {
    return std::unexpected(words.error());
  }
  for (const std::string& word : *words) {
    const std::size_t equals = word.find('=');
    const auto pattern = parse_pattern(word.substr(0, equals));
    if (!pattern) {
      return std::unexpected(pattern.error());
    }
    MixturePart part{.pattern = *pattern};
    const std::string share = equals == std::string::npos ? "" : word.substr(equals + 1);
    const auto [end, error] =
        std::from_chars(share.data(), share.data() + share.size(), part.share);
    if (error != std::errc{} || end != share.data() + share.size() || !(part.share > 0) ||
        !(part.share <= 1e6)) {
      return fail("--mix \"" + word + "\", accepted: parts such as zipf=0.7,scan=0.3");
    }
    parts.push_back(part);
  }
  return parts;
}

constexpr RealRange kShares{.min = 0, .max = 1};

class GenerateCommand final : public Command {
 public:
  GenerateCommand(Pattern pattern, std::string name, std::string what)
      : name_(std::move(name)), what_(std::move(what)) {
    options_.pattern = pattern;
  }
  std::string name() const override { return "generate " + name_; }
  std::string summary() const override { return "Write a synthetic trace: " + what_; }
  std::string example() const override {
    const bool mixture = options_.pattern == Pattern::kMixture;
    return "encore-sim generate " + name_ + (mixture ? " --mix zipf=0.7,scan=0.3" : "") +
           " -o trace.csv.zst --requests 1000000 --size lognormal:16KiB:1.5 --seed 1";
  }
  void declare(Arguments& a) override {
    GeneratorOptions& o = options_;
    a.output("-o,--output", output_,
             "output file: .csv or binary, .zst compresses, - is standard output");
    a.flag("--csv", csv_, "write csv whatever the file name");
    a.number("--requests", o.requests, "how many", {.min = 1});
    a.number("--objects", o.objects,
             "number of objects (0: a tenth of the requests; akamai: four tenths)",
             {.max = (std::uint64_t{1} << 56U) - 1});
    a.number("--seed", o.seed, "seed; one seed gives one trace");
    a.real("--alpha", o.alpha, "Zipf's exponent", {.min = 0, .max = 100, .without_max = true});
    if (o.pattern == Pattern::kAkamai) {
      a.real("--one-hit-share", o.one_hit_share, "exact share of one-hit objects", kShares);
    }
    if (o.pattern == Pattern::kShift || o.pattern == Pattern::kWaves ||
        o.pattern == Pattern::kMixture) {
      a.number("--shift-every", o.shift_every, "requests between two shifts", {.min = 1});
    }
    if (o.pattern == Pattern::kShift || o.pattern == Pattern::kMixture) {
      a.real("--shift-share", o.shift_share, "share of the ranks that a shift moves", kShares);
    }
    if (o.pattern == Pattern::kMixture) {
      a.text("--mix", mix_, "kinds with their shares: zipf=0.7,scan=0.2,loop=0.1");
    }
    a.text("--size", size_,
           "object sizes: 16KiB, lognormal:MEDIAN:SIGMA[:MAX], pareto:MIN:ALPHA[:MAX], or @FILE");
    a.text("--ttl", ttl_, "TTLs in seconds, in the forms of --size (0: none)");
    a.real("--rate", o.requests_per_second, "requests per second, for the times",
           {.min = 0, .max = 1e9, .without_min = true});
    if (o.pattern == Pattern::kZipf) {
      a.real("--sample", o.sample,
             "write only the requests for this share of the objects, and draw no others: a stream "
             "too long to write whole (1: all)",
             {.min = 0, .max = 1, .without_min = true});
      a.number("--sample-seed", o.sample_seed, "seed of the sample");
    }
    a.flag("--even", even_, "make all times between requests equal (default: exponential)");
  }

  Result<Outcome> run(const Context& context) override {
    GeneratorOptions& o = options_;
    if (output_.empty()) {
      return fail("no output: add -o FILE");
    }
    if (output_ == "-" && context.json_to_out) {
      return fail("trace and report both go to standard output: use --json=FILE");
    }
    const auto size = read_distribution("--size", size_);
    const auto ttl = read_distribution("--ttl", ttl_);
    if (!size || !ttl) {
      return std::unexpected(size ? ttl.error() : size.error());
    }
    o.size = *size;
    o.ttl = *ttl;
    o.poisson = !even_;
    if (o.pattern == Pattern::kMixture) {
      const auto parts = parse_mixture(mix_);
      if (!parts) {
        return std::unexpected(parts.error());
      }
      o.mixture = *parts;
    }
    auto generator = make_generator(o);
    if (!generator) {
      return std::unexpected(generator.error());
    }
    return write(**generator, context.monitor);
  }

 private:
  static Result<Distribution> read_distribution(const char* option, const std::string& text) {
    auto read = text.starts_with('@') ? read_empirical(text.substr(1)) : parse_distribution(text);
    return read ? read : fail(std::string(option) + ": " + read.error().message);
  }

  Result<Outcome> write(RequestGenerator& generator, Monitor& monitor) {
    auto writer = TraceWriter::open(
        output_, {.format = csv_ ? WrittenFormat::kCsv : written_format_of(output_)});
    if (!writer) {
      return std::unexpected(writer.error());
    }
    monitor.begin("", options_.requests);
    std::uint64_t made = 0;
    std::uint64_t bytes = 0;
    bool is_cut = false;
    GeneratedRequest request;
    constexpr std::uint64_t kReportEvery = 4096;
    while (generator.next(request)) {
      auto written = (*writer)->write({.id = request.id,
                                       .time_ns = request.time_ns,
                                       .size_bytes = request.size_bytes,
                                       .ttl_seconds = request.ttl_seconds});
      if (!written) {
        return std::unexpected(written.error());
      }
      bytes += request.size_bytes;
      if (++made % kReportEvery == 0) {
        monitor.done = request.number;
        is_cut = monitor.stop && request.number < options_.requests;
        if (is_cut) {
          break;
        }
      }
    }
    if (auto finished = (*writer)->finish(); !finished) {
      return std::unexpected(finished.error());
    }
    // Only now: what waits for a reader has not noticed.
    if (is_cut) {
      monitor.stopped();
    }
    return report(made, bytes);
  }

  Outcome report(std::uint64_t made, std::uint64_t bytes) const {
    const GeneratorOptions& o = options_;
    Outcome outcome{.report = {}, .out_is_taken = output_ == "-"};
    outcome.report.seed = o.seed;
    outcome.report.parameters = {
        {"pattern", name_},     {"output", output_}, {"requests", o.requests},
        {"objects", o.objects}, {"alpha", o.alpha},  {"one_hit_share", o.one_hit_share},
        {"size", size_},        {"ttl", ttl_},       {"rate", o.requests_per_second}};
    if (o.sample < 1) {
      outcome.report.parameters.insert(outcome.report.parameters.end(),
                                       {Field{"sample", o.sample}, {"sample_seed", o.sample_seed}});
      outcome.report.notes.push_back(sample_note());
    }
    Table table{.key = "rows", .title = "", .columns = {}, .rows = {}};
    if (output_ != "-") {
      table.columns = {{"requests", "requests", Style::kCount},
                       {"bytes_requested", "bytes requested", Style::kBytes}};
    }
    table.rows.push_back({{"requests", made}, {"bytes_requested", bytes}});
    outcome.report.tables.push_back(std::move(table));
    return outcome;
  }

  std::string sample_note() const {
    std::array<char, 400> rate{};
    const auto end = std::to_chars(rate.data(), rate.data() + rate.size(), options_.sample,
                                   std::chars_format::fixed)
                         .ptr;
    const std::string text(rate.data(), end);
    return "The requests for a sample of " + text +
           " of the objects. encore-sim replay with --trace-sample " + text + " --trace-requests " +
           std::to_string(options_.requests) + " estimates the whole.";
  }

  GeneratorOptions options_;
  std::string name_;
  std::string what_;
  std::string output_;
  bool csv_ = false;
  bool even_ = false;
  std::string mix_;
  std::string size_ = "1024";
  std::string ttl_ = "0";
};

}  // namespace

std::vector<std::unique_ptr<Command>> make_generate_commands() {
  std::vector<std::unique_ptr<Command>> all;
#define ENCORE_MAKE(id, name, what) \
  all.push_back(std::make_unique<GenerateCommand>(Pattern::id, name, what));
  ENCORE_PATTERNS(ENCORE_MAKE)
#undef ENCORE_MAKE
  return all;
}

}  // namespace encore::sim
