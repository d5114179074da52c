// CodingTurn: shares what coding may take of a turn of its worker's loop among the bodies that have
// something to code, so that other clients wait no longer, however many bodies there are. Confined
// to its worker.
#pragma once

#include <algorithm>
#include <cstddef>

#include "base/time.h"
#include "proxy/net/loop.h"

namespace encore::server {

class CodingTurn {
 public:
  // Content bytes coded in one turn: a millisecond or two by gzip.
  static constexpr std::size_t kBytes = 64 * 1024;
  static constexpr std::size_t kShareMax = 32 * 1024;  // per body
  static constexpr std::size_t kShareMin = 512;        // less is not worth its call

  // `loop` is borrowed.
  explicit CodingTurn(net::Loop& loop) : loop_(loop) {}

  // How much a body may code in this turn. As many as in the turn before are taken to come.
  std::size_t share() {
    const MonotonicTime turn = loop_.now();
    if (turn != turn_) {
      turn_ = turn;
      before_ = here_;
      here_ = 0;
    }
    ++here_;
    return std::clamp(kBytes / std::max(before_, here_), kShareMin, kShareMax);
  }

 private:
  net::Loop& loop_;
  MonotonicTime turn_{};
  std::size_t before_ = 0;  // bodies, in the turn before
  std::size_t here_ = 0;    // in this one
};

}  // namespace encore::server
