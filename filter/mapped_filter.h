// MappedFilter: a saved plain filter that is used in its file. The file is mapped into memory. So
// one of many gigabytes is available immediately, takes memory only for the pages that are read,
// and is shared by all processes that have it open. One of them may write. Thread-compatible.
// Movable, not copyable. Linux, and processors that store the lower byte first. No other kind: in
// the file of a ring or a filter of slices, lines do not lie at multiples of their size.
//
// Checks. Opening always checks the header (saved_filter.h), that the file has exactly the size
// that follows from it, and that no writer left it half written. The checksum over all of it, bits
// beyond the end and the count of set bits only by verify(), which reads the whole file.
//
// A writer first marks the header as being written, and writes that through to the disk; sync()
// brings counts and checksum up to date and removes the mark: without it at the end the file stays
// marked as incomplete. A file with the mark that nobody holds open for writing is torn and
// refused. While a writer has it, readers see what it adds; the counts that they know are those of
// the last sync(). A file that someone else shortens while it is mapped ends the process (SIGBUS):
// replace such a file by renaming, never in place.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"
#include "filter/bloom_filter.h"
#include "filter/parameters.h"

namespace encore::filter {

class MappedFilter {
 public:
  enum class Access : std::uint8_t { kRead, kWrite };

  // A new file of an empty filter, open for writing. Takes no room on the disk but for what is
  // written. Errors: those of checked(), a file that is there already, what the system refuses.
  static Result<MappedFilter> create(const std::string& path, const FilterParameters& parameters);
  // Errors: a file that is no saved plain filter, or torn; for writing also one that another has
  // open for writing; what the system refuses.
  static Result<MappedFilter> open(const std::string& path, Access access);

  // To ask, and for what it knows of itself. Its copy() and save() are as any filter's.
  const BloomFilter& filter() const { return filter_; }

  // True if the key was new. REQUIRES: open for writing, here and below.
  bool add(std::string_view key);
  // ORs a filter in. Errors: as BloomFilter::merge, and what the system refuses.
  Result<void> merge(const BloomFilter& other);
  // Writes all of it to the disk, with counts and checksum. Reads the whole file.
  // Errors: what the system refuses.
  Result<void> sync();

  // Reads the whole file. Errors: a checksum that does not match, bits beyond the filter's size, a
  // count of set bits that differs. REQUIRES: nobody has written since the last sync().
  Result<void> verify() const;

 private:
  // A descriptor, closed at the end; the lock of a writer goes with it.
  class Descriptor {
   public:
    explicit Descriptor(int number) : number_(number) {}
    Descriptor(Descriptor&& other) noexcept : number_(other.number_) { other.number_ = -1; }
    Descriptor& operator=(Descriptor&&) = delete;
    ~Descriptor();
    int number() const { return number_; }

   private:
    int number_;
  };

  MappedFilter(Descriptor file, std::string path, BloomFilter filter, std::string_view bytes,
               Access access);
  static Result<MappedFilter> map(Descriptor file, const std::string& path, Access access,
                                  bool is_new);
  Result<void> begin_writing();
  void seal();
  unsigned char* bytes_at(std::size_t at) const;

  Descriptor file_;
  std::string path_;
  BloomFilter filter_;      // over the mapping, which it owns
  std::string_view bytes_;  // all of the file
  Access access_;
  bool marked_ = false;  // as being written
};

}  // namespace encore::filter
