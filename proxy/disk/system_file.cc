#include <fcntl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "base/check.h"
#include "base/new_file.h"
#include "base/secret_file.h"
#include "proxy/disk/file.h"

namespace encore::disk {
namespace {

std::unexpected<Error> system_error(const std::string& what, int error) {
  return fail(what + ": " + std::strerror(error));
}

class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&&) = delete;
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  int get() const { return number_; }

 private:
  int number_;
};

enum class Cached : std::uint8_t { kNever, kAsItIs };

class SystemFile final : public File {
 public:
  SystemFile(std::string path, Descriptor descriptor, bool is_device, Cached cached)
      : path_(std::move(path)), descriptor_(std::move(descriptor)), is_device_(is_device) {
    is_direct_ = cached == Cached::kNever ? switch_direct(true)
                                          : (::fcntl(descriptor_.get(), F_GETFL) & O_DIRECT) != 0;
  }

  Result<void> read(std::span<std::byte> out, std::uint64_t offset) override;
  Result<void> read_two(std::span<std::byte> first, std::span<std::byte> second,
                        std::uint64_t offset) override;
  Result<void> write(std::span<const std::byte> bytes, std::uint64_t offset) override;
  Result<void> sync() override;
  Result<void> allocate(std::uint64_t bytes) override;
  Result<void> truncate(std::uint64_t bytes) override;
  Result<std::uint64_t> size() override;
  const std::string& path() const override { return path_; }
  int descriptor() const override { return descriptor_.get(); }

 private:
  bool switch_direct(bool on) const {
    const int flags = ::fcntl(descriptor_.get(), F_GETFL);
    return flags >= 0 &&
           ::fcntl(descriptor_.get(), F_SETFL, on ? flags | O_DIRECT : flags & ~O_DIRECT) == 0;
  }
  // True if it is worth another try: the file system has refused to bypass the page cache.
  bool is_refusal(int error) {
    if (error != EINVAL || !is_direct_.exchange(false)) return false;
    return switch_direct(false);
  }
  std::string what(const char* verb, std::uint64_t bytes, std::uint64_t offset) const {
    return std::string("cannot ") + verb + " " + std::to_string(bytes) + " bytes at " +
           std::to_string(offset) + " of disk " + path_;
  }

  std::string path_;
  Descriptor descriptor_;
  bool is_device_;
  std::atomic<bool> is_direct_ = false;
};

bool is_aligned(const void* memory, std::size_t bytes, std::uint64_t offset) {
  return reinterpret_cast<std::uintptr_t>(memory) % kIoAlign == 0 && bytes % kIoAlign == 0 &&
         offset % kIoAlign == 0;
}

Result<void> SystemFile::read(std::span<std::byte> out, std::uint64_t offset) {
  ENCORE_CHECK(is_aligned(out.data(), out.size(), offset), "a read is aligned");
  for (std::size_t done = 0; done < out.size();) {
    const ssize_t got = ::pread(descriptor_.get(), out.data() + done, out.size() - done,
                                static_cast<off_t>(offset + done));
    if (got < 0 && (errno == EINTR || is_refusal(errno))) continue;
    if (got < 0) return system_error(what("read", out.size(), offset), errno);
    if (got == 0) {
      return fail(what("read", out.size(), offset) + ": it ends at " +
                  std::to_string(offset + done));
    }
    done += static_cast<std::size_t>(got);
  }
  return {};
}

Result<void> SystemFile::read_two(std::span<std::byte> first, std::span<std::byte> second,
                                  std::uint64_t offset) {
  ENCORE_CHECK(is_aligned(first.data(), first.size(), offset) &&
                   is_aligned(second.data(), second.size(), offset),
               "a read is aligned");
  const std::array<iovec, 2> pieces = {
      {{first.data(), first.size()}, {second.data(), second.size()}}};
  const ssize_t got = ::preadv(descriptor_.get(), pieces.data(), static_cast<int>(pieces.size()),
                               static_cast<off_t>(offset));
  // Reads each piece separately to find the missing bytes, and the error.
  const auto done = got < 0 ? 0 : static_cast<std::size_t>(got) / kIoAlign * kIoAlign;
  if (done < first.size()) return File::read_two(first, second, offset);
  return read(second.subspan(done - first.size()), offset + done);
}

Result<void> SystemFile::write(std::span<const std::byte> bytes, std::uint64_t offset) {
  ENCORE_CHECK(is_aligned(bytes.data(), bytes.size(), offset), "a write is aligned");
  for (std::size_t done = 0; done < bytes.size();) {
    const ssize_t put = ::pwrite(descriptor_.get(), bytes.data() + done, bytes.size() - done,
                                 static_cast<off_t>(offset + done));
    if (put < 0 && (errno == EINTR || is_refusal(errno))) continue;
    if (put <= 0) {
      return system_error(what("write", bytes.size(), offset), put < 0 ? errno : ENOSPC);
    }
    done += static_cast<std::size_t>(put);
  }
  return {};
}

Result<void> SystemFile::sync() {
  if (::fdatasync(descriptor_.get()) != 0) {
    return system_error("cannot make durable what was written to disk " + path_, errno);
  }
  // The page cache is charged to whom the container is; what is asked for again is in our memory.
  if (!is_direct_) ::posix_fadvise(descriptor_.get(), 0, 0, POSIX_FADV_DONTNEED);
  return {};
}

