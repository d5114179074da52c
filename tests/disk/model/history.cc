#include "tests/disk/model/history.h"

#include <algorithm>

#include "base/check.h"

namespace encore::disk {

bool is_purged_by(const Purge& purge, const RecordFields& fields, std::string_view key,
                  std::string_view meta) {
  if (fields.version >= purge.version) return false;
  switch (purge.kind) {
    case PurgeKind::kKey:
      return purge.key == fields.key;
    case PurgeKind::kTag:
      return meta.find(purge.pattern) != std::string_view::npos;
    case PurgeKind::kPrefix:
      return key.starts_with(purge.pattern);
    case PurgeKind::kBan:
      return key.find(purge.pattern) != std::string_view::npos;
  }
  return false;
}

void History::committed(std::shared_ptr<const Committed> object) {
  const bool is_new = objects_.emplace(object->fields.version, object).second;
  ENCORE_CHECK(is_new, "a version is given once, after crashes too");
}

void History::durable(const filter::Hash128& key, cache::DiskVersion version) {
  cache::DiskVersion& highest = durable_[key];
  highest = std::max(highest, version);
}

std::shared_ptr<const Committed> History::find(cache::DiskVersion version) const {
  const auto found = objects_.find(version);
  return found == objects_.end() ? nullptr : found->second;
}

std::optional<std::string> History::fault_of(const Committed& found) const {
  const std::string what = "version " + std::to_string(found.fields.version) + " of " + found.key;
  const auto object = find(found.fields.version);
  if (object == nullptr) return what + " was never committed";
  if (found.fields != object->fields || found.key != object->key || found.names != object->names ||
      found.meta != object->meta || found.head != object->head || found.body != object->body) {
    return what + " is not what was committed";
  }
  for (const Purge& purge : purges_) {
    if (is_purged_by(purge, found.fields, found.key, found.meta)) {
      return what + " was purged at version " + std::to_string(purge.version);
    }
  }
  const auto newer = durable_.find(found.fields.key);
  if (newer != durable_.end() && newer->second > found.fields.version) {
    return what + " is older than version " + std::to_string(newer->second) + ", which was durable";
  }
  return std::nullopt;
}

}  // namespace encore::disk
