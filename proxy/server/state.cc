#include "proxy/server/state.h"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "proxy/net/socket.h"

namespace encore::server {
namespace {

// Far above any filter this proxy can hold for a sensible cache; below what would hurt to read.
constexpr std::uint64_t kFileBytesMax = 16ULL << 30U;

std::unexpected<Error> system_error(const std::string& what, const std::string& path) {
  return fail(what + " " + path + ": " + std::strerror(errno));
}

Result<void> write_file(const std::string& path, std::string_view bytes) {
  const std::string beside = path + ".new";
  net::Socket file(::open(beside.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  if (!file) return system_error("cannot write", beside);
  while (!bytes.empty()) {
    const ssize_t written = ::write(file.get(), bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) {
      auto error = system_error("cannot write", beside);
      ::unlink(beside.c_str());
      return error;
    }
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  if (::fsync(file.get()) == 0 && ::rename(beside.c_str(), path.c_str()) == 0) return {};
  auto error = system_error("cannot save", path);
  ::unlink(beside.c_str());
  return error;
}

Result<std::optional<std::string>> read_file(const std::string& path) {
  net::Socket file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) {
    if (errno == ENOENT) return std::nullopt;
    return system_error("cannot read", path);
  }
  struct stat status{};
  if (::fstat(file.get(), &status) != 0) return system_error("cannot read", path);
  const auto size = static_cast<std::uint64_t>(status.st_size);
  if (size > kFileBytesMax) return fail("cannot read " + path + ": larger than any saved state");
  std::string bytes(size, '\0');
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t got = ::read(file.get(), bytes.data() + done, bytes.size() - done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return system_error("cannot read", path);
    if (got == 0) break;
    done += static_cast<std::size_t>(got);
  }
  bytes.resize(done);
  return bytes;
}

}  // namespace

Result<StateDirectory> StateDirectory::open(const std::string& path) {
  std::error_code error;
  const bool made = std::filesystem::create_directories(path, error);
  if (error) return fail("cannot make state directory " + path + ": " + error.message());
  // What was there before keeps the mode that its owner gave it: it may be shared, as /tmp is.
  if (made) ::chmod(path.c_str(), 0700);
  if (::access(path.c_str(), W_OK | X_OK) != 0) {
    return system_error("cannot write to state directory", path);
  }
  return StateDirectory(path);
}

Result<std::optional<filter::Seed>> StateDirectory::load_seed() const {
  auto text = read_file(path_ + "/seed");
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
  return write_file(path_ + "/seed", filter::to_hex(seed) + "\n");
}

Result<std::optional<std::string>> StateDirectory::load_admission() const {
  return read_file(admission_path());
}

Result<void> StateDirectory::save_admission(const std::string& bytes) const {
  return write_file(admission_path(), bytes);
}

Result<filter::Seed> random_seed() {
  filter::Seed seed;
  if (::getrandom(&seed, sizeof(seed), 0) != static_cast<ssize_t>(sizeof(seed))) {
    return fail("no random numbers to be had from the system");
  }
  return seed;
}

}  // namespace encore::server