Result<void> SystemFile::allocate(std::uint64_t bytes) {
  const auto now = size();
  if (!now) return std::unexpected(now.error());
  if (is_device_) {
    if (*now >= bytes) return {};
    return fail("disk " + path_ + " has " + std::to_string(*now) + " bytes, " +
                std::to_string(bytes) + " are wanted; lower its size");
  }
  const std::string wanted = "cannot make room for " + std::to_string(bytes) + " bytes in " + path_;
  if (::fallocate(descriptor_.get(), 0, 0, static_cast<off_t>(bytes)) == 0) return {};
  if (errno != EOPNOTSUPP && errno != ENOSYS) {
    const int error = errno;
    // Gives back the partial allocation: the file is as large as before.
    if (::ftruncate(descriptor_.get(), static_cast<off_t>(*now)) != 0) {
      return system_error(wanted, errno);
    }
    return system_error(wanted, error);
  }
  // A file system that promises nothing: it may be full later.
  if (*now >= bytes || ::ftruncate(descriptor_.get(), static_cast<off_t>(bytes)) == 0) return {};
  return system_error(wanted, errno);
}

Result<void> SystemFile::truncate(std::uint64_t bytes) {
  if (is_device_ || ::ftruncate(descriptor_.get(), static_cast<off_t>(bytes)) == 0) return {};
  return system_error("cannot shorten disk " + path_, errno);
}

Result<std::uint64_t> SystemFile::size() {
  // Works for devices, too. Nothing else here uses the descriptor's own position.
  const off_t end = ::lseek(descriptor_.get(), 0, SEEK_END);
  if (end < 0) return system_error("cannot find the size of disk " + path_, errno);
  return static_cast<std::uint64_t>(end);
}

// A file of another user is not trusted; a file that others could read is closed to them: it has
// the bodies of responses.
Result<void> claim(const Descriptor& file, const std::string& path, const struct stat& status,
                   FileUse use) {
  if (!S_ISREG(status.st_mode)) return {};
  if (status.st_uid != ::geteuid()) {
    return fail("cannot trust disk " + path + ": it belongs to user " +
                std::to_string(status.st_uid) + ", this process to " + std::to_string(::geteuid()) +
                "; make it this user's, or remove it");
  }
  // A user who can write the file may have chosen the responses that are served from it.
  const SecretRules rules{.owner = SecretOwner::kThisUser, .others_read = OthersRead::kAllowed};
  if (auto good = check_secret_file(file.get(), path, rules); !good) {
    return fail("cannot trust disk " + path + ": " + good.error().message);
  }
  constexpr mode_t kOthers = 077;
  if (use != FileUse::kLook && (status.st_mode & kOthers) != 0 && ::fchmod(file.get(), 0600) != 0) {
    return system_error("cannot keep others from reading disk " + path, errno);
  }
  return {};
}

// The lock is the open file's, not the process': one process cannot have it twice either.
Result<void> lock(const Descriptor& file, const std::string& path) {
  struct flock whole{};
  whole.l_type = F_WRLCK;
  whole.l_whence = SEEK_SET;
  if (::fcntl(file.get(), F_OFD_SETLK, &whole) == 0) return {};
  if (errno == EAGAIN || errno == EACCES) {
    return fail("disk " + path + " is in use by another encore; each needs one of its own");
  }
  return system_error("cannot lock disk " + path, errno);
}

std::unexpected<Error> fail_opening(const std::string& path, FileUse use, int os_error) {
  if (os_error == EISDIR) {
    return fail("cannot use disk " + path + ": it is a directory; name a file in it, as " +
                (std::filesystem::path(path) / "disk").string());
  }
  if (use == FileUse::kMake) {
    return fail("cannot open disk " + path + ": " + why_no_new_file(path, os_error));
  }
  return system_error("cannot open disk " + path, os_error);
}

}  // namespace

namespace {

Result<std::unique_ptr<File>> take_file(const std::string& path, FileUse use, Descriptor file,
                                        Cached cached) {
  struct stat status{};
  if (::fstat(file.get(), &status) != 0) return system_error("cannot open disk " + path, errno);
  if (S_ISDIR(status.st_mode)) return fail_opening(path, use, EISDIR);
  if (!S_ISREG(status.st_mode) && !S_ISBLK(status.st_mode)) {
    return fail("cannot use disk " + path + ": neither a regular file nor a block device");
  }
  if (auto ours = claim(file, path, status, use); !ours) return std::unexpected(ours.error());
  if (use != FileUse::kLook) {
    if (auto locked = lock(file, path); !locked) return std::unexpected(locked.error());
  }
  return std::make_unique<SystemFile>(path, std::move(file), S_ISBLK(status.st_mode), cached);
}

}  // namespace

// The lock is there already, as the open file's own; a process without it gets it here, or an
// error.
Result<std::unique_ptr<File>> adopt_file(const std::string& path, int descriptor) {
  return take_file(path, FileUse::kKeep, Descriptor(descriptor), Cached::kAsItIs);
}

Result<std::unique_ptr<File>> open_file(const std::string& path, FileUse use) {
  // Without waiting, for it may be a pipe that somebody has laid there.
  const int flags = (use == FileUse::kLook ? O_RDONLY : O_RDWR) | O_CLOEXEC | O_NONBLOCK |
                    (use == FileUse::kMake ? O_CREAT : 0);
  Descriptor file(::open(path.c_str(), flags, 0600));
  if (file.get() < 0) return fail_opening(path, use, errno);
  return take_file(path, use, std::move(file), Cached::kNever);
}

}  // namespace encore::disk
