// encore-filter union, intersect: filters of one make become one.
#include "filter/cli/command.h"
#include "filter/cli/filter_file.h"

namespace encore::filter {
namespace {

struct Combination {
  std::string name;
  std::string summary;
  std::string example;
  Result<void> (AnyFilter::*combine)(const AnyFilter& other);
};

class CombineCommand final : public Command {
 public:
  explicit CombineCommand(Combination combination) : combination_(std::move(combination)) {}
  std::string name() const override { return combination_.name; }
  std::string summary() const override { return combination_.summary; }
  std::string examples() const override { return combination_.example; }
  void declare(Arguments& a) override {
    a.files("FILTERS", files_, "filters of one kind, shape, hash and seed");
    // Not as an output: all are read before it is written, so that it may be one of them.
    a.text("-o", output_, "output file, in the form of the first filter; - for standard output");
  }
  Result<SearchOutcome> run(const Context& context) override {
    if (output_.empty() || files_.size() < 2) {
      return fail("accepted: two filters or more, and -o FILE or -o -");
    }
    auto first = load_filter(files_.front(), context.in);
    if (!first) {
      return std::unexpected(first.error());
    }
    context.monitor.begin("", files_.size());
    for (std::size_t i = 1; i < files_.size(); ++i) {
      const auto next = load_filter(files_[i], context.in);
      if (!next) {
        return std::unexpected(next.error());
      }
      if (auto fine = (first->filter.*combination_.combine)(next->filter); !fine) {
        return fail(files_.front() + " and " + files_[i] + ": " + fine.error().message);
      }
      context.monitor.done = i;
    }
    if (auto saved = save_filter(*first, output_, context.out); !saved) {
      return std::unexpected(saved.error());
    }
    return SearchOutcome::kSomething;
  }

 private:
  Combination combination_;
  std::vector<std::string> files_;
  std::string output_;
};

}  // namespace

std::vector<std::unique_ptr<Command>> make_combine_commands() {
  const std::string two =
      "seq 1000 | encore-filter build --capacity 2000 --fpr 0.01 -o a.enc\n"
      "seq 501 1500 | encore-filter build --capacity 2000 --fpr 0.01 -o b.enc\n";
  std::vector<std::unique_ptr<Command>> both;
  both.push_back(std::make_unique<CombineCommand>(
      Combination{.name = "union",
                  .summary = "Unite several filters",
                  .example = two + "encore-filter union a.enc b.enc -o c.enc",
                  .combine = &AnyFilter::unite}));
  both.push_back(std::make_unique<CombineCommand>(
      Combination{.name = "intersect",
                  .summary = "Intersect several filters",
                  .example = two + "encore-filter intersect a.enc b.enc -o d.enc",
                  .combine = &AnyFilter::intersect}));
  return both;
}

}  // namespace encore::filter
