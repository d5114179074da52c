// Explanation: what is said of a request, by the configuration alone and of a running proxy.
// Values; text for people, JSON for programs. Thread-compatible.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/time.h"
#include "cache/request_history.h"
#include "proxy/exchange/recent_outcomes.h"

namespace encore::server {

// A stored response to a key's requests.
struct ExplainedVariant {
  bool on_disk = false;
  bool selected = false;  // a request would get this one
  std::uint64_t variant = 0;
  std::string varies_by = {};    // the names that tell variants apart, with what this one has
  int status = 0;                // 0: not known before it is read from disk
  std::uint64_t body_bytes = 0;  // on disk: the room of the record
  std::uint64_t charge_bytes = 0;
  std::int64_t age_seconds = 0;
  std::int64_t fresh_seconds = 0;  // left; negative: stale for so long
  std::int64_t kept_seconds = 0;   // left until it is of no use at all
  std::string storable = {};       // the reason for that
  std::string barred = {};         // why a request would not get it; empty: no reason of its own
};

// A running proxy's state, in addition to its configuration.
struct ExplainedState {
  bool is_looked_up = true;  // else it has no key, and nothing is stored of it or remembered
  std::vector<ExplainedVariant> stored;
  std::string policy;
  cache::RequestHistory recalled;
  std::string now_kind;  // the way a request would be handled now, in a word
  std::string now_text;  // and in words
  std::vector<RecentOutcomes::Outcomes> outcomes;
  WallTime wall{};
};

struct Explanation {
  // A label and what it says; a line without a label goes on with the one before.
  std::vector<std::pair<std::string, std::string>> lines;
  std::optional<ExplainedState> state;  // nothing: by the configuration alone

  void add(std::string_view label, std::string_view text) { lines.emplace_back(label, text); }
};

// Why responses may not be stored, with the clause; empty for kOk.
std::string_view clause_of(http::StoreReason reason) noexcept;

// Lines of a label and what it says, printable characters alone.
std::string text_of(const Explanation& explanation);
std::string json_of(const Explanation& explanation);

}  // namespace encore::server
