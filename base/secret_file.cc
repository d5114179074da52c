#include "base/secret_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string_view>
#include <utility>

namespace encore {
namespace {

constexpr mode_t kWrite = 022;  // by the group and by others
// Mode bits that grant more than the owner's and the group's reading: root may give a file to the
// group of this process.
constexpr mode_t kForeign = 027;

std::string octal(mode_t mode) {
  std::array<char, 8> text{};
  std::snprintf(text.data(), text.size(), "0%03o", mode & 0777U);
  return text.data();
}

bool is_of(uid_t user, SecretOwner owner) {
  switch (owner) {
    case SecretOwner::kAnybody:
      return true;
    case SecretOwner::kThisUser:
      return user == ::geteuid();
    case SecretOwner::kThisUserOrRoot:
      break;
  }
  return user == ::geteuid() || user == 0;
}

std::string accepted(SecretOwner owner) {
  return owner == SecretOwner::kThisUser ? "accepted: a file of this user, mode 0600"
                                         : "accepted: a file of this user or root, mode 0600 or "
                                           "0640";
}

std::string remedy(const std::string& path, mode_t mode) {
  return "it has mode " + octal(mode) + ", run: chmod 600 " + path;
}

// The maker of a link can change its target at any time.
bool is_foreign_link(const std::string& path, SecretOwner owner) {
  struct stat link{};
  return ::lstat(path.c_str(), &link) == 0 && S_ISLNK(link.st_mode) && link.st_uid != 0 &&
         !is_of(link.st_uid, owner);
}

Result<std::string> read_all(int file, std::size_t bytes_max) {
  struct stat status{};
  if (::fstat(file, &status) != 0) return fail(std::strerror(errno));
  // One byte more than there is shows that it grows, and than there may be that it is too large.
  const auto size = static_cast<std::size_t>(std::max<off_t>(status.st_size, 0));
  std::string bytes(std::min(size, bytes_max) + 1, '\0');
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t got = ::read(file, bytes.data() + done, bytes.size() - done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail(std::strerror(errno));
    if (got == 0) break;
    done += static_cast<std::size_t>(got);
    if (done == bytes.size() && done <= bytes_max) {
      bytes.resize(std::min(2 * done, bytes_max + 1));
    }
  }
  if (done > bytes_max) return fail("larger than " + std::to_string(bytes_max) + " bytes");
  bytes.resize(done);
  return bytes;
}

}  // namespace

Result<std::string> check_secret_file(int descriptor, const std::string& path,
                                      const SecretRules& rules) {
  struct stat status{};
  if (::fstat(descriptor, &status) != 0) return fail(std::strerror(errno));
  if (!S_ISREG(status.st_mode)) return fail("not a regular file");
  const bool can_write = (status.st_mode & kWrite) != 0;
  const bool is_open = (status.st_mode & kForeign) != 0;
  if (can_write || (is_open && rules.others_read == OthersRead::kRefused)) {
    const std::string_view what = rules.others_read == OthersRead::kRefused
                                      ? "others can read or write it, "
                                      : "others can write it, ";
    return fail(std::string(what) + accepted(rules.owner) + "; " + remedy(path, status.st_mode));
  }
  if (!is_of(status.st_uid, rules.owner)) {
    return fail("it is another user's, " + accepted(rules.owner));
  }
  if (is_foreign_link(path, rules.owner)) {
    return fail("it is a link that another user has made, " + accepted(rules.owner));
  }
  if (!is_open || rules.others_read == OthersRead::kAllowed) return std::string();
  return "others can read it; " + remedy(path, status.st_mode);
}

Result<Secret> read_secret(const std::string& path, std::size_t bytes_max,
                           const SecretRules& rules) {
  // Without waiting, for it may be a pipe.
  const int file = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (file < 0) return fail(std::strerror(errno));
  Result<Secret> secret;
  if (auto good = check_secret_file(file, path, rules); !good) {
    secret = std::unexpected(good.error());
  } else if (auto text = read_all(file, bytes_max); !text) {
    secret = std::unexpected(text.error());
  } else {
    secret = Secret{.text = std::move(*text), .warning = std::move(*good)};
  }
  ::close(file);
  return secret;
}

Result<std::string> read_secret_file(const std::string& path, std::size_t bytes_max,
                                     SecretOwner owner) {
  auto secret = read_secret(path, bytes_max, {.owner = owner});
  if (!secret) return std::unexpected(secret.error());
  return std::move(secret->text);
}

}  // namespace encore
