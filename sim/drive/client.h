// The client that drives a plan through a proxy and checks every response. Reads the clock.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/cli/monitor.h"
#include "base/error.h"
#include "sim/drive/driven_object.h"

namespace encore::sim {

inline constexpr std::uint64_t kConnectionsMax = 1024;
inline constexpr double kRateMax = 1e6;

struct ClientOptions {
  std::string proxy;              // its URL, "http://127.0.0.1:3128"
  std::string authority;          // the origin's, for URLs to a forward proxy
  bool reverse = false;           // the proxy is asked as if it were the origin
  std::uint32_t connections = 1;  // concurrent, 1 to kConnectionsMax
  // 0: closed loop, a request follows its connection's answer. Else open loop: so many requests a
  // second become due, whether or not the ones before have been answered; one that finds no free
  // connection waits, and its latency counts from when it was due. Up to kRateMax.
  double rate = 0;
};

// Words for the outcomes of requests; numbered in the order of their first use.
class OutcomeNames {
 public:
  static constexpr std::uint8_t kNotAsked = 0;
  static constexpr std::uint8_t kError = 1;  // no answer, or another status than 200
  // At most 255 words: those beyond count as errors.
  std::uint8_t number(std::string_view name);
  const std::string& name(std::uint8_t number) const { return names_[number]; }
  std::size_t size() const { return names_.size(); }

 private:
  std::vector<std::string> names_ = {"not-asked", "error"};
};

struct Driven {
  OutcomeNames names;
  std::vector<std::uint8_t> outcomes;  // one per request of the plan
  std::uint64_t answered = 0;          // errors included
  std::uint64_t body_bytes = 0;        // received
  std::uint64_t hit_bytes = 0;         // those of responses with the outcome hit
  std::uint64_t errors = 0;
  std::uint64_t mismatches = 0;           // a body with other bytes or another length
  std::vector<std::string> faults;        // the first few errors and mismatches, for people
  std::vector<std::uint32_t> latency_us;  // for responses without an error, in their order
};

// Asks for all of the plan, or until the monitor stops it. Errors: the proxy cannot be reached at
// all. REQUIRES: options within their bounds, a valid URL.
Result<Driven> drive_plan(const DrivePlan& plan, const ClientOptions& options, Monitor& monitor);

}  // namespace encore::sim
