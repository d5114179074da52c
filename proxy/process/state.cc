#include "proxy/process/state.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "proxy/process/directories.h"
#include "proxy/process/private_file.h"

namespace encore::server {
namespace {

std::unexpected<Error> system_error(const std::string& what, const std::string& path) {
  return fail(what + " " + path + ": " + std::strerror(errno));
}

// Locks a file that nobody else may open: a process that can open a file can hold its lock.
Result<net::Socket> open_lock(const std::string& directory, int flags) {
  const std::string path = directory + "/lock";
  net::Socket file(
      ::open(path.c_str(), O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | flags, 0600));
  if (!file) return system_error("cannot open", path);
  struct stat status{};
  if (auto ours = claim_file(file, path, status); !ours) return std::unexpected(ours.error());
  return file;
}

// False where another process has it. A file system that knows no locks lets all have it.
bool lock(const net::Socket& file) {
  return ::flock(file.get(), LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK;
}

// " (process 123)", as /proc/locks tells: "1: FLOCK  ADVISORY  WRITE 123 08:01:77 0 EOF". Empty
// where it does not.
std::string holder_of(const net::Socket& locked) {
  struct stat status{};
  if (::fstat(locked.get(), &status) != 0) return {};
  std::ifstream locks("/proc/locks");
  const std::string inode = ":" + std::to_string(status.st_ino);
  std::string number, kind, advisory, access, process, file, rest;
  while (locks >> number >> kind >> advisory >> access >> process >> file &&
         std::getline(locks, rest)) {
    if (kind == "FLOCK" && file.ends_with(inode)) return " (process " + process + ")";
  }
  return {};
}

Result<void> check_writable(const std::string& path) {
  if (::faccessat(AT_FDCWD, path.c_str(), W_OK | X_OK, AT_EACCESS) == 0) return {};
  return system_error("cannot write to state directory", path);
}

}  // namespace

Result<StateDirectory> StateDirectory::open(const std::string& path, net::Socket lock_file) {
  // A directory that was there before keeps the mode that its owner gave it: it may be shared, as
  // /tmp is.
  if (auto made = make_directory(path); !made) return fail("state: " + made.error().message);
  if (auto writable = check_writable(path); !writable) return std::unexpected(writable.error());
  StateDirectory directory(path);
  if (lock_file) {
    directory.lock_ = std::move(lock_file);
    return directory;
  }
  auto file = open_lock(path, O_CREAT);
  if (!file) return std::unexpected(file.error());
  directory.lock_ = std::move(*file);
  if (!lock(directory.lock_)) {
    return fail("state directory " + path + " is in use by another encore" +
                holder_of(directory.lock_) + "; each needs one of its own");
  }
  return directory;
}

Result<void> StateDirectory::check(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_directory(path, error)) return check_makeable(path);
  if (auto writable = check_writable(path); !writable) return writable;
  // Checks if it can be opened; its holder does not matter here.
  const std::string lock = path + "/lock";
  struct stat status{};
  if (::lstat(lock.c_str(), &status) == 0) {
    if (const auto file = open_lock(path, 0); !file) return std::unexpected(file.error());
  }
  const auto seed = StateDirectory(path).load_seed();
  return seed ? Result<void>() : std::unexpected(seed.error());
}

bool StateDirectory::is_taken(const std::string& path) {
  const auto file = open_lock(path, 0);
  return file && !lock(*file);
}

Result<std::optional<filter::Seed>> StateDirectory::load_seed() const {
  auto text = read_private_file(path_ + "/seed");
  if (!text) return std::unexpected(text.error());
  if (!*text) return std::nullopt;
  std::erase(**text, '\n');
  // It was written whole: a shorter one is a part of it, and easier to guess.
  constexpr std::size_t kDigits = 32;
  if ((*text)->size() != kDigits) {
    return fail(path_ + "/seed: " + std::to_string((*text)->size()) +
                " characters, expected 32 hex digits");
  }
  auto seed = filter::parse_seed(**text);
  if (!seed) return fail(path_ + "/seed: " + seed.error().message);
  return *seed;
}

Result<void> StateDirectory::save_seed(const filter::Seed& seed) const {
  return write_private_file(path_ + "/seed", filter::to_hex(seed) + "\n");
}

Result<std::optional<std::string>> StateDirectory::load_admission() const {
  return read_private_file(admission_path());
}

Result<void> StateDirectory::save_admission(const std::string& bytes) const {
  return write_private_file(admission_path(), bytes);
}

Result<std::optional<std::string>> StateDirectory::load_changed() const {
  return read_private_file(changed_path());
}

Result<void> StateDirectory::save_changed(const std::string& bytes) const {
  return write_private_file(changed_path(), bytes);
}

Result<filter::Seed> random_seed() {
  filter::Seed seed;
  if (::getrandom(&seed, sizeof(seed), 0) != static_cast<ssize_t>(sizeof(seed))) {
    return fail("the system provides no random numbers");
  }
  return seed;
}

}  // namespace encore::server
