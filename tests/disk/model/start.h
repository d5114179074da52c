// What a process finds on a disk when it starts, as the proxy would use it: of each key the newest
// record that no purge is of, read and verified, with all parts of its body. Thread-compatible.
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
  // A key of which a newer record was told later than an older one, in another segment: whoever
  // asked in between would have been given that. None: empty.
  const std::string& out_of_order() const { return out_of_order_; }
  // All that was told, parts too, in that order.
  const std::vector<FoundRecord>& records() const { return records_; }
  // Of each key the one that counts, and that is sound.
  struct Winner {
    FoundRecord record;
    Committed object;  // whole
  };
  const std::vector<Winner>& winners() const { return winners_; }
  // Of each part the first that was told: numbers of records().
  const std::vector<std::size_t>& parts() const { return parts_; }
  const SegmentWriter::Found& found() const { return found_; }
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
  SegmentWriter::Found found_;
  RecoveryCounts counts_;
};

// What a start on this image finds, compared with what was promised: the first fault, or nothing.
// A disk that is refused is none; `found` counts the records, where it is given.
std::optional<std::string> fault_on(const Image& image, const History& history,
                                    std::uint64_t* found = nullptr);

}  // namespace encore::disk
