#include "tests/simulate/tombstone_oracle.h"

#include <string>
#include <vector>

#include "proxy/disk/open.h"
#include "tests/catch.h"
#include "tests/disk/model/memory_file.h"

namespace encore::simulate {

TEST_CASE("TombstoneOracle are what a journal says is to be forgotten", "[simulate]") {
  TombstoneOracle graves;
  const filter::Hash128 key{.lo = 1, .hi = 2};
  graves.note({.kind = cache::EventKind::kInvalidate, .key = key});  // nothing was there
  graves.note({.kind = cache::EventKind::kCommit, .key = key, .version = 5});
  CHECK(graves.count() == 0);
  graves.note({.kind = cache::EventKind::kInvalidate, .key = key, .version = 6});
  graves.note({.kind = cache::EventKind::kCommit,
               .key = {.lo = 3, .hi = 4},
               .disk_flags = cache::kTombstone,
               .version = 7});
  CHECK(graves.count() == 2);
  graves.forget();
  CHECK(graves.count() == 0);
}

TEST_CASE("A start finds nothing on a new disk", "[simulate]") {
  disk::MemoryFile file;
  std::vector<std::string> faults;
  const auto on_fault = [&](const std::string& what) { faults.push_back(what); };
  CHECK(TombstoneOracle().look(file, on_fault) == 0);
  disk::OpenOptions options;
  options.disk_bytes = 1U << 20U;
  options.segment_bytes = 64U << 10U;
  options.uuid = {1, 2};
  REQUIRE(disk::open_disk(file, options));
  CHECK(TombstoneOracle().look(file, on_fault) == 0);
  CHECK(faults.empty());
}

}  // namespace encore::simulate
