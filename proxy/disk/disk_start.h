// The start of one disk: what lies on it goes to the kernel, the newest segment first, one step at
// a time, while requests are served. Confined to one thread at a time; blocks in the device.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "proxy/disk/disk_state.h"
#include "proxy/disk/purge_log.h"
#include "proxy/disk/recovery.h"

namespace encore::disk {

class DiskStart final : private RecoverySink {
 public:
  // `file` is borrowed; `purges` is loaded by begin(). `is_held`: nothing is written before
  // write_footers(), for another process may still write the disk.
  DiskStart(CountedFile& file, const Superblock& superblock, WallSeconds now, bool is_held = false);

  // Reads the purges and the segments' headers. Errors: those of PurgeLog::load().
  Result<void> begin();
  // True if no segment from this one on has anything.
  bool is_blank_from(std::uint32_t segment) const;
  // The rules and the sequences are the state's from now on, and what is found goes to its kernel,
  // which knows the disk from here on. REQUIRES: begin() went well; nothing was placed yet.
  void attach(DiskState& state);
  // Loads a segment; false: that was all, and the kernel knows. `on_ahead` is called within it
  // where the next segment's footer may be read ahead.
  bool step(const std::function<void()>& on_ahead);
  // See Recovery; on any thread.
  void read_ahead() { recovery_.read_ahead(); }
  // REQUIRES: step() has returned false.
  void write_footers() { recovery_.write_footers(); }

  // REQUIRES: take_purges() was not called.
  const PurgeLog& purges() const { return *purges_; }
  std::unique_ptr<PurgeLog> take_purges() { return std::move(purges_); }
  SegmentWriter::FoundState found() const { return recovery_.found(); }
  // Segments that are loaded; any thread.
  std::uint32_t loaded() const { return loaded_.load(std::memory_order_relaxed); }
  std::uint32_t segments() const { return recovery_.counts().segments; }

 private:
  // FoundRecords that lie here.
  struct Kept {
    std::uint32_t segment = 0;
    std::uint64_t sequence = 0;
    WallSeconds opened_at = 0;
    std::vector<RecordLine> lines;
    NameTable names;
  };

  void on_rule(const Purge& purge) override { rules_.push_back(purge); }
  void on_records(const FoundRecords& records) override;
  void on_ahead() override {
    if (on_ahead_ != nullptr) (*on_ahead_)();
  }
  void load(const FoundRecords& found);
  // For the kernel.
  struct Records {
    std::vector<cache::DiskRecord> records;
    std::vector<cache::DiskVersion> versions;
    // That the kernel does not know and that stay on the disk.
    std::vector<std::pair<filter::Hash128, cache::DiskVersion>> unknown;
  };
  void take(const FoundRecords& found, Records& out);
  std::optional<std::uint16_t> names_of(const FoundRecords& found, std::uint16_t number,
                                        std::map<std::uint16_t, std::uint16_t>& known);
  void refuse(const cache::DiskRecord& record);
  cache::DiskLoaded give(Records& records);
  cache::DiskLoaded give_known(Records& records);
  // No later start finds them: what the kernel does not know it cannot replace.
  void bury_unknown(Records& records);
  void settle(const Records& records, const cache::DiskLoaded& loaded);

  std::unique_ptr<PurgeLog> purges_;
  Recovery recovery_;
  std::vector<Purge> rules_;
  std::vector<Kept> kept_;  // records found before the kernel knew the disk
  bool is_attached_ = false;
  Records room_;  // for one batch after the other
  DiskState* state_ = nullptr;
  const std::function<void()>* on_ahead_ = nullptr;  // within step()
  std::atomic<std::uint32_t> loaded_ = 0;
};

}  // namespace encore::disk
