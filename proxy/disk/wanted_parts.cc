#include "proxy/disk/wanted_parts.h"

#include <algorithm>

#include "base/check.h"
#include "cache/disk_parts.h"

namespace encore::disk {
namespace {

std::uint64_t bytes_of(const WantedParts::Body& body) {
  const auto begin_of = [&](std::uint64_t part) {
    return std::min(part * cache::kPartBytes, body.length);
  };
  return begin_of(body.to) - begin_of(body.from);
}

}  // namespace

void WantedParts::set_most(std::uint64_t bytes) {
  const MutexLock lock(mutex_);
  most_ = bytes;
}

WantedParts::Number WantedParts::add(const Body& body) {
  ENCORE_CHECK(body.from <= body.to, "parts from one to another");
  const MutexLock lock(mutex_);
  const std::uint64_t bytes = bytes_of(body);
  // Its reader goes on all the same, and loses what a reclaim takes before it comes there
  // (docs/decisions/0150).
  if (bytes > most_ - bytes_) return 0;
  bytes_ += bytes;
  bodies_.emplace(++last_, body);
  return last_;
}

void WantedParts::advance(Number number, std::uint32_t from) {
  const MutexLock lock(mutex_);
  const auto at = bodies_.find(number);
  if (at == bodies_.end()) return;
  Body& body = at->second;
  bytes_ -= bytes_of(body);
  body.from = std::clamp(from, body.from, body.to);
  bytes_ += bytes_of(body);
}

void WantedParts::remove(Number number) {
  const MutexLock lock(mutex_);
  const auto at = bodies_.find(number);
  if (at == bodies_.end()) return;
  bytes_ -= bytes_of(at->second);
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
