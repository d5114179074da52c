#include "proxy/ca/cli/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace encore::ca {
namespace {

Result<void> failed(const std::string& file) {
  if (errno == EEXIST) {
    return fail(file + ": exists already; choose another directory, or use encore ca renew");
  }
  return fail(file + ": " + std::strerror(errno));
}

bool write_all(int descriptor, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

// A file that was not there before, or none.
Result<void> write_new(const std::string& file, std::string_view bytes, mode_t mode) {
  const int descriptor =
      ::open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
  if (descriptor < 0) return failed(file);
  const bool written =
      ::fchmod(descriptor, mode) == 0 && write_all(descriptor, bytes) && ::fsync(descriptor) == 0;
  const int why = errno;
  const bool closed = ::close(descriptor) == 0;
  if (written && closed) return {};
  if (!written) errno = why;
  auto error = failed(file);
  ::unlink(file.c_str());
  return error;
}

}  // namespace

std::string certificate_file_in(const std::string& directory) {
  return directory + "/" + std::string(kCertificateName);
}

std::string key_file_in(const std::string& directory) {
  return directory + "/" + std::string(kKeyName);
}

Result<void> write_authority(const std::string& directory, const CreatedCa& made) {
  constexpr mode_t kDirectoryMode = 0755;
  constexpr mode_t kForAll = 0644;
  constexpr mode_t kForOwner = 0600;
  if (::mkdir(directory.c_str(), kDirectoryMode) != 0 && errno != EEXIST) return failed(directory);
  const std::string certificate = certificate_file_in(directory);
  // The certificate of another key must not lie next to a new one.
  struct stat there{};
  if (::lstat(certificate.c_str(), &there) == 0) {
    errno = EEXIST;
    return failed(certificate);
  }
  const std::string key = key_file_in(directory);
  if (auto written = write_new(key, made.key, kForOwner); !written) return written;
  auto written = write_new(certificate, made.certificate, kForAll);
  if (!written) ::unlink(key.c_str());
  return written;
}

}  // namespace encore::ca
