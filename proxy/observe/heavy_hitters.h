// HeavyHitters: the names with the most weight among many, in bounded memory: Space-Saving
// (Metwally, Agrawal, El Abbadi 2005). With a total weight W, each name with more than W / kNames
// is among them; the reported weight of a name is too high by at most its `error`.
// Thread-compatible.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace encore::server {

class HeavyHitters {
 public:
  static constexpr std::size_t kNames = 64;
  static constexpr std::size_t kNameBytesMax = 128;  // longer names are cut

  struct Item {
    std::string name;
    std::uint64_t weight = 0;
    std::uint64_t error = 0;  // the part of the weight that may have been another's
  };

  void add(std::string_view name, std::uint64_t weight);
  // The weight that is the name's in any case; 0 for one that is not among them.
  std::uint64_t weight_at_least(std::string_view name) const;
  // In no order.
  std::span<const Item> items() const { return items_; }
  // Takes in what another has: sums of what both know; the sketch keeps its bound.
  void merge(const HeavyHitters& other);
  // The heaviest, at most `count`, the heaviest first.
  std::vector<Item> top(std::size_t count) const;

 private:
  void add(std::string_view name, std::uint64_t weight, std::uint64_t error);

  std::vector<Item> items_;
};

}  // namespace encore::server
