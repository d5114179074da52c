// How long things may take in a round, by its adversity, and when it begins. Pure.
#pragma once

#include <cstdint>

#include "tests/simulate/adversity.h"

namespace encore::simulate {

// Here all have one clock, and what it shows is what has happened.
inline constexpr double kSlack = 0.001;

// Seconds that what the origin did may be on its way until a worker's turn takes it.
double way_max(const Adversity& adversity);
// Seconds from a turn of who sends a piece to one of who reads it: both may be late.
double piece_max(const Adversity& adversity);
// In seconds by the wall clock. An hour ends in the midst of most rounds.
std::int64_t wall_start(std::uint64_t seed);
Adversity draw_adversity(std::uint64_t seed, const Features& features);

// How long a failed connection may show, by settings.cc: until its server is no longer set aside,
// and before that until a connect's time is up.
inline constexpr double kShortTrouble = 0.15;
inline constexpr double kLongTrouble = 1.3;

}  // namespace encore::simulate
