// LinearHashTable: an exact set of keys by linear hashing (W. Litwin, "Linear Hashing: A New Tool
// for File and Table Addressing", 1980), for comparison with filters. Thread-compatible. Movable,
// not copyable: it owns the bytes of its keys.
//
// Level l has N 2^l buckets of b records each, plus one for each bucket that is split already. The
// load is keys / (buckets b). If it exceeds its limit, the bucket at the split pointer, which need
// not be the full one, gives about half of its keys to a new last bucket. So the table grows by one
// bucket at a time, without a directory. A bucket with more than b keys has overflow pages. Key h
// lies in bucket h mod N 2^l, or, if that is split already, h mod N 2^(l + 1).
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "filter/hash.h"

namespace encore::filter {

struct LinearHashOptions {
  std::uint32_t first_buckets = 4;   // N, at least 1
  std::uint32_t bucket_records = 8;  // b, at least 1
  double load_max = 0.8;             // above 0; with overflow pages it may exceed 1
  Seed seed;
};

// Work since the table was made.
struct LinearHashWork {
  std::uint64_t page_reads = 0;       // by find() and add()
  std::uint64_t key_comparisons = 0;  // of keys whose hashes are equal
  std::uint64_t splits = 0;
  std::uint64_t keys_moved = 0;  // by splits
};

class LinearHashTable {
 public:
  // REQUIRES: options in their ranges.
  explicit LinearHashTable(const LinearHashOptions& options = {});

  // Adds a key that is not there; returns the table's copy, which stays as long as the table, or
  // nothing if the key was there.
  std::optional<std::string_view> add(std::string_view key);
  // True if the key is there. Counts the work.
  bool find(std::string_view key);

  std::uint64_t size() const { return size_; }
  std::uint64_t buckets() const { return primary_.pages.size(); }
  // Overflow pages in use.
  std::uint64_t overflow_pages() const { return overflow_.pages.size() - free_.size(); }
  std::uint32_t level() const { return level_; }
  std::uint64_t split_pointer() const { return split_; }
  double load() const;
  const LinearHashWork& work() const { return work_; }
  // Pages, records of 24 bytes, and the bytes of the keys, with what is reserved for more.
  std::uint64_t memory_bytes() const;

  // True if each key lies in its bucket, no page before the last of a chain has space, and the
  // counts are right. Reads the whole table.
  bool is_sound() const;

 private:
  static constexpr std::uint32_t kNoPage = UINT32_MAX;
  struct Record {
    std::uint64_t hash = 0;
    std::string_view key;
  };
  struct Page {
    std::uint32_t count = 0;
    std::uint32_t next = kNoPage;  // in the overflow pages
  };
  struct Pages {
    std::deque<Page> pages;
    std::deque<Record> records;  // `bucket_records` of each page
  };
  // A page of a chain.
  struct Place {
    Pages* pages = nullptr;
    std::uint64_t page = 0;
  };

  Record& record_at(const Place& place, std::uint32_t i) const;
  static Page& page_at(const Place& place) { return place.pages->pages[place.page]; }
  std::uint64_t buckets_of_level() const { return std::uint64_t{options_.first_buckets} << level_; }
  std::uint64_t bucket_of(std::uint64_t hash) const;
  // True if the key is in the chain; `last` receives the chain's last page.
  bool find_in(std::uint64_t bucket, const Record& wanted, Place& last);
  void append_page(Pages& pages) const;
  // Adds a record to the chain that ends in `last`.
  void put(Place last, const Record& record);
  void put_in_bucket(std::uint64_t bucket, const Record& record);
  void split();
  std::vector<Record> take_all(std::uint64_t bucket);
  std::string_view keep(std::string_view key);
  std::uint64_t hash_of(std::string_view key) const;

  LinearHashOptions options_;
  Pages primary_;  // page i is bucket i
  Pages overflow_;
  std::vector<std::uint32_t> free_;  // overflow pages
  std::uint32_t level_ = 0;
  std::uint64_t split_ = 0;
  std::uint64_t size_ = 0;
  LinearHashWork work_;
  std::vector<std::unique_ptr<char[]>> chunks_;  // bytes of keys
  std::size_t chunk_left_ = 0;
  char* chunk_at_ = nullptr;
  std::uint64_t chunk_bytes_ = 0;
};

}  // namespace encore::filter
