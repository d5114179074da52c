// OriginWarnings: what is to be logged of origins that cannot be reached, each reason of each
// origin at most once a second a worker: clients learn the kind of failure only, and an origin that
// is down fails every request. Confined to its worker.
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
  // Of so many the last time is known. Where more occur within a second, the rest are counted only.
  static constexpr std::size_t kReasonsMax = 64;

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

  std::vector<Reason> reasons_;
  std::uint64_t untold_ = 0;  // of reasons that found no place
};

}  // namespace encore::server
