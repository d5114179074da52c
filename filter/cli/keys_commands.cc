// encore-filter add, remove, test: keys against a filter that is there.
#include <algorithm>
#include <array>
#include <ostream>

#include "filter/cli/advice.h"
#include "filter/cli/command.h"
#include "filter/cli/filter_file.h"
#include "filter/cli/key_options.h"
#include "filter/cli/key_reader.h"
#include "filter/mapped_filter.h"

namespace encore::filter {
namespace {

Result<MappedFilter> map_filter(const std::string& path, MappedFilter::Access access) {
  auto mapped = MappedFilter::open(path, access);
  return mapped ? std::move(mapped)
                : Result<MappedFilter>(
                      fail(mapped.error().message + " (--map needs a saved plain filter)"));
}

constexpr std::size_t kOutputBytes = std::size_t{64} << 10U;

class AddCommand final : public Command {
 public:
  std::string name() const override { return "add"; }
  std::string summary() const override { return "Add keys to a filter"; }
  std::string examples() const override {
    return "encore-filter convert thousand.enc --to encore -o more.enc\n"
           "seq 1001 1100 | encore-filter add more.enc";
  }
  void declare(Arguments& a) override {
    a.file("FILTER", file_, "the filter, replaced after the last key");
    keys_.declare(a);
    a.flag("--map", map_,
           "write into the mapped file (saved plain filters only), for filters larger than memory; "
           "an interrupted run leaves an invalid file");
  }
  Result<SearchOutcome> run(const Context& context) override {
    if (map_) {
      return run_mapped(context);
    }
    auto loaded = load_filter(file_, context.in);
    if (!loaded) {
      return std::unexpected(loaded.error());
    }
    const auto added = add_keys(loaded->filter, keys_, context);
    if (!added) {
      return std::unexpected(added.error());
    }
    if (auto saved = save_filter(*loaded, file_, context.out); !saved) {
      return std::unexpected(saved.error());
    }
    if (auto advice = overfull_advice(loaded->filter.info(), *added)) {
      give_advice({std::move(*advice)}, context);
    }
    return SearchOutcome::kSomething;
  }

 private:
  Result<SearchOutcome> run_mapped(const Context& context) const {
    auto mapped = map_filter(file_, MappedFilter::Access::kWrite);
    if (!mapped) {
      return std::unexpected(mapped.error());
    }
    auto done = for_each_key(keys_, context, [&](std::string_view key) { mapped->add(key); });
    if (auto synced = mapped->sync(); !synced && done) {
      done = synced;
    }
    if (!done) {
      return std::unexpected(done.error());
    }
    return SearchOutcome::kSomething;
  }

  std::string file_;
  KeyOptions keys_;
  bool map_ = false;
};

class RemoveCommand final : public Command {
 public:
  std::string name() const override { return "remove"; }
  std::string summary() const override {
    return "Remove keys from a counting filter. Removing a key that was never added, but tests "
           "positive, loses other keys";
  }
  std::string examples() const override {
    return "seq 100 | encore-filter build --kind counting --capacity 1000 --fpr 0.01 -o "
           "hundred.enc\n"
           "seq 50 | encore-filter remove hundred.enc";
  }
  void declare(Arguments& a) override {
    a.file("FILTER", file_, "the filter, replaced after the last key");
    keys_.declare(a);
  }
  Result<SearchOutcome> run(const Context& context) override {
    auto loaded = load_filter(file_, context.in);
    if (!loaded) {
      return std::unexpected(loaded.error());
    }
    std::uint64_t missing = 0;
    KeyReader reader(keys_.source(context.in), context.monitor);
    for (auto keys = reader.next(); !keys || !keys->empty(); keys = reader.next()) {
      if (!keys) {
        return std::unexpected(keys.error());
      }
      for (const std::string_view key : *keys) {
        const auto removed = loaded->filter.remove(key);
        if (!removed) {
          return fail(file_ + ": " + removed.error().message);
        }
        missing += *removed ? 0U : 1U;
      }
    }
    if (auto saved = save_filter(*loaded, file_, context.out); !saved) {
      return std::unexpected(saved.error());
    }
    if (missing != 0) {
      context.err << "encore-filter remove: " << missing << " of the keys were not in " << file_
                  << "\n";
    }
    return missing == 0 ? SearchOutcome::kSomething : SearchOutcome::kNothing;
  }

