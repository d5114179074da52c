// Everything that was ever given to a disk, and the records that may be found of it: the oracle of
// the crash model. It knows nothing of a disk's layout. Thread-compatible.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "proxy/disk/purge_frame.h"
#include "proxy/disk/record.h"

namespace encore::disk {

// The values that a record was committed with; its body is whole, wherever it lies.
struct Committed {
  RecordFields fields;
  std::string key;
  std::string names;
  std::string meta;
  std::string head;
  std::string body;
};

// Size of the model's parts: shorter than the proxy's.
inline constexpr std::uint64_t kModelPartBytes = 20'000;
constexpr std::uint64_t model_parts(std::uint64_t body_bytes) {
  return (body_bytes + kModelPartBytes - 1) / kModelPartBytes;
}

// Whether a purge is of this: what the proxy asks of a record.
bool is_purged_by(const Purge& purge, const RecordFields& fields, std::string_view key,
                  std::string_view meta);

class History {
 public:
  void committed(std::shared_ptr<const Committed> object);
  // A purge was answered.
  void purged(const Purge& purge) { purges_.push_back(purge); }
  // This version of the key was on the disk at a sync.
  void durable(const filter::Hash128& key, cache::DiskVersion version);

  // The device has lost some of it.
  void forget_durable() { durable_.clear(); }

  std::shared_ptr<const Committed> find(cache::DiskVersion version) const;
  // Why this must not be found, or nothing.
  std::optional<std::string> fault_of(const Committed& found) const;

 private:
  struct Less {
    bool operator()(const filter::Hash128& a, const filter::Hash128& b) const {
      return a.lo != b.lo ? a.lo < b.lo : a.hi < b.hi;
    }
  };
  std::map<cache::DiskVersion, std::shared_ptr<const Committed>> objects_;
  std::vector<Purge> purges_;
  std::map<filter::Hash128, cache::DiskVersion, Less> durable_;
};

}  // namespace encore::disk
