// Occupancy: how many bytes a schedule holds at each moment of a trace, for schedules that are made
// in any order of time. A tree with 64 children a node; 8 bytes a moment and an eighth of a byte
// more; questions and changes take some hundreds of steps, however long the time.
// Thread-compatible.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace encore::sim {

// Half-open.
struct Moments {
  std::size_t from = 0;
  std::size_t to = 0;
};

class Occupancy {
 public:
  explicit Occupancy(std::size_t moments);

  // REQUIRES, here and below: from < to, to is at most the number of moments.
  // Whether no moment holds more than so many bytes.
  bool is_below(const Moments& during, std::uint64_t bytes_max) const {
    return is_below(top(), 0, during, bytes_max);
  }
  void add(const Moments& during, std::uint64_t bytes) { add(top(), 0, during, bytes); }

 private:
  static constexpr std::size_t kChildren = 64;
  // Its nodes: the largest sum within each, with what was added to the node as a whole, but without
  // what was to those above it. The lowest level's nodes are the moments.
  struct Level {
    std::size_t moments_a_node = 1;
    std::vector<std::uint64_t> largest;
    std::vector<std::uint64_t> added;
  };
  std::size_t top() const { return levels_.size() - 1; }
  bool is_below(std::size_t level, std::size_t node, const Moments& during,
                std::uint64_t bytes_max) const;
  void add(std::size_t level, std::size_t node, const Moments& during, std::uint64_t bytes);

  std::vector<Level> levels_;
};

}  // namespace encore::sim
