// GhostRecords: as GhostQueue, with a value for each key. Keys are dropped in the order of their
// insertion. 16 bytes and those of the value, and 21 to 43 of the map, a key. Thread-compatible.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "cache/ghost_queue.h"

namespace encore::cache {

template <typename Value>
class GhostRecords {
 public:
  std::size_t size() const { return size_; }

  // REQUIRES: the key is not there.
  void insert(const filter::Hash128& key, const Value& value) {
    std::uint32_t record = free_;
    if (record == kNone) {
      record = static_cast<std::uint32_t>(records_.size());
      records_.emplace_back();
    } else {
      free_ = records_[record].newer;
    }
    const std::uint64_t mixed = filter::remix(key);
    records_[record] = {.key = mixed, .older = newest_, .newer = kNone, .value = value};
    (newest_ == kNone ? oldest_ : records_[newest_].newer) = record;
    newest_ = record;
    numbers_.set(mixed, record);
    ++size_;
  }
  // Removes the key. Returns its value; empty: it was not there.
  std::optional<Value> take(const filter::Hash128& key) {
    const auto record = static_cast<std::uint32_t>(numbers_.take(filter::remix(key)));
    return record == kNone ? std::nullopt : std::optional<Value>(release(record));
  }
  // Removes the oldest one. REQUIRES: size() != 0.
  Value take_oldest() {
    numbers_.erase(records_[oldest_].key);
    return release(oldest_);
  }
  // Asks for the memory that take() will need.
  void prefetch(const filter::Hash128& key) const { numbers_.prefetch(filter::remix(key)); }

 private:
  static constexpr std::uint32_t kNone = 0;
  struct Record {
    std::uint64_t key = 0;
    std::uint32_t older = kNone;
    std::uint32_t newer = kNone;  // the next one, if it is free
    Value value{};
  };
  Value release(std::uint32_t number) {
    Record& record = records_[number];
    (record.older == kNone ? oldest_ : records_[record.older].newer) = record.newer;
    (record.newer == kNone ? newest_ : records_[record.newer].older) = record.older;
    record.newer = free_;
    free_ = number;
    --size_;
    return record.value;
  }

  std::vector<Record> records_ = std::vector<Record>(1);
  GhostMap numbers_;  // records by keys
  std::uint32_t oldest_ = kNone;
  std::uint32_t newest_ = kNone;
  std::uint32_t free_ = kNone;
  std::size_t size_ = 0;
};

}  // namespace encore::cache
