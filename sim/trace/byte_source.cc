#include "sim/trace/byte_source.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>

namespace encore::sim {
namespace {

class Descriptor final : public ByteSource {
 public:
  Descriptor(int fd, bool owned, Monitor* monitor) : fd_(fd), owned_(owned), monitor_(monitor) {}
  ~Descriptor() override {
    if (owned_) {
      ::close(fd_);
    }
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  Result<std::size_t> read(std::span<char> out) override {
    while (true) {
      if (!wait()) {
        return fail("interrupted");
      }
      const ssize_t count = ::read(fd_, out.data(), out.size());
      if (count >= 0) {
        if (monitor_ != nullptr) {
          monitor_->done += static_cast<std::uint64_t>(count);
        }
        return static_cast<std::size_t>(count);
      }
      if (errno != EINTR && errno != EAGAIN) {
        return fail(std::string("reading failed: ") + std::strerror(errno));
      }
    }
  }

 private:
  // Until there is something to read, or the end; false: the monitor stopped it.
  bool wait() {
    constexpr int kLookEveryMs = 25;
    pollfd waits{.fd = fd_, .events = POLLIN, .revents = 0};
    int ready = 0;
    do {
      if (monitor_ != nullptr && monitor_->stopped()) {
        return false;
      }
      ready = ::poll(&waits, 1, kLookEveryMs);
    } while (ready == 0 || (ready < 0 && errno == EINTR));
    return true;
  }

  int fd_;
  bool owned_;
  Monitor* monitor_;
};

// Gives back the bytes that were looked at, then the rest.
class Prefixed final : public ByteSource {
 public:
  Prefixed(std::string prefix, std::unique_ptr<ByteSource> rest)
      : prefix_(std::move(prefix)), rest_(std::move(rest)) {}
  Result<std::size_t> read(std::span<char> out) override {
    if (at_ == prefix_.size()) {
      return rest_->read(out);
    }
    const std::size_t count = std::min(out.size(), prefix_.size() - at_);
    std::memcpy(out.data(), prefix_.data() + at_, count);
    at_ += count;
    return count;
  }

 private:
  std::string prefix_;
  std::size_t at_ = 0;
  std::unique_ptr<ByteSource> rest_;
};

Result<std::string> read_prefix(ByteSource& source, std::size_t size) {
  std::string prefix(size, '\0');
  std::size_t have = 0;
  while (have < size) {
    const auto count = source.read(std::span(prefix).subspan(have));
    if (!count) {
      return std::unexpected(count.error());
    }
    if (*count == 0) {
      break;
    }
    have += *count;
  }
  prefix.resize(have);
  return prefix;
}

// True if the head begins with the magic number, or is a part of it that no text begins with.
bool begins_as(std::string_view head, std::string_view magic) {
  return head.starts_with(magic) || (head.size() >= 2 && magic.starts_with(head));
}

// 0: not known, for one of them is a pipe.
std::uint64_t bytes_of(const std::vector<std::string>& paths) {
  std::uint64_t sum = 0;
  for (const std::string& path : paths) {
    struct stat status{};
    const int got = path == "-" ? ::fstat(STDIN_FILENO, &status) : ::stat(path.c_str(), &status);
    if (got != 0 || !S_ISREG(status.st_mode)) {
      return 0;
    }
    sum += static_cast<std::uint64_t>(status.st_size);
  }
  return sum;
}

}  // namespace

void begin_reading(Monitor& monitor, const std::vector<std::string>& paths) {
  monitor.begin("reading", bytes_of(paths));
  monitor.in_bytes = true;
}

Result<std::unique_ptr<ByteSource>> open_bytes(const std::string& path, Monitor* monitor) {
  const bool standard_input = path == "-";
  // A named pipe is opened whether or not it has a writer yet: Descriptor waits for what it sends.
  const int fd =
      standard_input ? STDIN_FILENO : ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) {
    return fail("cannot open " + path + ": " + std::strerror(errno));
  }
  std::unique_ptr<ByteSource> file = std::make_unique<Descriptor>(fd, !standard_input, monitor);
  struct stat status{};
  if (::fstat(fd, &status) == 0 && S_ISDIR(status.st_mode)) {
    return fail("cannot read " + path + ": it is a directory");
  }
  auto magic = read_prefix(*file, 6);
  if (!magic) {
    return fail("cannot read " + path + ": " + magic.error().message);
  }
  const std::string head = *magic;
  std::unique_ptr<ByteSource> whole = std::make_unique<Prefixed>(*magic, std::move(file));
  if (head.starts_with("\x1f\x8b")) {
    return make_gzip_source(std::move(whole));
  }
  // A file that ends within the magic number is handed over too: it is cut off.
  if (begins_as(head, {"\xfd"
                       "7zXZ\0",
                       6})) {
    return make_xz_source(std::move(whole));
  }
  if (begins_as(head, "\x28\xb5\x2f\xfd")) {
    return make_zstd_source(std::move(whole));
  }
  return whole;
}

}  // namespace encore::sim
