// TreeSum: regression trees whose leaves are added up, as XGBoost writes them. Reads its dump of a
// model, so that a prediction is a walk through arrays and no call of a library. Thread-compatible.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace encore::sim {

class TreeSum {
 public:
  explicit TreeSum(float base = 0) : base_(base) {}

  // Adds a tree: lines "0:[f2<1.5] yes=1,no=2,missing=1" and "1:leaf=.5". Errors: a line that is
  // neither, or a node that is named and not there.
  Result<void> add(std::string_view dump);
  // REQUIRES: the row has all features that the trees name; NaN: unknown.
  float predict(std::span<const float> row) const;

 private:
  struct Node {
    float value = 0;            // a leaf's, or the border below which `yes` follows
    std::int32_t feature = -1;  // below 0: a leaf
    std::uint32_t yes = 0;      // from the first node of all
    std::uint32_t no = 0;
    std::uint32_t missing = 0;
  };
  static bool parse(std::string_view line, std::uint32_t first, std::vector<Node>& nodes,
                    std::vector<bool>& defined);

  float base_;
  std::vector<Node> nodes_;
  std::vector<std::uint32_t> roots_;
};

}  // namespace encore::sim
