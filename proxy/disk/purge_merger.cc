#include "proxy/disk/purge_merger.h"

#include <algorithm>

namespace encore::disk {

PurgeMerger::Subject PurgeMerger::subject_of(const Purge& purge) {
  if (purge.kind == PurgeKind::kKey) return {purge.kind, purge.key};
  return {purge.kind, filter::hash_key(filter::HashFamily::kSiphash, {}, purge.pattern)};
}

void PurgeMerger::show(const Purge& purge) {
  const Subject subject = subject_of(purge);
  auto found = known_.find(subject);
  if (found == known_.end()) {
    if (known_.size() == known_max_) return;
    found = known_.emplace(subject, Merged{}).first;
  }
  Merged& merged = found->second;
  merged.version = std::max(merged.version, purge.version);
  merged.sequence = std::max(merged.sequence, purge.sequence);
  ++merged.left;
}

std::optional<Purge> PurgeMerger::take(const Purge& purge) {
  const auto found = known_.find(subject_of(purge));
  if (found == known_.end()) return purge;
  Merged& merged = found->second;
  if (--merged.left != 0) return std::nullopt;
  Purge last = purge;
  last.version = merged.version;
  last.sequence = merged.sequence;
  return last;
}

}  // namespace encore::disk
