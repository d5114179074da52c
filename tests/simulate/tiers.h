// Tiers: places of a URL's stored objects in a simulated proxy, or on their way, at the moment of a
// purge. One thread.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "proxy/process/proxy.h"

namespace encore::simulate {

//  enumerator   name          where
#define ENCORE_SIMULATE_TIERS(X)                                       \
  X(kMemory, "in memory", "stored in memory")                          \
  X(kDisk, "on disk", "written to a disk")                             \
  X(kFlight, "in flight", "its origin is being asked")                 \
  X(kRead, "being read", "read from a disk for who asks")              \
  X(kWritten, "being written", "placed on a disk and not written yet") \
  X(kMoved, "being moved", "on its way to another segment")            \
  X(kSaved, "saved", "on the disk since an earlier proxy")

enum class Tier : std::uint8_t {
#define ENCORE_SIMULATE_NAME(id, name, meaning) id,
  ENCORE_SIMULATE_TIERS(ENCORE_SIMULATE_NAME)
#undef ENCORE_SIMULATE_NAME
      kCount
};
std::string_view to_string(Tier tier);

struct Tiers {
  std::array<bool, static_cast<std::size_t>(Tier::kCount)> has{};
  void add(Tier tier) { has.at(static_cast<std::size_t>(tier)) = true; }
  void add_all(const Tiers& others) {
    for (std::size_t i = 0; i < has.size(); ++i) has.at(i) = has.at(i) || others.has.at(i);
  }
  bool is_in(Tier tier) const { return has.at(static_cast<std::size_t>(tier)); }
};

struct StoredKey {
  std::string text;
  filter::Hash128 hash;
};

// All keys of a URL, absolute, by the rules of now.
std::vector<StoredKey> keys_of(server::Proxy& proxy, const std::string& url);

// The tiers of the URL, absolute, by the rules of now. That it was there before this proxy is known
// by others.
Tiers tiers_of(server::Proxy& proxy, const std::string& url);

// The tiers in which the key's responses are stored: nothing that is on its way to there.
Tiers stored_tiers_of(server::Proxy& proxy, const StoredKey& key);

// The keys of the records that are being read.
std::vector<std::string> keys_being_read(server::Proxy& proxy);

// True if records are on their way to another segment.
bool has_moved(server::Proxy& proxy);

// True if records are placed on a disk and not written yet, or moved.
bool has_unwritten(server::Proxy& proxy);

}  // namespace encore::simulate
