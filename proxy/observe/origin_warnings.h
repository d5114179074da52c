// OriginWarnings: what is to be logged of origins that cannot be reached, each reason of each
// origin at most once a second a worker: clients learn the kind of failure only, and an origin that
// is down fails every request. Confined to its worker.
//
// A worker has one for the servers of [[origin]]s, and one with few reasons for what clients of a
// forward proxy name, who can name as many as they like.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"

namespace encore::server {

class OriginWarnings {
 public:
  // The number of reasons with a known time. If more occur within a second, the rest are only
  // counted.
  static constexpr std::size_t kReasonsMax = 64;
  static constexpr std::size_t kForwardReasonsMax = 8;

  explicit OriginWarnings(std::size_t reasons_max = kReasonsMax) : reasons_max_(reasons_max) {}

  // Logs the line, if there is one.
  void tell(std::string_view origin, std::string_view why, MonotonicTime now);
  // The line to log; empty where nothing is to be said now. `origin` is a server of an [[origin]],
  // "https://localhost:8443"; `why` is the failure's text.
  std::string line(std::string_view origin, std::string_view why, MonotonicTime now);

 private:
  struct Reason {
    std::string text;  // "origin https://localhost:8443: refused"
    MonotonicTime told{};
    std::uint64_t untold = 0;
  };
  Reason* find(std::string&& text, MonotonicTime now);

  const std::size_t reasons_max_;
  std::vector<Reason> reasons_;
  std::uint64_t untold_ = 0;  // number of reasons that found no place
};

}  // namespace encore::server
