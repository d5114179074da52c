// Makes the purges of a log fewer without forgetting any: those of one key, or of one pattern, are
// one, of the highest version, kept as long as the longest would be. Thread-compatible.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_map>

#include "filter/hash.h"
#include "proxy/disk/purge_frame.h"

namespace encore::disk {

class PurgeMerger {
 public:
  // `known_max` bounds the keys and patterns that are merged, and thereby memory; purges of further
  // ones stay unmerged.
  explicit PurgeMerger(std::size_t known_max) : known_max_(known_max) {}

  // First all are shown, then all are taken, in the same order.
  void show(const Purge& purge);
  // Returns the purge that the log keeps in the place of it; nothing: a later one covers it.
  // REQUIRES: it was shown.
  std::optional<Purge> take(const Purge& purge);

 private:
  struct Subject {
    PurgeKind kind = PurgeKind::kKey;
    filter::Hash128 of;  // the key, or that of the pattern
    friend bool operator==(const Subject&, const Subject&) = default;
  };
  struct SubjectHash {
    std::size_t operator()(const Subject& subject) const {
      return static_cast<std::size_t>(subject.of.lo) ^ static_cast<std::size_t>(subject.kind);
    }
  };
  struct Merged {
    cache::DiskVersion version = 0;
    std::uint64_t sequence = 0;
    std::uint64_t left = 0;  // to be taken
  };
  static Subject subject_of(const Purge& purge);

  const std::size_t known_max_;
  std::unordered_map<Subject, Merged, SubjectHash> known_;
};

}  // namespace encore::disk
