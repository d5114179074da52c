// An upgrade of the process, as the disks see it.
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "proxy/disk/disk_service.h"
#include "tests/catch.h"
#include "tests/disk/model/memory_file.h"
#include "tests/disk/model/served.h"
#include "tests/disk/model/switched_file.h"

namespace encore::disk {
namespace {

using Succession = Served::Succession;

DiskService::Setup some_setup() {
  return {.number = 0, .bytes = 2'500'000U, .engine = {}, .matches_rule = {}};
}

Result<std::shared_ptr<DiskService>> open_service(std::unique_ptr<File> file,
                                                  DiskService::Setup setup) {
  return DiskService::open(std::move(file),
                           {.disk_bytes = 2'500'000U,
                            .segment_bytes = 128U << 10U,
                            .identity_seed = {1, 2},
                            .uuid = {},
                            .now = 1'700'000'000U,
                            .clear = false},
                           std::move(setup), std::make_shared<DiskCommon>());
}

}  // namespace

TEST_CASE("disks go from one process to the next, or come back, and nothing comes back", "[disk]") {
  std::uint64_t handed_over = 0;
  std::uint64_t rolled_back = 0;
  std::uint64_t forgotten = 0;
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    CAPTURE(seed);
    Served served(turning(seed), seed);
    std::mt19937_64 random(seed);
    for (int life = 0; life < 4; ++life) {
      CAPTURE(life);
      REQUIRE(served.start() == "");
      served.run_reads();
      REQUIRE(served.missing() == "");
      for (int process = 0; process < 4; ++process) {
        CAPTURE(process);
        served.live(300);
        const auto how = static_cast<Succession>(random() % 3);
        CAPTURE(static_cast<int>(how));
        REQUIRE(served.hand_over(how) == "");
        CAPTURE(served.fault());
        REQUIRE(served.fault().empty());
      }
      served.live(300);
      CAPTURE(served.fault());
      REQUIRE(served.fault().empty());
      CHECK(served.damaged() == 0);
      if (random() % 2 == 0) {
        REQUIRE(served.stop());
      } else {
        served.kill();
      }
    }
    REQUIRE(served.fault().empty());
    handed_over += served.counts.handed_over;
    rolled_back += served.counts.rolled_back;
    forgotten += served.counts.forgotten;
  }
  CHECK(handed_over > 48);
  CHECK(rolled_back > 96);
  CHECK(forgotten > 100);
}

TEST_CASE("a disk without its latest purges is emptied, but not while another process has it",
          "[disk]") {
  MemoryFile file;
  FileSwitch device;
  const auto open = [&](DiskService::Setup setup) {
    return open_service(std::make_unique<SwitchedFile>(file, device), std::move(setup));
  };
  const DiskService::Setup made = some_setup();
  {
    const auto disk = open(made);
    REQUIRE(disk);
    const LogPosition position = (*disk)->witnessed().position;
    CHECK((*disk)->report().emptied_for.empty());
    DiskService::Setup same = made;
    same.position_min = position;
    same.is_held = true;
    CHECK(open(same));
  }
  DiskService::Setup later = made;
  later.position_min = LogPosition{.epoch = 1'000, .end = 0};
  later.is_held = true;
  const Image before = file.image();
  const auto held = open(later);
  REQUIRE_FALSE(held);
  CHECK_THAT(held.error().message, Catch::Contains("lacks purges that it had"));
  CHECK(file.image() == before);
  later.is_held = false;
  const auto emptied = open(later);
  REQUIRE(emptied);
  CHECK_THAT((*emptied)->report().emptied_for, Catch::Contains("an older copy"));
}

TEST_CASE("a disk that has stopped is neither handed over nor taken over, and says so once",
          "[disk]") {
  const auto disk = open_service(std::make_unique<MemoryFile>(), some_setup());
  REQUIRE(disk);
  (*disk)->set_engine(make_inline_engine());
  (*disk)->stop(Nanoseconds(0));
  std::vector<bool> said;
  const auto note = [&](bool done) { said.push_back(done); };
  (*disk)->hold(note);
  (*disk)->resume(note);
  (*disk)->take_over({}, note);
  CHECK(said == std::vector<bool>{false, false, false});
}

}  // namespace encore::disk
