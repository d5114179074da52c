#include "tests/disk/model/crash_model.h"

#include <algorithm>
#include <memory>
#include <random>
#include <utility>

#include "proxy/disk/open.h"
#include "tests/disk/model/driver.h"
#include "tests/disk/model/history.h"
#include "tests/disk/model/memory_file.h"
#include "tests/disk/model/start.h"

namespace encore::disk {
namespace {

constexpr DriverOptions kDisk{.disk_bytes = (256U + 8 * 256U) << 10U, .segment_bytes = 256U << 10U};

class CrashModel {
 public:
  explicit CrashModel(const CrashOptions& options) : options_(options), random_(options.seed) {}

  CrashReport run() {
    for (life_ = 0; life_ < options_.lives && !report_.fault; ++life_) live();
    return std::move(report_);
  }

 private:
  void live() {
    is_open_ = false;
    Driver driver(*file_, kDisk, history_, random_(), [this] { after_write(); });
    if (!driver.refusal().empty()) return fault("refused to start: " + driver.refusal());
    is_open_ = true;
    for (int i = 0; i < options_.steps && !report_.fault; ++i) driver.step();
    if (report_.fault) return;
    Image next = file_->crash_anyhow(random_);
    if (life_ % 3 == 2) {
      if (!driver.stop()) return fault("a stop failed");
      // A clean stop must survive any later crash.
      next = file_->crash_after(0);
      check(next);
      check_all_found(next, driver);
    }
    report_.turns += driver.counts().turns;
    report_.moved += driver.counts().moved;
    report_.moved_parts += driver.counts().moved_parts;
    report_.purges += driver.counts().purges;
    // The image outlives the file that it is of.
    file_ = std::make_unique<MemoryFile>(std::move(next));
  }

  void after_write() {
    ++report_.writes;
    const std::size_t unsynced = file_->unsynced().size();
    for (std::size_t i = 0; i <= unsynced; ++i) check(file_->crash_after(i));
    const std::size_t sectors = file_->unsynced().back().bytes.size() / MemoryFile::kSector;
    for (int i = 0; i < 8; ++i) {
      check(file_->crash_within(unsynced - 1, 1 + random_() % (sectors - 1)));
    }
    for (int i = 0; i < options_.subsets; ++i) check(file_->crash_anyhow(random_));
  }

  void check(const Image& image) {
    if (report_.fault) return;
    ++report_.images;
    ImageFile file(image);
    const auto superblock = read_superblock(file);
    if (!superblock) {
      // A disk that is being made has nothing on it, and is made again.
      MemoryFile again(image);
      OpenOptions made;
      made.disk_bytes = kDisk.disk_bytes;
      made.segment_bytes = kDisk.segment_bytes;
      if (is_open_ || life_ != 0 || !open_disk(again, made)) {
        fault("refused: " + superblock.error().message);
      }
      return;
    }
    const Start start(file, *superblock, {.writes_footers = false});
    if (!start.refusal().empty()) return fault("refused: " + start.refusal());
    if (!start.out_of_order().empty()) return fault("told out of order: " + start.out_of_order());
    report_.scanned += start.counts().scanned;
    for (const Start::Winner& winner : start.winners()) {
      ++report_.records;
      if (winner.object.fields.kind == RecordKind::kHead) ++report_.heads;
      if (auto wrong = history_.fault_of(winner.object)) return fault(*wrong);
    }
  }

  void check_all_found(const Image& image, const Driver& driver) {
    ImageFile file(image);
    const Start start(file, driver.superblock(), {.writes_footers = false});
    std::map<std::string, cache::DiskVersion> found;
    for (const Start::Winner& winner : start.winners()) {
      found[winner.object.key] = winner.object.fields.version;
    }
    for (const auto& [key, version] : driver.resident()) {
      const auto at = found.find(key);
      if (at == found.end()) return fault("after a clean stop " + key + " is not found");
      if (at->second != version) return fault("after a clean stop another " + key + " is found");
    }
  }

  void fault(const std::string& what) {
    if (report_.fault) return;
    report_.fault = "seed " + std::to_string(options_.seed) + ", life " + std::to_string(life_) +
                    ", write " + std::to_string(report_.writes) + ": " + what;
  }

  CrashOptions options_;
  std::mt19937_64 random_;
  History history_;
  std::unique_ptr<MemoryFile> file_ = std::make_unique<MemoryFile>();
  int life_ = 0;
  bool is_open_ = false;
  CrashReport report_;
};

}  // namespace

CrashReport run_crash_model(const CrashOptions& options) { return CrashModel(options).run(); }

}  // namespace encore::disk
