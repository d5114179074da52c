#include "filter/cli/filter_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <ostream>
#include <span>
#include <string_view>

#include "base/cli/output_file.h"
#include "filter/bloom_filter.h"
#include "filter/published/squid_digest.h"
#include "filter/saved_filter.h"

namespace encore::filter {
namespace {

constexpr std::size_t kStepBytes = std::size_t{1} << 20U;

Result<std::string> read_all(const std::string& path, int fd) {
  struct stat file{};
  std::string bytes;
  if (::fstat(fd, &file) == 0 && S_ISREG(file.st_mode)) {
    bytes.reserve(static_cast<std::size_t>(file.st_size) + 1);
  }
  while (true) {
    const std::size_t size = bytes.size();
    bytes.resize(std::max(bytes.capacity(), size + kStepBytes));
    const ssize_t got = ::read(fd, bytes.data() + size, bytes.size() - size);
    bytes.resize(size + static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    if (got == 0) {
      return bytes;
    }
    if (got < 0 && errno != EINTR) {
      return fail("cannot read " + path + ": " + std::strerror(errno));
    }
  }
}

}  // namespace

Result<std::string> read_file(const std::string& path, int in) {
  if (path == "-") {
    return read_all("standard input", in);
  }
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    return fail("cannot read " + path + ": " + std::strerror(errno));
  }
  auto bytes = read_all(path, fd);
  ::close(fd);
  return bytes;
}

namespace {

// The source of a filter.
struct Source {
  std::string path;
  int fd = -1;
  std::optional<std::uint64_t> left;  // bytes left in a file, from the position of reading
};

Source source_of(const std::string& path, int fd) {
  Source source{.path = path, .fd = fd, .left = std::nullopt};
  struct stat file{};
  const off_t at = ::lseek(fd, 0, SEEK_CUR);
  // A size of nothing is what the kernel's own files have, whatever is in them.
  if (::fstat(fd, &file) == 0 && S_ISREG(file.st_mode) && at >= 0 && file.st_size > at) {
    source.left = static_cast<std::uint64_t>(file.st_size - at);
  }
  return source;
}

// Reads until there are so many bytes, or no more.
Result<void> read_up_to(const Source& source, std::uint64_t wanted, std::string& bytes) {
  if (source.left) {
    bytes.reserve(std::min(*source.left, wanted));
  }
  while (bytes.size() < wanted) {
    const std::size_t size = bytes.size();
    bytes.resize(std::min<std::uint64_t>(wanted, std::max(bytes.capacity(), size + kStepBytes)));
    const ssize_t got = ::read(source.fd, bytes.data() + size, bytes.size() - size);
    bytes.resize(size + static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    if (got == 0) {
      return {};
    }
    if (got < 0 && errno != EINTR) {
      return fail(std::string("cannot be read: ") + std::strerror(errno));
    }
  }
  return {};
}

// How many bytes there are, or how many there may be.
struct Bound {
  std::uint64_t bytes = 0;
  bool exact = false;
};

Result<Bound> bound_of(Form form, std::string_view head, const Source& source,
                       const InputFormat& as) {
  // 7,500 digits, and blanks around them.
  constexpr std::uint64_t kNumberMax = std::uint64_t{1} << 16U;
  constexpr std::uint64_t kTextMax = std::uint64_t{1} << 30U;
  switch (form) {
    case Form::kEncore: {
      const auto size = stated_size(head);
      return size ? Result<Bound>({.bytes = *size, .exact = true}) : std::unexpected(size.error());
    }
    case Form::kSquidDigest: {
      const auto size = squid_digest_size(head);
      return size ? Result<Bound>({.bytes = *size, .exact = true}) : std::unexpected(size.error());
    }
    case Form::kRaw:
      return Bound{.bytes = as.of_raw.bits / 8 + (as.of_raw.bits % 8 != 0 ? 1 : 0), .exact = true};
    case Form::kBloomnames:
    case Form::kBloomnamesDecimal:
      return Bound{.bytes = kNumberMax};
    case Form::kBloomnamesJson:
      break;
  }
  return Bound{.bytes = source.left.value_or(kTextMax)};
}

Result<void> check_size(std::uint64_t found, const Bound& bound, bool is_more) {
  if (found == bound.bytes || (found < bound.bytes && !bound.exact)) {
    return {};
  }
  return fail("refused: " + std::string(is_more ? "more than " : "") +
              std::to_string(is_more ? bound.bytes : found) + " bytes, " +
              (bound.exact ? "expected " : "accepted: up to ") + std::to_string(bound.bytes));
}

// A plain filter of a file goes into its memory as it is read; `head` is what was read already.
Result<AnyFilter> load_in_pieces(const Source& source, std::string_view head, std::uint64_t size) {
  const auto next = [&](std::span<char> to) -> Result<void> {
    const std::size_t known = std::min(head.size(), to.size());
    std::ranges::copy(head.substr(0, known), to.begin());
    head.remove_prefix(known);
    for (to = to.subspan(known); !to.empty();) {
      const ssize_t got = ::read(source.fd, to.data(), to.size());
      if (got == 0) {
        return fail("it became shorter while it was read");
      }
      if (got < 0 && errno != EINTR) {
        return fail(std::string("cannot be read: ") + std::strerror(errno));
      }
      to = to.subspan(static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    }
    return {};
  };
  auto filter = BloomFilter::load(next, size);
  return filter ? Result<AnyFilter>(std::move(*filter)) : std::unexpected(filter.error());
}

Result<FilterFile> load_from(const Source& source, const InputFormat& as) {
  std::string bytes;
  if (auto read = read_up_to(source, kSavedHeadMax, bytes); !read) {
    return std::unexpected(read.error());
  }
  const auto form = as.form ? Result<Form>(*as.form) : detect_form(bytes);
  if (!form) {
    return std::unexpected(form.error());
  }
  const auto bound = bound_of(*form, bytes, source, as);
  if (!bound) {
    return std::unexpected(bound.error());
  }
  if (source.left) {
    if (auto fits = check_size(*source.left, *bound, false); !fits) {
      return std::unexpected(fits.error());
    }
  }
  if (source.left && *form == Form::kEncore && saved_kind(bytes) == SavedKind::kSingle) {
    auto filter = load_in_pieces(source, bytes, *source.left);
    return filter ? Result<FilterFile>(std::in_place, std::move(*filter), *form)
                  : std::unexpected(filter.error());
  }
  // One more than there may be: whether there are more.
  if (auto read = read_up_to(source, bound->bytes + 1, bytes); !read) {
    return std::unexpected(read.error());
  }
  const bool is_more = bytes.size() > bound->bytes;
  if (auto fits = check_size(bytes.size(), *bound, is_more); !fits) {
    return std::unexpected(fits.error());
  }
  auto filter = read_form(bytes, *form, as.of_raw);
  return filter ? Result<FilterFile>(std::in_place, std::move(*filter), *form)
                : std::unexpected(filter.error());
}

}  // namespace

Result<FilterFile> load_filter(const std::string& path, int in, const InputFormat& as) {
  const bool is_input = path == "-";
  const int fd = is_input ? in : ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    return fail("cannot read " + path + ": " + std::strerror(errno));
  }
  auto loaded = [&]() -> Result<FilterFile> {
    try {
      return load_from(source_of(path, fd), as);
    } catch (const std::bad_alloc&) {
      return fail("not enough memory");
    }
  }();
  if (!is_input) {
    ::close(fd);
  }
  return loaded ? std::move(loaded) : fail(path + ": " + loaded.error().message);
}

Result<void> save_filter(const FilterFile& file, const std::string& path, std::ostream& out) {
  const auto bytes = write_form(file.filter, file.form);
  if (!bytes) {
    return std::unexpected(bytes.error());
  }
  if (path == "-") {
    out << *bytes;
    return {};
  }
  return replace_file(path, *bytes);
}

}  // namespace encore::filter
