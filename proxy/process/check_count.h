// CheckCount: what checks of a server say, one after the other: down after so many failures in a
// row, up again after so many successes. Pure, thread-compatible.
#pragma once

#include <cstdint>
#include <optional>

namespace encore::server {

class CheckCount {
 public:
  struct Thresholds {
    std::uint32_t down = 1;  // in a row
    std::uint32_t up = 1;
  };
  enum class Change : std::uint8_t { kDown, kUp };
  CheckCount(const Thresholds& thresholds, bool is_down)
      : thresholds_(thresholds), is_down_(is_down) {}

  // Counts one more check. Returns the change that follows from it.
  std::optional<Change> note(bool is_good) {
    if (is_good != is_down_) {
      against_ = 0;
      return {};
    }
    if (++against_ < (is_down_ ? thresholds_.up : thresholds_.down)) return {};
    against_ = 0;
    is_down_ = !is_down_;
    return is_down_ ? Change::kDown : Change::kUp;
  }
  bool is_down() const { return is_down_; }

 private:
  const Thresholds thresholds_;
  bool is_down_;
  std::uint32_t against_ = 0;  // in a row, against the present state
};

}  // namespace encore::server
