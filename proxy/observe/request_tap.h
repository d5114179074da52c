// RequestTap: the latest records of requests, for operators that follow them. It is off, and costs
// nothing, while nobody does. Memory is bounded: what is not fetched in time is dropped, and
// counted. Thread-safe.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "base/mutex.h"

namespace encore::server {

class RequestTap {
 public:
  static constexpr std::size_t kBytesMax = 1024 * 1024;
  static constexpr std::size_t kRecordBytes = 64;  // that a record takes in addition to its text

  void set_on(bool on) { on_.store(on, std::memory_order_relaxed); }
  bool is_on() const { return on_.load(std::memory_order_relaxed); }

  // Adds a record, a line of JSON with its newline.
  void add(std::string line);

  struct RecordBatch {
    std::vector<std::string> lines;  // without newlines, the oldest first
    std::uint64_t next = 0;          // number of the record behind the last of them
    std::uint64_t dropped = 0;       // records behind `from` that are not there any more
  };
  // The records from number `from` on, at most `most` of them. A number that has not been given yet
  // stands for the next record.
  RecordBatch take(std::uint64_t from, std::size_t most) const;
  // The number of the next record.
  std::uint64_t next() const;

 private:
  std::atomic<bool> on_ = false;
  mutable Mutex mutex_;
  std::deque<std::string> lines_ ENCORE_GUARDED_BY(mutex_);
  std::uint64_t next_ ENCORE_GUARDED_BY(mutex_) = 0;
  std::size_t bytes_ ENCORE_GUARDED_BY(mutex_) = 0;
};

}  // namespace encore::server
