#include "base/cli/arguments.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <sstream>

namespace encore {

namespace {

// CLI11 would wrap negative numbers, and read 010 as eight.
template <typename Number, typename Range, typename Parse>
CLI::Option* add_number(CLI::App& app, const std::string& name, Number& value,
                        const std::string& help, const Range& range, Parse parse) {
  std::ostringstream shown;
  shown << value;
  return app
      .add_option_function<std::string>(
          name,
          [&value, name, range, parse](const std::string& text) {
            const auto number = parse(name, text, range);
            if (!number) {
              throw CLI::ValidationError(number.error().message);
            }
            value = *number;
          },
          help)
      ->default_str(shown.str());
}

}  // namespace

void Arguments::number(const std::string& name, std::uint64_t& value, const std::string& help,
                       const NumberRange& range) {
  add_number(app_, name, value, help, range, parse_number)->type_name("N");
}
void Arguments::real(const std::string& name, double& value, const std::string& help,
                     const RealRange& range) {
  add_number(app_, name, value, help, range, parse_real)->type_name("X");
}
void Arguments::text(const std::string& name, std::string& value, const std::string& help) {
  app_.add_option(name, value, help)->capture_default_str()->type_name("TEXT");
}
void Arguments::flag(const std::string& name, bool& value, const std::string& help) {
  app_.add_flag(name, value, help);
}
void Arguments::optional_text(const std::string& name, std::string& value, const std::string& alone,
                              const std::string& help) {
  app_.add_flag(name + "{" + alone + "}", value, help);
}
void Arguments::output(const std::string& name, std::string& value, const std::string& help) {
  text(name, value, help);
  outputs_.push_back({name, &value});
}
// --name alone is "-"; a file is --name=FILE.
void Arguments::optional_output(const std::string& name, std::string& value,
                                const std::string& help) {
  optional_text(name, value, "-", help);
  outputs_.push_back({name, &value});
}
void Arguments::files(const std::string& name, std::vector<std::string>& value,
                      const std::string& help) {
  app_.add_option(name, value, help)->required()->type_name("FILE");
  inputs_ = &value;
}
void Arguments::optional_files(const std::string& name, std::vector<std::string>& value,
                               const std::string& help) {
  app_.add_option(name, value, help)->type_name("FILE");
  inputs_ = &value;
}
void Arguments::file(const std::string& name, std::string& value, const std::string& help) {
  app_.add_option(name, value, help)->required()->type_name("FILE");
  input_.push_back(&value);
}
void Arguments::word(const std::string& name, std::string& value, const std::string& help) {
  app_.add_option(name, value, help)->required()->type_name("TEXT");
}
bool Arguments::given(const std::string& name) const {
  const CLI::Option* option = app_.get_option_no_throw(name);
  return option != nullptr && option->count() != 0;
}

namespace {

// Links and other ways to write the same path are seen through; devices and pipes are nothing to
// lose.
bool is_same_file(const std::string& a, const std::string& b) {
  namespace fs = std::filesystem;
  std::error_code error;
  if (fs::exists(a, error) && fs::exists(b, error)) {
    return fs::is_regular_file(a, error) && fs::equivalent(a, b, error);
  }
  return fs::weakly_canonical(a, error) == fs::weakly_canonical(b, error);
}

}  // namespace

std::vector<std::string> Arguments::inputs() const {
  std::vector<std::string> inputs = inputs_ != nullptr ? *inputs_ : std::vector<std::string>{};
  for (const std::string* path : input_) {
    inputs.push_back(*path);
  }
  return inputs;
}

Result<void> Arguments::check_outputs() const {
  const std::vector<std::string> read = inputs();
  for (std::size_t i = 0; i < outputs_.size(); ++i) {
    const auto& [name, path] = outputs_[i];
    if (path->empty() || *path == "-") {
      continue;
    }
    for (const std::string& input : read) {
      if (is_same_file(*path, input)) {
        return fail(name + " \"" + *path + "\" is read as well, accepted: another file");
      }
    }
    for (std::size_t other = 0; other < i; ++other) {
      if (!outputs_[other].path->empty() && is_same_file(*path, *outputs_[other].path)) {
        return fail(name + " \"" + *path + "\" is that of " + outputs_[other].name +
                    " as well, accepted: another file");
      }
    }
  }
  return {};
}

void split_empty_values(std::span<const CLI::App* const> commands,
                        std::vector<std::string>& words) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (!words[i].starts_with("--") || !words[i].ends_with('=')) {
      continue;
    }
    const std::string name = words[i].substr(0, words[i].size() - 1);
    const bool takes_value = std::ranges::any_of(commands, [&](const CLI::App* command) {
      const CLI::Option* option = command->get_option_no_throw(name);
      return option != nullptr && option->get_items_expected_max() > 0;
    });
    if (takes_value) {
      words[i] = name;
      words.insert(words.begin() + static_cast<std::ptrdiff_t>(++i), "");
    }
  }
}

}  // namespace encore
