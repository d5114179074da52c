// A round in a process of its own, so that one that ends by a signal is a finding like any other;
// and the search for a shorter run that fails in the same way.
#pragma once

#include <sys/types.h>

#include <cstdio>
#include <functional>
#include <string>

#include "tests/simulate/round.h"

namespace encore::simulate {

// A round that runs in another process.
class RunningRound {
 public:
  explicit RunningRound(const Plan& plan);
  // Ends one that was not waited for.
  ~RunningRound();
  RunningRound(const RunningRound&) = delete;
  RunningRound& operator=(const RunningRound&) = delete;

  const Plan& plan() const { return plan_; }
  // The same as run_round(), where the proxy lives; else a finding "crash" with what it said.
  // REQUIRES: called once.
  RoundResult wait();

 private:
  Plan plan_;
  pid_t child_ = -1;
  std::FILE* results_ = nullptr;
  std::FILE* errors_ = nullptr;
};

inline RoundResult attempt(const Plan& plan) { return RunningRound(plan).wait(); }

struct Shortened {
  Plan plan;
  RoundResult result;
};
using Run = std::function<RoundResult(const Plan&)>;
// Fewer requests, clients and URLs, and without one feature of the adversity after the other, while
// a run still fails by the same kind of finding. Each omission makes another run of it, so that
// each step is tried with a few seeds. `attempts_max` runs at most. The result has been run
// unchanged: the plan fails with the result next to it.
Shortened shorten(const Plan& plan, const RoundResult& failed, std::uint32_t attempts_max,
                  const Run& run = attempt);

// "--seed 4 --mode forward ...": what repeats it.
std::string arguments_of(const Plan& plan);

}  // namespace encore::simulate
