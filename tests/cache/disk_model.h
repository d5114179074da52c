// The disk tier as maps and lists: what a kernel of one eviction policy (FIFO) must answer, and
// what of it would be found again after a crash.
#pragma once

#include <algorithm>
#include <list>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "cache/disk_parts.h"
#include "cache/disk_table.h"
#include "tests/cache/support.h"

namespace encore::cache::test {

using Named = std::pair<std::uint64_t, std::uint32_t>;  // a key's number and its variant

// From this number on, parts: eight of a body, whose key and number follow from it. Variant 0.
inline constexpr std::uint64_t kFirstPart = 1000;
inline bool is_part(const Named& name) { return name.first >= kFirstPart; }
inline Key key_of(std::uint64_t id) {
  return id < kFirstPart ? key(id) : part_key(key(id / 16).hash, id / 8, id % 8);
}

inline std::int64_t whole_seconds(MonotonicTime time) {
  return std::chrono::duration_cast<std::chrono::seconds>(time.time_since_epoch()).count();
}

// The true contents of the disks, with a header for each segment. A crash leaves this.
class Platter {
 public:
  struct Record {
    Named name;
    DiskVersion version = 0;
    std::uint64_t commit = 0;  // which one it holds the bytes of
    DiskRecord line;           // as the footer has it
  };
  struct Tombstone {
    std::uint64_t id = 0;
    std::optional<std::uint32_t> variant;
    DiskVersion version = 0;
  };
  // Covers all objects whose number leaves this rest. The owner of parts is unknown.
  static constexpr std::uint64_t kRuleModulus = 7;
  struct Rule {
    DiskVersion version = 0;
    std::uint64_t rest = 0;
  };

  void open(const SegmentTurn& turn) {
    if (turn.sequence != 0) {
      segments_[{turn.disk, turn.segment}] = {.sequence = turn.sequence, .records = {}};
    }
  }
  void write(const Record& record) {
    const DiskPlace& place = record.line.place;
    segments_.at({place.disk, place.segment}).records[place.unit] = record;
  }
  const Record& at(const DiskPlace& place) const {
    return segments_.at({place.disk, place.segment}).records.at(place.unit);
  }
  bool holds(const DiskPlace& place) const {
    const auto segment = segments_.find({place.disk, place.segment});
    return segment != segments_.end() && segment->second.records.contains(place.unit);
  }
  void erase_header(std::uint16_t disk, std::uint32_t segment) { segments_.erase({disk, segment}); }
  void add_tombstone(std::uint64_t id, std::optional<std::uint32_t> variant,
                     DiskTombstone tombstone) {
    if (tombstone) {
      tombstones_.push_back({id, variant, tombstone.version});
    }
  }
  void rule(DiskVersion version, std::uint64_t rest) { rules_.push_back({version, rest}); }
  bool has_tombstone(const Record& record) const {
    const bool is_ruled_out = std::ranges::any_of(rules_, [&](const Rule& rule) {
      return rule.version > record.version && rule.rest == record.name.first % kRuleModulus;
    });
    return (is_ruled_out && !is_part(record.name)) ||
           std::ranges::any_of(tombstones_, [&](const Tombstone& tombstone) {
             return tombstone.id == record.name.first && tombstone.version > record.version &&
                    tombstone.variant.value_or(record.name.second) == record.name.second;
           });
  }

  // Loads it into a kernel of nothing, as a start does.
  void recover(Kernel& kernel, MonotonicTime now) const {
    for (std::uint16_t disk = 0; disk < kernel.disks(); ++disk) {
      std::vector<std::uint64_t> sequences;
      DiskVersion newest = 0;
      for (const auto& [where, segment] : segments_) {
        if (where.first == disk) {
          sequences.resize(where.second + std::size_t{1});
          sequences.back() = segment.sequence;
          for (const auto& [unit, record] : segment.records) {
            newest = std::max(newest, record.version);
          }
        }
      }
      REQUIRE(kernel.attach(disk, sequences, newest, now));
    }
    std::vector<std::pair<std::uint64_t, std::pair<std::uint16_t, std::uint32_t>>> order;
    for (const auto& [where, segment] : segments_) {
      order.emplace_back(segment.sequence, where);
    }
    std::ranges::sort(order, std::greater{});  // newest first, the disks mixed
    std::set<Named> refused;
    for (const auto& [sequence, where] : order) {
      load(kernel, segments_.at(where).records, refused, now);
    }
    for (std::uint16_t disk = 0; disk < kernel.disks(); ++disk) {
      kernel.loaded(disk, now);
    }
  }

 private:
  using Records = std::map<std::uint32_t, Record>;
  struct Segment {
    std::uint64_t sequence = 0;
    Records records;
  };

