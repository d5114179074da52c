#include "proxy/process/private_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>

#include "base/secret_file.h"

namespace encore::server {
namespace {

// Far above any filter this proxy can hold for a sensible cache; below what would hurt to read.
constexpr std::uint64_t kFileBytesMax = 16ULL << 30U;

std::unexpected<Error> system_error(const std::string& what, const std::string& path) {
  return fail(what + " " + path + ": " + std::strerror(errno));
}

}  // namespace

Result<void> write_private_file(const std::string& path, std::string_view bytes) {
  const std::string beside = path + ".new";
  // One that a crash has left, or that somebody else has laid there, is never written into.
  if (::unlink(beside.c_str()) != 0 && errno != ENOENT) return system_error("cannot write", beside);
  net::Socket file(
      ::open(beside.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
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

Result<void> append_private_file(const std::string& path, std::string_view bytes) {
  const net::Socket file(::open(
      path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600));
  if (!file) return system_error("cannot write", path);
  struct stat status{};
  if (auto ours = claim_file(file, path, status); !ours) return ours;
  bool is_written = true;
  while (is_written && !bytes.empty()) {
    const ssize_t written = ::write(file.get(), bytes.data(), bytes.size());
    if (written > 0) bytes.remove_prefix(static_cast<std::size_t>(written));
    is_written = written > 0 || (written < 0 && errno == EINTR);
  }
  if (is_written && ::fdatasync(file.get()) == 0) return {};
  auto error = system_error("cannot write", path);
  (void)!::ftruncate(file.get(), status.st_size);
  return error;
}

Result<void> claim_file(const net::Socket& file, const std::string& path, struct stat& status) {
  if (::fstat(file.get(), &status) != 0) return system_error("cannot read", path);
  if (!S_ISREG(status.st_mode)) return fail("cannot read " + path + ": not a regular file");
  if (status.st_uid != ::geteuid()) {
    return fail("cannot trust " + path + ": it belongs to user " + std::to_string(status.st_uid) +
                ", this process to " + std::to_string(::geteuid()));
  }
  const SecretRules rules{.owner = SecretOwner::kThisUser, .others_read = OthersRead::kAllowed};
  if (auto good = check_secret_file(file.get(), path, rules); !good) {
    return fail("cannot trust " + path + ": " + good.error().message);
  }
  constexpr mode_t kOthers = 077;
  if ((status.st_mode & kOthers) != 0 && ::fchmod(file.get(), 0600) != 0) {
    return system_error("cannot keep others from reading", path);
  }
  return {};
}

Result<std::optional<std::string>> read_private_file(const std::string& path) {
  // Without waiting, for it may be a pipe that somebody has laid there.
  net::Socket file(::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (!file) {
    if (errno == ENOENT) return std::nullopt;
    return system_error("cannot read", path);
  }
  struct stat status{};
  if (auto ours = claim_file(file, path, status); !ours) return std::unexpected(ours.error());
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

}  // namespace encore::server
