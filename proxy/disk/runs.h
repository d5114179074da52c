// RunHistory: the last runs of a cache, each from a start to an end. Every disk that takes part in
// a run remembers it, and so does a witness outside of the disks (disk_witness.h). The first purge
// of a run makes all earlier ones invalid: a disk that took part in none since has missed a purge,
// and nobody knows what of it was purged.
//
// A run that ends without a purge makes nobody miss anything, so a crash at any moment between the
// writing of two disks leaves both valid. Pure values. Why purges have no numbers:
// docs/decisions/0390.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace encore::disk {

// Random, unlike those of any other cache or copy. 0: that of a disk that remembers none, for an
// earlier version of encore had it.
using RunId = std::uint64_t;

class RunHistory {
 public:
  // As many as fit a superblock. A disk that was away for more runs has missed too much.
  static constexpr std::size_t kRunsMax = 40;

  RunHistory() = default;
  // As it was saved. Nothing: no history of ours.
  static std::optional<RunHistory> restore(std::uint64_t number, std::size_t valid_from,
                                           std::span<const RunId> runs);

  bool empty() const { return count_ == 0; }
  // Number of the newest run, counted from 1; 0: none.
  std::uint64_t number() const { return number_; }
  std::size_t valid_from() const { return valid_from_; }
  // The oldest first.
  std::span<const RunId> runs() const { return std::span(runs_).first(count_); }
  RunId newest() const { return count_ == 0 ? 0 : runs_[count_ - 1]; }

  // True if a disk whose newest run is this one has missed no purge.
  bool is_valid(RunId run) const;
  bool has(RunId run) const;

  // REQUIRES: not 0.
  void begin(RunId run);
  // A purge of the newest run: returns false where it had one before.
  bool note_purge();
  // Takes over what `other` says of purges in runs that both know.
  void merge_purges(const RunHistory& other);
  // The number of the oldest run that it knows.
  std::uint64_t oldest_number() const { return number_ + 1 - count_; }

  friend bool operator==(const RunHistory&, const RunHistory&) = default;

 private:
  std::uint64_t number_ = 0;
  std::uint32_t count_ = 0;
  std::uint32_t valid_from_ = 0;
  std::array<RunId, kRunsMax> runs_{};
};

// The runs as all histories together tell them.
struct KnownRuns {
  RunHistory history;
  // Two tell of different runs with the same numbers, and no witness decides: copies of one cache
  // went on apart. Neither knows the other's purges.
  bool is_forked = false;
};
// `witness` is believed against any disk that does not know its newest run; empty: there is none.
KnownRuns known_runs(const RunHistory& witness, std::span<const RunHistory> disks);

}  // namespace encore::disk
