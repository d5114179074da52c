#include "proxy/observe/server_counters.h"

#include <algorithm>

namespace encore::server {

std::size_t answer_bucket(Nanoseconds time) noexcept {
  const double seconds = std::chrono::duration<double>(time).count();
  const auto* const found = std::ranges::lower_bound(kAnswerBounds, seconds);
  return static_cast<std::size_t>(found - kAnswerBounds.begin());
}

void ServerSums::add(const ServerCounts& part) {
#define ENCORE_ADD(member, meaning) member += part.member.get();
  ENCORE_SERVER_COUNTERS(ENCORE_ADD)
#undef ENCORE_ADD
  connections += part.connections.get();
  for (std::size_t i = 0; i < failures.size(); ++i) failures[i] += part.failures[i].get();
  for (std::size_t i = 0; i < answer_times.size(); ++i) {
    answer_times[i] += part.answer_times[i].get();
  }
}

ServerSums ServerCounters::sums() const {
  ServerSums all;
  parts_.each([&](const ServerCounts& part) { all.add(part); });
  return all;
}

void ServerTally::add_answer(int status, Nanoseconds time) const {
  constexpr int kClientError = 400;
  constexpr int kServerError = 500;
  const auto microseconds = std::chrono::floor<std::chrono::microseconds>(time).count();
  const std::size_t bucket = answer_bucket(time);
  each([&](ServerCounts& part) {
    part.answers.add();
    part.answer_microseconds.add(microseconds < 0 ? 0 : static_cast<std::uint64_t>(microseconds));
    part.answer_times.at(bucket).add();
    if (status >= kServerError) {
      part.errors_5xx.add();
    } else if (status >= kClientError) {
      part.errors_4xx.add();
    }
  });
}

}  // namespace encore::server
