#include "filter/mapped_filter.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "filter/saved_filter.h"

namespace encore::filter {
namespace {

static_assert(std::endian::native == std::endian::little, "lines are used as they lie in the file");

std::unexpected<Error> system_error(const std::string& deed, const std::string& path) {
  return fail("cannot " + deed + " " + path + ": " + std::strerror(errno));
}

Result<void> write_all(int file, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = write(file, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) {
      continue;
    }
    if (written <= 0) {
      return fail("written in part");
    }
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return {};
}

}  // namespace

MappedFilter::Descriptor::~Descriptor() {
  if (number_ >= 0) {
    close(number_);
  }
}

MappedFilter::MappedFilter(Descriptor file, std::string path, BloomFilter filter,
                           std::string_view bytes, Access access)
    : file_(std::move(file)),
      path_(std::move(path)),
      filter_(std::move(filter)),
      bytes_(bytes),
      access_(access) {}

unsigned char* MappedFilter::bytes_at(std::size_t at) const {
  ENCORE_CHECK(access_ == Access::kWrite, "the file is open for reading only");
  return reinterpret_cast<unsigned char*>(const_cast<char*>(bytes_.data())) + at;
}

Result<MappedFilter> MappedFilter::create(const std::string& path,
                                          const FilterParameters& parameters) {
  const auto accepted = checked(parameters);
  if (!accepted) {
    return std::unexpected(accepted.error());
  }
  Descriptor file(::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (file.number() < 0) {
    return system_error("create", path);
  }
  SavedFilter saved;
  saved.generations.push_back({*accepted, 0, 0, {}});
  std::string head = encode_head(saved);
  head[kSavedStateAt] = static_cast<char>(SavedState::kBeingWritten);
  if (flock(file.number(), LOCK_EX | LOCK_NB) != 0 || !write_all(file.number(), head) ||
      ftruncate(file.number(), static_cast<off_t>(saved_size(*accepted))) != 0) {
    const auto failed = system_error("write", path);
    unlink(path.c_str());
    return failed;
  }
  return map(std::move(file), path, Access::kWrite, true);
}

Result<MappedFilter> MappedFilter::open(const std::string& path, Access access) {
  const bool writes = access == Access::kWrite;
  Descriptor file(::open(path.c_str(), (writes ? O_RDWR : O_RDONLY) | O_CLOEXEC));
  if (file.number() < 0) {
    return system_error("open", path);
  }
  if (writes && flock(file.number(), LOCK_EX | LOCK_NB) != 0) {
    return errno == EWOULDBLOCK ? fail(path + " is open for writing elsewhere")
                                : system_error("lock", path);
  }
  return map(std::move(file), path, access, false);
}

Result<MappedFilter> MappedFilter::map(Descriptor file, const std::string& path, Access access,
                                       bool is_new) {
  struct stat status{};
  if (fstat(file.number(), &status) != 0) {
    return system_error("examine", path);
  }
  const auto size = static_cast<std::size_t>(status.st_size);
  if (!S_ISREG(status.st_mode) || size < saved_size_min()) {
    return fail(path + ": saved filter refused: not a file of " + std::to_string(saved_size_min()) +
                " bytes or more");
  }
  const int protection = access == Access::kWrite ? PROT_READ | PROT_WRITE : PROT_READ;
  void* const base = mmap(nullptr, size, protection, MAP_SHARED, file.number(), 0);
  if (base == MAP_FAILED) {
    return system_error("map", path);
  }
  LineMemory memory =
      LineMemory::adopt({.base = base, .size_bytes = size, .words_at = kSavedLinesAt});
  const std::string_view bytes(static_cast<const char*>(base), size);
  // Being written is fine for a file of our own, and for a reader as long as there is a writer.
  bool may_be_marked = is_new;
  if (access == Access::kRead && flock(file.number(), LOCK_SH | LOCK_NB) != 0) {
    may_be_marked = errno == EWOULDBLOCK;
  } else if (access == Access::kRead) {
    flock(file.number(), LOCK_UN);
  }
  const auto saved = decode(bytes, {.whole = false, .may_be_marked = may_be_marked});
  if (!saved) {
    return fail(path + ": " + saved.error().message);
  }
  MappedFilter mapped(std::move(file), path,
                      BloomFilter::over(saved->generations.front(), std::move(memory)), bytes,
                      access);
  mapped.marked_ = is_new;
  return mapped;
}

Result<void> MappedFilter::begin_writing() {
  if (marked_) {
    return {};
  }
  *bytes_at(kSavedStateAt) = static_cast<unsigned char>(SavedState::kBeingWritten);
  marked_ = true;
  // On the disk before anything else is: a page of the filter must not get there first.
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  if (msync(bytes_at(0), std::min(page, bytes_.size()), MS_SYNC) != 0) {
    return system_error("write", path_);
  }
  return {};
}

bool MappedFilter::add(std::string_view key) {
  ENCORE_CHECK(access_ == Access::kWrite, "the file is open for reading only");
  if (filter_.test(key)) {
    return false;
  }
  // A failure here occurs again in sync(), which reports it.
  static_cast<void>(begin_writing());
  return filter_.add(key);
}

Result<void> MappedFilter::merge(const BloomFilter& other) {
  if (auto fine = alike(filter_.parameters(), other.parameters(), "merged"); !fine) {
    return fine;
  }
  if (auto begun = begin_writing(); !begun) {
    return begun;
  }
  return filter_.merge(other);
}

// Counts and checksum, and the mark away.
void MappedFilter::seal() {
  const std::uint64_t set_bits = filter_.set_bits();
  const std::uint64_t insertions = std::min(filter_.insertions(), set_bits);
  std::memcpy(bytes_at(kSavedInsertionsAt), &insertions, sizeof insertions);
  std::memcpy(bytes_at(kSavedSetBitsAt), &set_bits, sizeof set_bits);
  *bytes_at(kSavedStateAt) = static_cast<unsigned char>(SavedState::kWhole);
  const std::uint64_t checksum = saved_checksum(bytes_);
  std::memcpy(bytes_at(bytes_.size() - sizeof checksum), &checksum, sizeof checksum);
  marked_ = false;
}

Result<void> MappedFilter::sync() {
  // First the lines, then what says that they are all there.
  if (msync(bytes_at(0), bytes_.size(), MS_SYNC) != 0) {
    return system_error("write", path_);
  }
  if (marked_) {
    seal();
  }
  if (msync(bytes_at(0), bytes_.size(), MS_SYNC) != 0) {
    return system_error("write", path_);
  }
  return {};
}

Result<void> MappedFilter::verify() const {
  const auto saved = decode(bytes_, {});
  if (!saved) {
    return fail(path_ + ": " + saved.error().message);
  }
  if (auto fine = verify_lines(saved->generations.front()); !fine) {
    return fail(path_ + ": " + fine.error().message);
  }
  return {};
}

}  // namespace encore::filter
