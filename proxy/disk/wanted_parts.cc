#include "proxy/disk/wanted_parts.h"

#include <algorithm>

#include "base/check.h"
#include "cache/disk_parts.h"

namespace encore::disk {

void WantedParts::set_most(std::uint64_t parts) {
  const MutexLock lock(mutex_);
  most_ = parts;
}

WantedParts::Number WantedParts::add(const Body& body) {
  ENCORE_CHECK(body.from <= body.to, "parts from one to another");
  const MutexLock lock(mutex_);
  const std::uint64_t parts = body.to - body.from;
  if (parts > most_ - std::min(parts_, most_)) return 0;
  parts_ += parts;
  bodies_.emplace(++last_, body);
  return last_;
}

void WantedParts::advance(Number number, std::uint32_t from) {
  const MutexLock lock(mutex_);
  const auto at = bodies_.find(number);
  if (at == bodies_.end()) return;
  Body& body = at->second;
  const std::uint32_t left = std::clamp(from, body.from, body.to);
  parts_ -= left - body.from;
  body.from = left;
}

void WantedParts::remove(Number number) {
  const MutexLock lock(mutex_);
  const auto at = bodies_.find(number);
  if (at == bodies_.end()) return;
  parts_ -= at->second.to - at->second.from;
  bodies_.erase(at);
}

std::vector<cache::Key> WantedParts::keys() const {
  const MutexLock lock(mutex_);
  std::vector<cache::Key> keys;
  for (const auto& [number, body] : bodies_) {
    for (std::uint32_t part = body.from; part < body.to; ++part) {
      keys.push_back(cache::part_key(body.object, body.number, part));
    }
  }
  return keys;
}

}  // namespace encore::disk
