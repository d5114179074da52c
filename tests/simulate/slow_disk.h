// The disk of simulated proxies: a file in memory that the next proxy finds as the last one has
// left it, and an engine whose reads and writes take simulated time, so that everything else can
// happen between. One thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "filter/hash.h"
#include "proxy/disk/disks.h"
#include "tests/disk/model/memory_file.h"
#include "tests/simulate/adversity.h"
#include "tests/simulate/system.h"
#include "tests/simulate/tombstone_oracle.h"

namespace encore::simulate {

class SlowDisk {
 public:
  // `random` draws how long each read and write takes; `longest` of 0: they take no time.
  SlowDisk(System& system, Random random, std::int64_t longest)
      : system_(system), random_(random), longest_(longest), in_small_steps_(random_.percent(60)) {}

  // Has Disks use it: the file, and an engine over it.
  void prepare(disk::DisksOptions& options);
  // The seed of the proxies that share it.
  std::optional<filter::Seed> seed;
  // Those of the proxies that have had it.
  TombstoneOracle graves;
  // Its contents, whether the device fails or not.
  disk::File& contents() { return *file_; }

  // From now on the device fails.
  struct Failing {
    bool reads = false;
    bool writes = false;
  };
  void set_failing(const Failing& failing) {
    failing_ = failing;
    has_failed_ = has_failed_ || failing.reads || failing.writes;
  }
  // Memory that was to outlive a stop may not be on it: the next proxy finds a new one.
  bool has_failed() const { return has_failed_; }

  // Called when a read or a write has been done, and nobody knows of it yet.
  enum class Done : std::uint8_t { kRead, kWrite };
  std::function<void(Done)> on_done;

  // Reads and writes that have begun and not ended.
  std::size_t reads_under_way() const { return reads_; }
  std::size_t writes_under_way() const { return writes_; }

 private:
  class Engine;
  class Device;

  std::int64_t draw();

  System& system_;
  Random random_;
  const std::int64_t longest_;
  const bool in_small_steps_;  // a reclaimed segment is moved in several
  std::shared_ptr<disk::MemoryFile> file_ = std::make_shared<disk::MemoryFile>();
  Failing failing_;
  bool has_failed_ = false;
  std::size_t reads_ = 0;
  std::size_t writes_ = 0;
};

}  // namespace encore::simulate
