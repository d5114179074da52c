#include "filter/cli/key_reader.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace encore::filter {
namespace {

// A size that fits the second-level cache together with a small filter.
constexpr std::size_t kBufferBytes = std::size_t{128} << 10U;
// The size that Linux allows to every user: fewer and larger reads.
constexpr int kPipeBytes = 1 << 20;

// Total size of regular files; 0 if it is unknown for one.
std::uint64_t bytes_of(const KeySource& source) {
  std::uint64_t sum = 0;
  const auto add = [&](bool known, const struct stat& file) {
    if (!known || !S_ISREG(file.st_mode)) {
      return false;
    }
    sum += static_cast<std::uint64_t>(file.st_size);
    return true;
  };
  struct stat file{};
  if (source.paths.empty()) {
    const bool known = ::fstat(source.in, &file) == 0;
    return add(known, file) ? sum : 0;
  }
  for (const std::string& path : source.paths) {
    const bool known =
        path == "-" ? ::fstat(source.in, &file) == 0 : ::stat(path.c_str(), &file) == 0;
    if (!add(known, file)) {
      return 0;
    }
  }
  return sum;
}

}  // namespace

KeyReader::KeyReader(KeySource source, Monitor& monitor)
    : source_(std::move(source)), monitor_(monitor), buffer_(kBufferBytes) {
  if (source_.paths.empty()) {
    source_.paths.emplace_back("-");
  }
  keys_.reserve(kKeysAtOnce);
  monitor_.begin("", bytes_of(source_));
  monitor_.in_bytes = true;
}

KeyReader::~KeyReader() {
  if (owned_) {
    ::close(fd_);
  }
}

std::string KeyReader::name() const {
  const std::string& path = source_.paths[next_path_ - 1];
  return path == "-" ? "standard input" : path;
}

std::unexpected<Error> KeyReader::too_long(std::uint64_t line) const {
  return fail(name() + ":" + std::to_string(line) + ": a key of more than " +
              std::to_string(kKeyBytesMax) + " bytes");
}

Result<bool> KeyReader::open_next() {
  if (std::exchange(owned_, false)) {
    ::close(fd_);
  }
  if (next_path_ == source_.paths.size()) {
    return false;
  }
  const std::string& path = source_.paths[next_path_++];
  if (path == "-") {
    fd_ = source_.in;
  } else {
    fd_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd_ < 0) {
      return fail("cannot read keys from " + path + ": " + std::strerror(errno));
    }
    owned_ = true;
  }
  // Has no effect if it is not a pipe.
  ::fcntl(fd_, F_SETPIPE_SZ, kPipeBytes);
  ended_ = false;
  keys_cut_ = 0;
  return true;
}

// Makes space and reads once. The remainder moves to the front.
Result<void> KeyReader::read_more() {
  if (begin_ != 0) {
    std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
  }
  // One byte above it may be the carriage return, one the newline.
  if (end_ > kKeyBytesMax + 1) {
    return too_long(keys_cut_ + 1);
  }
  if (end_ == buffer_.size()) {
    buffer_.resize(std::min(2 * buffer_.size(), kKeyBytesMax + 2));
  }
  ssize_t got = 0;
  do {
    got = ::read(fd_, buffer_.data() + end_, buffer_.size() - end_);
  } while (got < 0 && errno == EINTR);
  if (got < 0) {
    return fail("cannot read keys from " + name() + ": " + std::strerror(errno));
  }
  ended_ = got == 0;
  end_ += static_cast<std::size_t>(got);
  monitor_.done.fetch_add(static_cast<std::uint64_t>(got), std::memory_order_relaxed);
  return {};
}

void KeyReader::add_key(const char* begin, const char* end) {
  if (source_.end == KeyEnd::kLine && end != begin && end[-1] == '\r') {
    --end;
  }
  keys_.emplace_back(begin, static_cast<std::size_t>(end - begin));
}

void KeyReader::cut_keys() {
  const char* at = buffer_.data() + begin_;
  const char* const last = buffer_.data() + end_;
  const int mark = source_.end == KeyEnd::kNull ? 0 : 0x0a;
  while (at != last && keys_.size() < kKeysAtOnce) {
    const auto* end =
        static_cast<const char*>(std::memchr(at, mark, static_cast<std::size_t>(last - at)));
    if (end == nullptr) {
      break;
    }
    add_key(at, end);
    at = end + 1;
  }
  begin_ = static_cast<std::size_t>(at - buffer_.data());
  keys_cut_ += keys_.size();
}

Result<std::span<const std::string_view>> KeyReader::next() {
  keys_.clear();
  while (true) {
    if (begin_ != end_) {
      cut_keys();
    }
    if (!keys_.empty()) {
      break;
    }
    if (!ended_) {
      if (auto read = read_more(); !read) {
        return std::unexpected(read.error());
      }
      if (!ended_ || begin_ == end_) {
        continue;
      }
      // The last key has no end mark.
      add_key(buffer_.data() + begin_, buffer_.data() + end_);
      begin_ = end_;
      ++keys_cut_;
      break;
    }
    const auto opened = open_next();
    if (!opened) {
      return std::unexpected(opened.error());
    }
    if (!*opened) {
      break;
    }
  }
  // A buffer of the usual size holds none.
  for (std::size_t i = 0; buffer_.size() > kKeyBytesMax && i < keys_.size(); ++i) {
    if (keys_[i].size() > kKeyBytesMax) {
      return too_long(keys_cut_ - keys_.size() + i + 1);
    }
  }
  return std::span<const std::string_view>(keys_);
}

}  // namespace encore::filter
