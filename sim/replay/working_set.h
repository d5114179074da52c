// WorkingSet: the average number of objects, and of their bytes, in the last tau requests, for all
// tau that are powers of two (Denning 1968). It takes one pass, by the times between requests for
// the same object (Denning and Schwartz 1972). IntervalWorkingSet: the same of the requests of each
// interval. Deterministic; thread-compatible.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace encore::sim {

class WorkingSet {
 public:
  // An object was asked for, and `requests` requests later (at least 1) it is asked for again, or
  // the trace ends there. `bytes`: its size.
  void add(std::uint64_t requests, std::uint64_t bytes);

  struct Mean {
    double objects = 0;
    double bytes = 0;
  };
  // Over all windows of 2^exponent requests that end at one of the trace's `requests` requests;
  // the first windows begin with the trace.
  Mean mean(unsigned exponent, std::uint64_t requests) const;

 private:
  struct Sums {
    double count = 0;
    double distance = 0;
    double bytes = 0;
    double bytes_distance = 0;
  };
  std::array<Sums, 65> sums_{};  // by bit_width(requests - 1): up to 2^i, above 2^(i-1)
};

class IntervalWorkingSet {
 public:
  // `bytes`: the object's largest size so far.
  void add(std::uint32_t object, std::uint64_t bytes);
  // Ends the interval, begins the next.
  void next_interval();
  // Objects of this interval so far.
  std::uint64_t objects() const { return objects_; }
  std::uint64_t bytes() const { return bytes_; }

 private:
  struct Last {
    std::uint64_t bytes = 0;
    std::uint32_t interval = 0;
  };
  std::vector<Last> last_;  // by object
  std::uint32_t interval_ = 1;
  std::uint64_t objects_ = 0;
  std::uint64_t bytes_ = 0;
};

}  // namespace encore::sim
