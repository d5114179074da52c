// Runs a command line of encore-filter inside the test, with a standard input of its own.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include "filter/cli/program.h"
#include "tests/catch.h"

namespace encore::filter {

struct Ran {
  int exit_code = 0;
  std::string out;
  std::string err;
};

// A descriptor from which the bytes can be read.
class Input {
 public:
  explicit Input(const std::string& bytes) : fd_(memfd_create("input", 0)) {
    REQUIRE(::write(fd_, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()));
    REQUIRE(::lseek(fd_, 0, SEEK_SET) == 0);
  }
  ~Input() { ::close(fd_); }
  Input(const Input&) = delete;
  Input& operator=(const Input&) = delete;
  int fd() const { return fd_; }

 private:
  int fd_;
};

inline Ran run(const std::vector<std::string>& arguments, const std::string& input = "") {
  const Input in(input);
  std::ostringstream out;
  std::ostringstream err;
  Ran ran;
  ran.exit_code = run_program(arguments, {in.fd(), out, err});
  ran.out = out.str();
  ran.err = err.str();
  return ran;
}

inline Ran run(const std::string& line, const std::string& input = "") {
  std::istringstream words(line);
  return run(std::vector<std::string>{std::istream_iterator<std::string>(words), {}}, input);
}

// Checks that it ended with exit 2 and one line on standard error, which says this.
inline void check_refused(const Ran& ran, const std::string& because) {
  CAPTURE(ran.err);
  CHECK(ran.exit_code == 2);
  CHECK(ran.err.find(because) != std::string::npos);
  CHECK(std::ranges::count(ran.err, '\n') == 1);
}

// "FIRST\n...LAST\n".
inline std::string numbers(int first, int last) {
  std::string lines;
  for (int i = first; i <= last; ++i) {
    lines += std::to_string(i) + "\n";
  }
  return lines;
}

}  // namespace encore::filter
