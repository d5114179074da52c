// Runs a command line of encore-sim inside the test, and looks into its report.
#pragma once

#include <algorithm>
#include <sstream>
#include <streambuf>
#include <string>
#include <vector>

#include "sim/cli/program.h"
#include "tests/catch.h"

namespace encore::sim {

struct Ran {
  int exit_code = 0;
  std::string out;
  std::string err;
};

inline std::vector<std::string> words_of(const std::string& command_line) {
  std::istringstream words(command_line);
  std::vector<std::string> arguments;
  for (std::string word; words >> word;) {
    arguments.push_back(word);
  }
  return arguments;
}

inline Ran run(const std::vector<std::string>& arguments) {
  std::ostringstream out;
  std::ostringstream err;
  Monitor monitor;
  Ran ran;
  ran.exit_code = run_program(arguments, {out, err}, monitor);
  ran.out = out.str();
  ran.err = err.str();
  return ran;
}

inline Ran run(const std::string& command_line) { return run(words_of(command_line)); }

// Standard output that takes so many bytes and fails from then on, as a full disk does.
class FullAfter final : public std::streambuf {
 public:
  explicit FullAfter(std::size_t bytes) : left_(bytes) {}

 private:
  int_type overflow(int_type c) override {
    if (left_ == 0) {
      return traits_type::eof();
    }
    --left_;
    return traits_type::not_eof(c);
  }
  std::size_t left_;
};

// If the output fails anywhere, the exit is 2 and one line says so; if it does not, neither
// happens.
inline void check_output_is_checked(const std::string& command_line) {
  const Ran whole = run(command_line);
  INFO(command_line << "\n" << whole.err);
  REQUIRE(whole.exit_code != 2);
  REQUIRE(!whole.out.empty());
  for (const std::size_t taken :
       {std::size_t{0}, std::size_t{1}, whole.out.size() / 2, whole.out.size() - 1}) {
    FullAfter full(taken);
    std::ostream out(&full);
    std::ostringstream err;
    Monitor monitor;
    CHECK(run_program(words_of(command_line), {out, err}, monitor) == 2);
    CHECK(err.str().starts_with("encore-sim: cannot write to standard output"));
    CHECK(std::ranges::count(err.str(), '\n') == 1);
  }
}

// Checks that it ended with exit 2 and one line on standard error, which says this.
inline void check_refused(const Ran& ran, const std::string& because) {
  CAPTURE(ran.err);
  CHECK(ran.exit_code == 2);
  CHECK(ran.err.find(because) != std::string::npos);
  CHECK(std::ranges::count(ran.err, '\n') == 1);
}

}  // namespace encore::sim
