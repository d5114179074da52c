#include "sim/cli/spool_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <system_error>
#include <utility>

#include "base/units.h"

namespace encore::sim {
namespace {

std::string reason(int error) { return std::generic_category().message(error); }

}  // namespace

Result<SpoolFile> SpoolFile::create() {
  const char* given = std::getenv("TMPDIR");  // no other thread changes the environment
  const std::string directory = given == nullptr || *given == '\0' ? "/tmp" : given;
  std::string path = directory + "/encore-sim-spool-XXXXXX";
  const int file = ::mkostemp(path.data(), O_CLOEXEC);
  if (file < 0) {
    return fail("cannot create a spool file in " + directory + ": " + reason(errno) +
                "; set TMPDIR to a writable directory");
  }
  ::unlink(path.c_str());
  return SpoolFile(file, directory);
}

SpoolFile::SpoolFile(SpoolFile&& other) noexcept
    : file_(std::exchange(other.file_, -1)), directory_(std::move(other.directory_)) {}

SpoolFile& SpoolFile::operator=(SpoolFile&& other) noexcept {
  std::swap(file_, other.file_);
  std::swap(directory_, other.directory_);
  return *this;
}

SpoolFile::~SpoolFile() {
  if (file_ >= 0) {
    ::close(file_);
  }
}

Result<void> SpoolFile::write_at(std::uint64_t offset, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t wrote = ::pwrite(file_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (wrote < 0 && errno == EINTR) {
      continue;
    }
    if (wrote <= 0) {
      return fail("cannot write the spool in " + directory_ + " beyond " + format_bytes(offset) +
                  ": " + reason(wrote == 0 ? ENOSPC : errno) +
                  "; set TMPDIR to a writable directory");
    }
    bytes = bytes.subspan(static_cast<std::size_t>(wrote));
    offset += static_cast<std::uint64_t>(wrote);
  }
  return {};
}

Result<void> SpoolFile::read_at(std::uint64_t offset, std::span<std::byte> bytes) const {
  while (!bytes.empty()) {
    const ssize_t got = ::pread(file_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) {
      continue;
    }
    if (got <= 0) {
      return fail("cannot read the spool in " + directory_ + ": " +
                  (got == 0 ? "the file ends too early" : reason(errno)));
    }
    bytes = bytes.subspan(static_cast<std::size_t>(got));
    offset += static_cast<std::uint64_t>(got);
  }
  return {};
}

}  // namespace encore::sim
