// TombstoneOracle: what the kernel has told its disk to forget, of all proxies that had the disk,
// held against what the next start would find on it. Thread-compatible.
#pragma once

#include <functional>
#include <string>
#include <unordered_map>

#include "cache/events.h"
#include "proxy/disk/file.h"

namespace encore::simulate {

class TombstoneOracle {
 public:
  // An event of a proxy's journal, in their order.
  void note(const cache::Event& event);
  // Finds records that a start would load though their key was purged, or replaced, since. Returns
  // how many records it would load. Nothing of the file is changed. REQUIRES: nobody writes it.
  std::uint64_t look(disk::File& file,
                     const std::function<void(const std::string& what)>& on_fault) const;
  // It is another disk from now on.
  void forget() { versions_.clear(); }
  std::size_t count() const { return versions_.size(); }

 private:
  struct HashKey {
    std::size_t operator()(const filter::Hash128& key) const {
      return static_cast<std::size_t>(key.lo);
    }
  };
  // Records of the key with a lower version are gone.
  std::unordered_map<filter::Hash128, cache::DiskVersion, HashKey> versions_;
};

}  // namespace encore::simulate
