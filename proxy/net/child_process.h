// Child processes: started with the descriptors that they are given, and no others.
#pragma once

#include <sys/types.h>

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace encore::net {

struct ChildPlan {
  std::string path;
  std::vector<std::string> arguments;  // the first is its name
  std::vector<std::string> variables;  // "NAME=value"
  // One of ours becomes one of the child's. It has the standard ones and those up to `last` only.
  struct Descriptor {
    int ours;
    int its;
  };
  std::vector<Descriptor> descriptors;
  int last_descriptor = 2;
  bool has_own_group = false;  // so that a signal to it reaches the processes that it starts
  // A service manager sends SIGTERM to all processes of a service. This one is to work on until its
  // input ends.
  bool blocks_sigterm = false;
};

// Starts it with no other signal blocked or ignored. Errors: "cannot start PATH: why".
Result<pid_t> start_child(const ChildPlan& plan);
// Waits for its end: "status N" or "signal N".
std::string reap(pid_t process);
// The variables of this process without those that begin with one of these, as "NAME=".
std::vector<std::string> variables_without(std::span<const std::string_view> left_out);

}  // namespace encore::net
