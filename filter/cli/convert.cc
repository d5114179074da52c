// encore-filter convert: the same filter in another form.
#include "filter/cli/command.h"
#include "filter/cli/filter_file.h"
#include "filter/cli/shape_options.h"
#include "filter/theory.h"

namespace encore::filter {
namespace {

class ConvertCommand final : public Command {
 public:
  std::string name() const override { return "convert"; }
  std::string summary() const override { return "Convert a filter to another form"; }
  std::string examples() const override {
    return "encore-filter convert names.enc --to bloomnames -o names.txt\n"
           "encore-filter convert thousand.enc --to raw -o thousand.bits\n"
           "encore-filter convert thousand.bits --from raw --bits 9600 --hashes 7 --to encore -o "
           "again.enc";
  }
  void declare(Arguments& a) override {
    a.file("FILTER", file_, "the filter, - for standard input");
    a.text("--to", to_,
           "encore, bloomnames, bloomnames-json, bloomnames-decimal, squid-digest, raw");
    a.text("--from", from_,
           "form of the input (default: recognised); raw must be named, bloomnames-decimal cannot "
           "be read");
    // Not as an output: the filter is read before it is written, so that it may be the same file.
    a.text("-o", output_, "output file, - for standard output");
    a.flag("--plain", plain_, "write the plain filter of a counting one's bits");
    shape_.declare(a);
  }
  Result<SearchOutcome> run(const Context& context) override {
    if (output_.empty() || to_.empty()) {
      return fail("accepted: --to FORM, and -o FILE or -o -");
    }
    const auto to = parse_form(to_);
    if (!to) {
      return fail("--to: " + to.error().message);
    }
    const auto as = read_as(context.arguments);
    if (!as) {
      return std::unexpected(as.error());
    }
    auto loaded = load_filter(file_, context.in, *as);
    if (!loaded) {
      return std::unexpected(loaded.error());
    }
    if (plain_) {
      auto plain = loaded->filter.to_plain();
      if (!plain) {
        return fail(file_ + ": " + plain.error().message);
      }
      loaded->filter = AnyFilter(std::move(*plain));
    }
    loaded->form = *to;
    if (auto saved = save_filter(*loaded, output_, context.out); !saved) {
      return fail(file_ + ": " + saved.error().message);
    }
    return SearchOutcome::kSomething;
  }

 private:
  Result<InputFormat> read_as(const Arguments& arguments) const {
    InputFormat as;
    if (!from_.empty()) {
      const auto form = parse_form(from_);
      if (!form || *form == Form::kBloomnamesDecimal) {
        return fail("--from: " +
                    (form ? "the form bloomnames-decimal cannot be read" : form.error().message) +
                    (form ? "" : "; all but bloomnames-decimal can be read"));
      }
      as.form = *form;
    }
    if (as.form != Form::kRaw) {
      if (const char* given = shape_.given(arguments); given != nullptr) {
        return fail(std::string(given) +
                    ", accepted only with --from raw, because other forms contain it");
      }
      return as;
    }
    auto parameters = shape_.parameters(arguments);
    if (!parameters) {
      return std::unexpected(parameters.error());
    }
    if (parameters->bits == 0 || parameters->hashes == 0) {
      return fail("--from raw needs --bits and --hashes, because raw bits do not contain them");
    }
    if (parameters->capacity == 0) {
      parameters->capacity = std::max<std::uint64_t>(1, half_full_capacity(parameters->shape()));
    }
    as.of_raw = *parameters;
    return as;
  }

  std::string file_;
  std::string to_;
  std::string from_;
  std::string output_;
  bool plain_ = false;
  ShapeOptions shape_;
};

}  // namespace

std::unique_ptr<Command> make_convert_command() { return std::make_unique<ConvertCommand>(); }

}  // namespace encore::filter
