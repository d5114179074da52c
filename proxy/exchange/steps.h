// The steps of a request that is no plain hit, and which may follow which. One table: an exchange
// is held to it, and the diagram in docs/ARCHITECTURE.md is drawn from it. Pure.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

namespace encore::server {

enum class Step : std::uint8_t {
  kBegun,
  kLoad,
  kStored,
  kAbsent,
  kAsk,
  kWait,
  kRespond,
  kEnded,
};

// A set of steps.
class Steps {
 public:
  constexpr Steps(std::initializer_list<Step> steps) {
    for (const Step step : steps) bits_ |= bit(step);
  }
  constexpr bool has(Step step) const { return (bits_ & bit(step)) != 0; }

 private:
  static constexpr std::uint32_t bit(Step step) { return 1U << static_cast<unsigned>(step); }
  std::uint32_t bits_ = 0;
};

struct StepRow {
  Step step;
  std::string_view name;
  std::string_view what;  // is done in it
  Steps next;
};

// In the order of the enumerators.
inline constexpr std::array<StepRow, 8> kSteps = {{
    {Step::kBegun,
     "begun",
     "chooses between own response, cache and origin",
     {Step::kLoad, Step::kStored, Step::kAbsent, Step::kAsk, Step::kRespond, Step::kEnded}},
    {Step::kLoad,
     "load",
     "waits for the record on disk",
     {Step::kStored, Step::kAbsent, Step::kEnded}},
    {Step::kStored,
     "stored",
     "is fresh, may be served stale, or needs validation",
     {Step::kAbsent, Step::kAsk, Step::kRespond}},
    {Step::kAbsent,
     "absent",
     "chooses whether to request the whole object",
     {Step::kAsk, Step::kRespond}},
    {Step::kAsk, "ask", "joins or starts a transfer", {Step::kWait}},
    {Step::kWait,
     "wait",
     "waits for the transfer's head, a validation or a failure",
     {Step::kLoad, Step::kStored, Step::kAbsent, Step::kRespond, Step::kEnded}},
    {Step::kRespond, "respond", "sends the requested part of the response", {Step::kEnded}},
    {Step::kEnded, "ended", "writes one record for log and counters", {}},
}};

constexpr bool may_follow(Step step, Step next) {
  return kSteps[static_cast<std::size_t>(step)].next.has(next);
}

// The table as text, for docs/ARCHITECTURE.md.
std::string draw_steps();

}  // namespace encore::server
