// HotKeys: the keys that have a large share of a group's requests, by Space-Saving sketches of the
// last kWindow to twice as many. It counts requests, not time, so that the answer follows from the
// requests alone. A key is hot only if its share is certain: a sketch's error never makes it so.
// Why so: docs/decisions/0621. Thread-compatible.
#pragma once

#include <cstdint>

#include "proxy/observe/heavy_hitters.h"

namespace encore::server {

class HotKeys {
 public:
  static constexpr std::uint64_t kWindow = 1000;
  // Requests for a key before it can be hot: below them a share of a few percent is chance.
  static constexpr std::uint64_t kRequestsMin = 32;

  // `share` of the requests, 1 for all, makes a key hot. REQUIRES: above 0.
  explicit HotKeys(double share) : share_(share) {}

  // Counts a request for a key, by its hash. True if the key is hot now.
  bool count(std::uint64_t key);

 private:
  double share_;
  std::uint64_t requests_ = 0;         // in current_
  std::uint64_t requests_before_ = 0;  // in before_
  HeavyHitters current_;               // the window that runs
  HeavyHitters before_;                // the window before it
};

}  // namespace encore::server
