// Examples: rows of features with a target that is known later, for a policy that learns. An
// example waits in a list of its owner until its target is known, and is then part of the batch.
// Thread-compatible.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace encore::cache {

class Examples {
 public:
  // An owner's list.
  using List = std::uint32_t;
  static constexpr List kNone = 0xffffffffU;

  explicit Examples(std::size_t width) : width_(width) {}

  // Adds one to the list. Returns its row, to be written.
  float* add(List& list, std::uint64_t now) {
    std::uint32_t number = free_;
    if (number == kNone) {
      number = static_cast<std::uint32_t>(waiting_.size());
      waiting_.emplace_back();
      rows_.resize(rows_.size() + width_);
    } else {
      free_ = waiting_[number].next;
    }
    waiting_[number] = {.drawn = now, .next = list};
    list = number;
    return &rows_[number * width_];
  }
  // The targets of all in the list are known: the time until `end`, on a logarithmic scale.
  void end_at(List& list, std::uint64_t end) {
    for (List at = list; at != kNone; at = waiting_[at].next) {
      end_with(at, end - waiting_[at].drawn);
    }
    drop(list);
  }
  // The same, if it will not come for so long.
  void end_after(List& list, std::uint64_t time) {
    for (List at = list; at != kNone; at = waiting_[at].next) {
      end_with(at, time);
    }
    drop(list);
  }
  // Their targets will not be known.
  void drop(List& list) {
    while (list != kNone) {
      const List next = waiting_[list].next;
      waiting_[list].next = free_;
      free_ = list;
      list = next;
    }
  }

  std::size_t size() const { return targets_.size(); }  // in the batch
  std::span<const float> rows() const { return batch_; }
  std::span<const float> targets() const { return targets_; }
  void clear_batch() {
    batch_.clear();
    targets_.clear();
  }

 private:
  struct Waiting {
    std::uint64_t drawn = 0;  // time
    List next = kNone;
  };
  void end_with(std::uint32_t number, std::uint64_t time) {
    const auto row = rows_.begin() + static_cast<std::ptrdiff_t>(number * width_);
    batch_.insert(batch_.end(), row, row + static_cast<std::ptrdiff_t>(width_));
    targets_.push_back(std::log2(1 + static_cast<float>(time)));
  }

  std::size_t width_;
  std::vector<Waiting> waiting_;
  std::vector<float> rows_;  // one for each of them
  std::uint32_t free_ = kNone;
  std::vector<float> batch_;
  std::vector<float> targets_;
};

}  // namespace encore::cache
