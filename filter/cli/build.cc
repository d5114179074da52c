// encore-filter build: a filter of all keys.
#include "filter/cli/advice.h"
#include "filter/cli/command.h"
#include "filter/cli/filter_file.h"
#include "filter/cli/key_options.h"
#include "filter/cli/shape_options.h"
#include "filter/scalable_theory.h"
#include "filter/theory.h"

namespace encore::filter {
namespace {

constexpr RealRange kFprs{.min = 0, .max = 1, .without_min = true, .without_max = true};

// Keys in the first slice of a filter of unknown size: about 7 KiB.
constexpr std::uint64_t kFirstSlice = 4096;

class BuildCommand final : public Command {
 public:
  std::string name() const override { return "build"; }
  std::string summary() const override { return "Build a filter from keys, one per line"; }
  std::string examples() const override {
    return "seq 1000 | encore-filter build -o thousand.enc\n"
           "seq 1000 | encore-filter build --capacity 1000 --fpr 0.01 -o thousand.enc\n"
           "seq 1000 | encore-filter build --bits 9600 --hashes 7 -o thousand.enc\n"
           "printf '%s\\n' jcgregorio barney | encore-filter build --hash sha1-fields20 -o "
           "names.enc";
  }
  void declare(Arguments& a) override {
    a.text("--kind", kind_,
           "plain, scalable, growable, counting (default: scalable, for any number of keys; plain "
           "with a size or the hash of a published form). Only counting supports remove; removing "
           "a key that was never added loses others");
    shape_.declare(a);
    a.real("--fpr", fpr_, "false-positive rate at the capacity; for a scalable filter at any size",
           kFprs);
    a.real("--growth", growth_, "scalable: growth factor of slice capacities",
           {.min = 1, .max = kGrowthMax});
    a.real("--tightening", tightening_, "scalable: tightening factor of slice rates", kFprs);
    a.text("--memory-max", memory_max_, "largest memory of the filter");
    a.output("-o", output_, "output file, - for standard output");
    keys_.declare(a);
  }
  Result<SearchOutcome> run(const Context& context) override {
    if (output_.empty()) {
      return fail("no output file, accepted: -o FILE, or -o -");
    }
    const auto options = filter_options(context.arguments);
    if (!options) {
      return std::unexpected(options.error());
    }
    auto filter = AnyFilter::create(*options);
    if (!filter) {
      return std::unexpected(filter.error());
    }
    FilterFile file{std::move(*filter), Form::kEncore};
    const auto read = add_keys(file.filter, keys_, context, options->memory_bytes_max);
    if (!read) {
      return std::unexpected(read.error());
    }
    if (auto saved = save_filter(file, output_, context.out); !saved) {
      return std::unexpected(saved.error());
    }
    const AdviceSource source{.capacity_given = context.arguments.given("--capacity"),
                              .keys_read = *read};
    give_advice(advice_for(file.filter.info(), source), context);
    return SearchOutcome::kSomething;
  }

 private:
  Result<AnyFilterOptions> filter_options(const Arguments& arguments) const {
    AnyFilterOptions options{.kind = FilterKind::kPlain,
                             .parameters = {},
                             .fpr = fpr_,
                             .growth = growth_,
                             .tightening = tightening_};
    const auto parameters = shape_.parameters(arguments);
    if (!parameters) {
      return std::unexpected(parameters.error());
    }
    options.parameters = *parameters;
    const auto memory = parse_size("--memory-max", memory_max_, {.min = 1});
    if (!memory) {
      return std::unexpected(memory.error());
    }
    options.memory_bytes_max = *memory;
    if (kind_.empty()) {
      const bool sized = parameters->bits != 0 || parameters->capacity != 0;
      options.kind =
          sized || lists_indices(parameters->hash) ? FilterKind::kPlain : FilterKind::kScalable;
    } else {
      const auto kind = parse_kind(kind_);
      if (!kind) {
        return fail("--kind: " + kind.error().message);
      }
      options.kind = *kind;
    }
    if (auto fine = check_kind(options, arguments); !fine) {
      return std::unexpected(fine.error());
    }
    const bool slices =
        options.kind == FilterKind::kScalable || options.kind == FilterKind::kGrowable;
    if (options.parameters.bits != 0 && arguments.given("--fpr")) {
      return fail("--bits with --fpr, accepted: --bits and --hashes, or --capacity and --fpr");
    }
    if (slices && options.parameters.capacity == 0) {
      options.parameters.capacity = kFirstSlice;
    }
    // With few false positives the default layout takes more than twice what a classic one does.
    // Why the default changes then: docs/decisions/0343.
    if (!arguments.given("--layout") && !arguments.given("--hashes") &&
        options.parameters.bits == 0 && is_costly(options)) {
      options.parameters.layout = Layout::kClassic;
      options.parameters.hashes = 0;
    }
    return options;
  }

  // True for a split filter that takes twice the bits of a classic one, for many keys.
  static bool is_costly(const AnyFilterOptions& options) {
    constexpr double kKeys = 1e6;
    constexpr double kTimes = 2;
    constexpr double kLaterSlices = 0.1;  // the rate of the twelfth, which has most of the keys
    const bool scalable = options.kind == FilterKind::kScalable;
    const double rate =
        scalable ? options.fpr * (1 - options.tightening) * kLaterSlices : options.fpr;
    const SizingGoal goal{kKeys, rate};
    return options.parameters.layout == Layout::kSplit &&
           static_cast<double>(size_for(Layout::kSplit, goal).bits) >
               kTimes * static_cast<double>(size_classic(goal).bits);
  }

  // Checks for options that the kind would ignore, and for those that it needs.
  static Result<void> check_kind(const AnyFilterOptions& options, const Arguments& arguments) {
    const std::string kind(to_string(options.kind));
    for (const char* name : {"--growth", "--tightening"}) {
      if (arguments.given(name) && options.kind != FilterKind::kScalable) {
        return fail(std::string(name) + " for a " + kind + " filter, accepted: --kind scalable");
      }
    }
    const bool one = options.kind == FilterKind::kPlain || options.kind == FilterKind::kCounting;
    if (one && options.parameters.bits == 0 && options.parameters.capacity == 0) {
      return fail("a " + kind +
                  " filter without a size, accepted: --capacity and --fpr, or --bits and --hashes");
    }
    return {};
  }

  std::string kind_;
  ShapeOptions shape_;
  double fpr_ = 0.01;
  double growth_ = AnyFilterOptions{}.growth;
  double tightening_ = AnyFilterOptions{}.tightening;
  std::string memory_max_ = "1GiB";
  std::string output_;
  KeyOptions keys_;
};

}  // namespace

std::unique_ptr<Command> make_build_command() { return std::make_unique<BuildCommand>(); }

}  // namespace encore::filter
