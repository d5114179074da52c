// The crash model: a disk is driven through random lives; at each write of each life, whatever a
// crash may leave then is recovered and compared with what was promised. Deterministic by the seed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace encore::disk {

struct CrashOptions {
  std::uint64_t seed = 1;
  int lives = 4;
  int steps = 60;    // steps of a life
  int subsets = 20;  // subsets of the unsynced writes, at each write
};

struct CrashReport {
  std::uint64_t writes = 0;
  std::uint64_t images = 0;   // recovered and compared
  std::uint64_t records = 0;  // that were found on them
  std::uint64_t heads = 0;    // those with all parts of their bodies
  std::uint64_t scanned = 0;  // segments without a footer
  std::uint64_t turns = 0;
  std::uint64_t moved = 0;
  std::uint64_t moved_parts = 0;
  std::uint64_t purges = 0;
  std::optional<std::string> fault;  // the first, with where it was
};

CrashReport run_crash_model(const CrashOptions& options);

}  // namespace encore::disk
