#include "proxy/process/directories.h"

#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>
#include <vector>

namespace encore::server {
namespace {

namespace fs = std::filesystem;

constexpr mode_t kMode = 0700;

// Those that are missing, the outermost last. "a/" is a directory with a file of no name.
std::vector<fs::path> missing_above(const fs::path& whole) {
  std::error_code ignored;
  std::vector<fs::path> missing;
  for (auto place = whole; place.has_relative_path(); place = place.parent_path()) {
    if (!place.has_filename()) continue;
    if (fs::exists(fs::symlink_status(place, ignored))) break;
    missing.push_back(place);
  }
  return missing;
}

std::string user_name() {
  const passwd* const entry = ::getpwuid(::geteuid());
  return entry == nullptr ? std::to_string(::geteuid()) : entry->pw_name;
}

Result<void> fail_making(const fs::path& whole, const std::error_code& error) {
  return fail("cannot make directory " + whole.string() + ": " + error.message() +
              "; make it with: sudo install -d -o " + user_name() + " -m 0700 " + whole.string());
}

// Names in `made` what it has made, the outermost first.
std::error_code make(const fs::path& whole, std::vector<fs::path>& made) {
  auto missing = missing_above(whole);
  for (auto place = missing.rbegin(); place != missing.rend(); ++place) {
    if (::mkdir(place->c_str(), kMode) != 0) {
      if (errno == EEXIST) continue;  // another process was faster
      return {errno, std::generic_category()};
    }
    made.push_back(*place);
  }
  std::error_code error;
  if (!fs::is_directory(whole, error) && !error)
    error = std::make_error_code(std::errc::not_a_directory);
  return error;
}

}  // namespace

Result<void> make_directory(const std::string& path) {
  std::error_code error;
  const fs::path whole = fs::absolute(path, error).lexically_normal();
  std::vector<fs::path> made;
  if (!error) error = make(whole, made);
  return error ? fail_making(whole, error) : Result<void>();
}

Result<void> check_makeable(const std::string& path) {
  std::error_code error;
  const fs::path whole = fs::absolute(path, error).lexically_normal();
  std::vector<fs::path> made;
  if (!error) error = make(whole, made);
  // One that is not empty is somebody's by now, and stays.
  for (auto place = made.rbegin(); place != made.rend(); ++place) ::rmdir(place->c_str());
  return error ? fail_making(whole, error) : Result<void>();
}

std::string existing_directory(const std::string& path) {
  std::error_code error;
  fs::path place = fs::absolute(path, error).lexically_normal();
  while (place.has_relative_path() && !fs::is_directory(place, error)) place = place.parent_path();
  return place.string();
}

}  // namespace encore::server
