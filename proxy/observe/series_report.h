// Counters of listeners, rules and errors, each by its name, and of names without series of their
// own in /metrics. Values.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "proxy/observe/outcome.h"
#include "proxy/observe/server_counters.h"

namespace encore::server {

using ClassCounts = std::array<std::uint64_t, kOutcomeClassCount>;  // by OutcomeClass

struct ListenerReport {
  std::string name;
  ClassCounts requests{};
  std::uint64_t sent_bytes = 0;
  std::uint64_t received_bytes = 0;
  std::uint64_t accepted = 0;
  std::uint64_t open = 0;
};

struct RuleReport {
  std::string name;
  ClassCounts requests{};
  std::uint64_t responses = 0;
};

struct ErrorReport {
  std::string outcome;
  std::string detail;
  std::uint64_t count = 0;
};

// How many have none.
struct ClippedSeries {
  std::size_t listeners = 0;
  std::size_t origins = 0;
  std::size_t servers = 0;
  std::size_t rules = 0;
  std::size_t errors = 0;  // at most ErrorNames::kClippedMax
};

// For each kind, those with series of their own, and "other" if there are others.
struct SeriesReport {
  std::vector<ListenerReport> listeners;
  std::vector<RuleReport> rules;
  std::vector<ErrorReport> errors;
  ServerSums other_servers;  // sums of servers without series
  ClippedSeries clipped;
};

}  // namespace encore::server
