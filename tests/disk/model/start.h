// The records that a process finds on a disk when it starts, as the proxy would use them: for each
// key the newest one that no purge covers, read and verified, with all parts of its body.
// Thread-compatible.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "proxy/disk/file.h"
#include "proxy/disk/recovery.h"
#include "tests/disk/model/history.h"
#include "tests/disk/model/memory_file.h"

namespace encore::disk {

struct FoundRecord {
  RecordLine line;
  std::uint32_t segment = 0;
  std::uint64_t sequence = 0;
  cache::DiskPlace place() const {
    return {0, segment, line.unit, std::uint64_t{line.room_units} * cache::kDiskUnit};
  }
};

// A record as it is read, with what of a body lies in it; nothing where any byte is not sound.
std::optional<Committed> read_record(File& file, const Superblock& superblock,
                                     const cache::DiskPlace& place, std::uint64_t sequence,
                                     const filter::Hash128& key);

class Start final : private RecoverySink {
 public:
  // Recovers; `options` as Recovery's.
  Start(File& file, const Superblock& superblock, const RecoveryOptions& options);

  // Why the disk cannot be used; empty: it can.
  const std::string& refusal() const { return refusal_; }
  // A key with a newer record that was reported later than an older one, in another segment: a
  // request in between would have received the older. None: empty.
  const std::string& out_of_order() const { return out_of_order_; }
  // All reported records, parts too, in that order.
  const std::vector<FoundRecord>& records() const { return records_; }
  // For each key the sound record that counts.
  struct Winner {
    FoundRecord record;
    Committed object;  // whole
  };
  const std::vector<Winner>& winners() const { return winners_; }
  // For each part the first report: numbers of records().
  const std::vector<std::size_t>& parts() const { return parts_; }
  const SegmentWriter::FoundState& found() const { return found_; }
  const RecoveryCounts& counts() const { return counts_; }
  // The log of this disk, loaded.
  std::unique_ptr<PurgeLog> take_purges() { return std::move(purges_); }

 private:
  struct HashKey {
    std::size_t operator()(const filter::Hash128& key) const {
      return static_cast<std::size_t>(key.lo);
    }
  };
  void on_rule(const Purge& purge) override { rules_.push_back(purge); }
  void on_records(const FoundRecords& records) override;
  using Numbers = std::unordered_map<filter::Hash128, std::size_t, HashKey>;
  Numbers newest_of_each();
  void choose(File& file, const Superblock& superblock);
  std::optional<Committed> read_whole(File& file, const Superblock& superblock,
                                      const FoundRecord& record);

  std::unique_ptr<PurgeLog> purges_;
  std::string refusal_;
  std::string out_of_order_;
  std::vector<Purge> rules_;
  std::vector<FoundRecord> records_;
  Numbers part_of_;  // by key
  std::vector<std::size_t> parts_;
  std::vector<Winner> winners_;
  SegmentWriter::FoundState found_;
  RecoveryCounts counts_;
};

// Compares the records that a start on this image finds with the promises: the first fault, or
// nothing. A refused disk is not a fault; `found` counts the records, if it is given.
std::optional<std::string> fault_on(const Image& image, const History& history,
                                    std::uint64_t* found = nullptr);

}  // namespace encore::disk
