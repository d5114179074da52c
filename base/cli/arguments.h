// Arguments: how a command of a program says what options it takes. Confined to one thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/cli/numbers.h"
#include "base/error.h"

namespace CLI {
class App;
}

namespace encore {

// Declares options into variables that must live until the command has run. Every declaration's
// help text ends in the default where there is one. A number outside its range, or that is none,
// ends the program before the command runs.
class Arguments {
 public:
  explicit Arguments(CLI::App& app) : app_(app) {}
  void number(const std::string& name, std::uint64_t& value, const std::string& help,
              const NumberRange& range = {});
  void real(const std::string& name, double& value, const std::string& help,
            const RealRange& range = {});
  void text(const std::string& name, std::string& value, const std::string& help);
  void flag(const std::string& name, bool& value, const std::string& help);
  // --name alone, or --name=VALUE: `alone` is the value then.
  void optional_text(const std::string& name, std::string& value, const std::string& alone,
                     const std::string& help);
  // Positional arguments, one or more, or any number.
  void files(const std::string& name, std::vector<std::string>& value, const std::string& help);
  void optional_files(const std::string& name, std::vector<std::string>& value,
                      const std::string& help);
  void file(const std::string& name, std::string& value, const std::string& help);
  // A positional argument that is no file.
  void word(const std::string& name, std::string& value, const std::string& help);
  // A file that will be written, "-" for standard output.
  void output(const std::string& name, std::string& value, const std::string& help);
  void optional_output(const std::string& name, std::string& value, const std::string& help);
  // Once all is parsed: no file that is read is written, and none is written twice.
  Result<void> check_outputs() const;
  // The files that are read, once all is parsed.
  std::vector<std::string> inputs() const;
  // True if the option was given on the command line.
  bool given(const std::string& name) const;

 private:
  struct Output {
    std::string name;
    const std::string* path = nullptr;
  };
  CLI::App& app_;
  std::vector<const std::string*> input_;
  const std::vector<std::string>* inputs_ = nullptr;
  std::vector<Output> outputs_;
};

// "--bits=" gives an empty value, which CLI11 would take for none at all: in `words`, a command
// line, it becomes two words where one of the commands has an option of that name that takes a
// value.
void split_empty_values(std::span<const CLI::App* const> commands, std::vector<std::string>& words);

}  // namespace encore