  void load(Kernel& kernel, const Records& records, std::set<Named>& refused,
            MonotonicTime now) const {
    std::vector<DiskRecord> lines;
    for (const auto& [unit, record] : records) {
      if (!has_tombstone(record) && !refused.contains(record.name)) {
        lines.push_back(record.line);
      }
    }
    const DiskLoaded loaded = kernel.load(lines, now);
    for (const DiskLoaded::Refused& one : loaded.refused) {
      refused.insert(at(lines[one.record].place).name);
    }
    for (const DiskLoaded::Twins& twins : loaded.twins) {
      const Record& one = at(lines[twins.record].place);
      const Record& other = at(twins.other);
      if (one.version > other.version) {
        kernel.lost(key_of(other.name.first), twins.other, now);
        kernel.load(std::span(&lines[twins.record], 1), now);
      }
    }
  }

  std::map<std::pair<std::uint16_t, std::uint32_t>, Segment> segments_;
  std::vector<Tombstone> tombstones_;
  std::vector<Rule> rules_;
};

// The kernel's expected answers.
class DiskModel {
 public:
  struct InMemory {
    Named name;
    Stored stored;
  };
  struct OnDisk {
    DiskPlace place;
    std::int64_t fresh_until = 0;  // seconds
    MonotonicTime keep_until{};
    bool written = false;
    bool visited = false;
    bool was_visited = false;  // before it was moved, too
  };

  explicit DiskModel(const KernelOptions& options) : options_(options), fifo_(options.shards) {
    for (const DiskOptions& disk : options.disks) {
      logs.emplace_back(SegmentLog::Settings{.disk = static_cast<std::uint16_t>(logs.size()),
                                             .segments = disk.segments,
                                             .segment_bytes = disk.segment_bytes});
    }
  }

  std::list<InMemory>& fifo_of(std::uint64_t id) {
    return fifo_[filter::shard_of(key_of(id).hash, options_.shards)];
  }
  std::list<InMemory>::iterator find(const Named& name) {
    return std::ranges::find(fifo_of(name.first), name, &InMemory::name);
  }
  bool holds(const Named& name) { return find(name) != fifo_of(name.first).end(); }
  bool holds_key(std::uint64_t id) {
    return std::ranges::any_of(fifo_of(id), [&](const InMemory& e) { return e.name.first == id; });
  }
  std::uint64_t used() const {
    std::uint64_t sum = on_disk.size() * kDiskEntryBytes;
    for (const auto& fifo : fifo_) {
      for (const InMemory& entry : fifo) {
        sum += entry.stored.charge_bytes;
      }
    }
    return sum;
  }
  // Room for so many bytes, in the key's shard first; at first of shards with half of their share.
  bool make_room_for(std::uint64_t id, std::uint64_t bytes) {
    const std::uint32_t first = filter::shard_of(key_of(id).hash, options_.shards);
    for (std::uint32_t i = 0; i < 2 * options_.shards; ++i) {
      auto& fifo = fifo_[(first + i) % options_.shards];
      std::uint64_t held = 0;
      for (const InMemory& entry : fifo) held += entry.stored.charge_bytes;
      if (i < options_.shards && held * 2 * options_.shards < used()) continue;
      while (used() + bytes > options_.capacity_bytes && !fifo.empty()) {
        fifo.pop_front();
      }
    }
    return used() + bytes <= options_.capacity_bytes;
  }
  bool evict_one() {
    for (std::uint32_t i = 0; i < options_.shards; ++i) {
      auto& fifo = fifo_[next_shard_];
      next_shard_ = (next_shard_ + 1) % options_.shards;
      if (!fifo.empty()) {
        fifo.pop_front();
        return true;
      }
    }
    return false;
  }
  void put(const Named& name, const Stored& stored) {
    auto& fifo = fifo_of(name.first);
    std::erase_if(fifo, [&](const InMemory& entry) { return entry.name == name; });
    fifo.push_back({name, stored});
    std::uint32_t variants = 0;
    for (auto at = fifo.rbegin(); at != fifo.rend();) {
      const bool is_one = at->name.first == name.first;
      variants += is_one ? 1U : 0U;
      at = is_one && variants > options_.variants_max
               ? std::reverse_iterator(fifo.erase(std::next(at).base()))
               : std::next(at);
    }
  }
  std::uint32_t variants_on_disk(std::uint64_t id) const {
    std::uint32_t count = 0;
    for (const auto& [name, entry] : on_disk) {
      count += name.first == id ? 1U : 0U;
    }
    return count;
  }
  void drop_on_disk(const Named& name) {
    const DiskPlace place = on_disk.at(name).place;
    logs[place.disk].mark_dead(place);
    on_disk.erase(name);
  }

  const KernelOptions& options() const { return options_; }
  std::map<Named, OnDisk> on_disk;
  std::vector<SegmentLog> logs;

 private:
  KernelOptions options_;
  std::vector<std::list<InMemory>> fifo_;
  std::uint32_t next_shard_ = 0;
};

}  // namespace encore::cache::test
