#include "sim/sweep/read_file.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>

namespace encore::sim {

Result<std::string> read_file(const std::string& path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) {
    return fail("cannot read " + path + ": it is a directory");
  }
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  // An empty file puts nothing, which a stream takes for a fault.
  if (file.is_open() && file.peek() != std::ifstream::traits_type::eof()) text << file.rdbuf();
  if (!file.is_open() || file.bad() || !text) {
    return fail("cannot read " + path +
                (errno == 0 ? "" : std::string(": ") + std::strerror(errno)));
  }
  return text.str();
}

}  // namespace encore::sim
