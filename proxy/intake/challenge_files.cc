#include "proxy/intake/challenge_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "base/text.h"

namespace encore::server {
namespace {

class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return number_; }
  explicit operator bool() const { return number_ >= 0; }

 private:
  int number_;
};

// The alphabet of base64url (RFC 8555 8.1), in which a file name has no dot and no slash.
bool is_base64url(std::string_view text) {
  return std::ranges::all_of(text, [](char c) {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_';
  });
}

bool is_small_file(const struct stat& status) {
  return S_ISREG(status.st_mode) && status.st_size >= 0 &&
         static_cast<std::uint64_t>(status.st_size) <= kChallengeBytesMax;
}

// token "." thumbprint; blanks at the end do not count (RFC 8555 8.3).
bool is_key_authorization(std::string_view text, std::string_view token) {
  if (!text.starts_with(token)) return false;
  text.remove_prefix(token.size());
  if (!text.starts_with('.')) return false;
  text.remove_prefix(1);
  while (!text.empty() && std::string_view(" \t\r\n").contains(text.back())) {
    text.remove_suffix(1);
  }
  return !text.empty() && is_base64url(text);
}

Descriptor open_directory(const std::string& directory) {
  return Descriptor(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
}

std::string read_up_to(int descriptor, std::size_t bytes_max) {
  std::string text(bytes_max, '\0');
  std::size_t bytes = 0;
  while (bytes < text.size()) {
    const ssize_t got = ::read(descriptor, text.data() + bytes, text.size() - bytes);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    bytes += static_cast<std::size_t>(got);
  }
  text.resize(bytes);
  return text;
}

// A target in absolute form without scheme and authority; one in origin form as it is.
std::string_view path_and_query(std::string_view target) {
  if (target.starts_with('/')) return target;
  constexpr std::string_view kScheme = "http://";
  if (target.size() < kScheme.size() || lower_ascii(target.substr(0, kScheme.size())) != kScheme) {
    return {};
  }
  target.remove_prefix(kScheme.size());
  const std::size_t end = target.find_first_of("/?#");
  return end == std::string_view::npos ? std::string_view() : target.substr(end);
}

}  // namespace

std::optional<std::string_view> challenge_name(const http::RequestHead& head, config::Mode mode) {
  if (head.method != http::Method::kGet && head.method != http::Method::kHead) return std::nullopt;
  const bool is_forward = mode == config::Mode::kForward;
  std::string_view path = is_forward ? head.target : path_and_query(head.target);
  if (!path.starts_with(kChallengePath)) return std::nullopt;
  path.remove_prefix(kChallengePath.size());
  return path.substr(0, path.find('?'));
}

std::optional<std::string> read_challenge(const std::string& directory, std::string_view name) {
  if (name.empty() || name.size() > kChallengeTokenMax || !is_base64url(name)) return std::nullopt;
  // Opened for each request: an ACME client may have made it again.
  const Descriptor folder = open_directory(directory);
  if (!folder) return std::nullopt;
  const std::string file(name);
  // A device or a FIFO is not even opened, for that may have an effect.
  struct stat status{};
  if (::fstatat(folder.get(), file.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0 ||
      !is_small_file(status)) {
    return std::nullopt;
  }
  const Descriptor opened(::openat(folder.get(), file.c_str(),
                                   O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  // There may be another one of that name by now.
  if (!opened || ::fstat(opened.get(), &status) != 0 || !is_small_file(status)) {
    return std::nullopt;
  }
  std::string text = read_up_to(opened.get(), kChallengeBytesMax + 1);
  if (text.size() > kChallengeBytesMax || !is_key_authorization(text, name)) return std::nullopt;
  return text;
}

Result<void> check_challenge_directory(const std::string& directory) {
  if (directory.empty() || open_directory(directory)) return {};
  return fail("acme.challenge_directory: \"" + directory +
              "\" cannot be read: " + std::strerror(errno) + "; challenges get 404");
}

}  // namespace encore::server