 private:
  std::string file_;
  KeyOptions keys_;
};

class TestCommand final : public Command {
 public:
  std::string name() const override { return "test"; }
  std::string summary() const override { return "Print the keys that are in a filter"; }
  std::string examples() const override {
    return "seq 995 1005 | encore-filter test thousand.enc\n"
           "seq 995 1005 | encore-filter test -v thousand.enc\n"
           "seq 995 1005 | encore-filter test -c thousand.enc";
  }
  void declare(Arguments& a) override {
    a.file("FILTER", file_, "the filter");
    keys_.declare(a);
    a.flag("-v,--invert-match", others_, "print the keys that are not in the filter");
    a.flag("-c,--count", count_, "print the number of keys instead of the keys");
    a.flag("-q,--quiet", quiet_, "print nothing, and exit at the first match");
    a.flag("--map", map_,
           "map the file instead of reading it (saved plain filters only), without its checksum");
  }
  Result<SearchOutcome> run(const Context& context) override {
    if (file_ == "-" && keys_.from_standard_input()) {
      return fail("filter and keys both come from standard input, accepted: one of them");
    }
    if (map_) {
      const auto mapped = map_filter(file_, MappedFilter::Access::kRead);
      return mapped ? search(mapped->filter(), context)
                    : Result<SearchOutcome>(std::unexpected(mapped.error()));
    }
    const auto loaded = load_filter(file_, context.in);
    return loaded ? search(loaded->filter, context)
                  : Result<SearchOutcome>(std::unexpected(loaded.error()));
  }

 private:
  template <typename Filter>
  Result<SearchOutcome> search(const Filter& filter, const Context& context) {
    KeyReader reader(keys_.source(context.in), context.monitor);
    std::uint64_t found = 0;
    for (auto keys = reader.next(); !keys || !keys->empty(); keys = reader.next()) {
      if (!keys) {
        return std::unexpected(keys.error());
      }
      found += print(filter, *keys, context.out);
      if ((quiet_ && found != 0) || !context.out) {
        break;
      }
    }
    if (count_ && !quiet_) {
      context.out << found << "\n";
    }
    context.out.write(output_.data(), static_cast<std::streamsize>(output_.size()));
    return found != 0 ? SearchOutcome::kSomething : SearchOutcome::kNothing;
  }
  // How many of the keys there are to be found.
  template <typename Filter>
  std::uint64_t print(const Filter& filter, std::span<const std::string_view> keys,
                      std::ostream& out) {
    std::array<bool, KeyReader::kKeysAtOnce> there;
    filter.test(keys, std::span(there).first(keys.size()));
    std::uint64_t found = 0;
    for (std::size_t i = 0; i < keys.size(); ++i) {
      if (there[i] == others_) {
        continue;
      }
      ++found;
      if (!count_ && !quiet_) {
        output_.append(keys[i]);
        output_.push_back(keys_.end_of_key());
      }
    }
    if (output_.size() >= kOutputBytes) {
      out.write(output_.data(), static_cast<std::streamsize>(output_.size()));
      output_.clear();
    }
    return found;
  }

  std::string file_;
  KeyOptions keys_;
  bool others_ = false;
  bool count_ = false;
  bool quiet_ = false;
  bool map_ = false;
  std::string output_;
};

}  // namespace

std::unique_ptr<Command> make_add_command() { return std::make_unique<AddCommand>(); }
std::unique_ptr<Command> make_remove_command() { return std::make_unique<RemoveCommand>(); }
std::unique_ptr<Command> make_test_command() { return std::make_unique<TestCommand>(); }

}  // namespace encore::filter
