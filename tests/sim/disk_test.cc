// The disk behind the memory of a replay: what it gives and takes, and what is said of it.
#include <unistd.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <random>

#include "cache/disk_parts.h"
#include "tests/sim/kernel.h"
#include "tests/sim/run.h"

namespace encore::sim {
namespace {

using nlohmann::json;

ReplayRequest ask_object(std::uint32_t object, std::uint64_t size) {
  ReplayRequest request;
  request.key = {object * 0x9e3779b97f4a7c15U, object};
  request.object = object;
  request.size_bytes = size;
  return request;
}

cache::KernelOptions with_disk(std::uint32_t segments) {
  cache::KernelOptions options =
      kernel(20'000, cache::EvictionPolicy::kLru, cache::AdmissionPolicy::kAlways);
  options.disks = {{.segments = segments, .segment_bytes = 64 * 1024}};
  return options;
}

constexpr std::uint64_t kMiB = 1U << 20U;

// Kernel options with segments that take parts.
cache::KernelOptions with_large_disk(std::uint64_t memory_bytes, std::uint32_t segments) {
  cache::KernelOptions options =
      kernel(memory_bytes, cache::EvictionPolicy::kLru, cache::AdmissionPolicy::kAlways);
  options.disks = {{.segments = segments, .segment_bytes = 16 * kMiB}};
  return options;
}

// A record's place: a header, a checksum for each 64 KiB, and the bytes.
std::uint64_t placed(std::uint64_t bytes) {
  return cache::disk_room(128 + bytes + (bytes + 65535) / 65536 * 8);
}

class DiskTraceFile {
 public:
  explicit DiskTraceFile(const std::string& kind)
      : path_((std::filesystem::temp_directory_path() /
               ("encore_disk_" + std::to_string(::getpid()) + ".csv"))
                  .string()) {
    REQUIRE(run("generate " + kind + " -o " + path_).exit_code == 0);
  }
  ~DiskTraceFile() { std::filesystem::remove(path_); }
  DiskTraceFile(const DiskTraceFile&) = delete;
  DiskTraceFile& operator=(const DiskTraceFile&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace

TEST_CASE("What the memory has evicted is found on disk, and in memory after the second time",
          "[sim][disk]") {
  // Ten objects of 4,000 bytes in a memory for four: a loop misses each, but for the disk.
  std::vector<ReplayRequest> requests;
  for (int round = 0; round < 3; ++round) {
    for (std::uint32_t object = 1; object <= 10; ++object) {
      requests.push_back(ask_object(object, 4000));
    }
  }
  const ReplayCounts without = replay(
      requests, kernel(20'000, cache::EvictionPolicy::kLru, cache::AdmissionPolicy::kAlways));
  CHECK(without.hits == 0);
  const ReplayCounts with = replay(requests, with_disk(8));
  // Round two: 1 to 6 are on disk alone, 7 to 10 in memory still. Round three: the second time for
  // 1 to 6, which take the place of the others in memory.
  CHECK(with.hits == 20);
  CHECK(with.disk_hits == 16);
  CHECK(with.disk_bytes_hit == 64'000);
  // 128 of a header and 8 of a checksum, in units of 64.
  CHECK(with.disk_bytes_admitted == 10 * 4160);
  CHECK(with.disk_bytes_moved == 0);
  // The second time for 10, and then it is in memory.
  for (int time = 0; time < 3; ++time) {
    requests.push_back(ask_object(10, 4000));
  }
  CHECK(replay(requests, with_disk(8)).disk_hits == 17);
}

TEST_CASE("A small disk moves on what was asked for there, up to its share", "[sim][disk]") {
  // Twelve popular objects among a stream of others, on four segments.
  std::vector<ReplayRequest> requests;
  for (std::uint32_t i = 0; i < 4000; ++i) {
    requests.push_back(i % 4 == 0 ? ask_object(1 + i / 4 % 12, 2000) : ask_object(1000 + i, 2000));
  }
  cache::KernelOptions options = with_disk(6);
  const ReplayCounts moved = replay(requests, options);
  options.disk_rules.reinsert_percent = 0;
  const ReplayCounts dropped = replay(requests, options);
  CHECK(dropped.disk_bytes_moved == 0);
  CHECK(moved.disk_bytes_moved > 0);
  CHECK(moved.hits > dropped.hits);
  CHECK(moved.disk_bytes_moved <= (moved.disk_bytes_admitted + moved.disk_bytes_moved) / 2);
}

TEST_CASE("An object that is too large for the memory lies on disk alone, in parts",
          "[sim][disk]") {
  const std::vector<ReplayRequest> requests(4, ask_object(1, 10'000'000));
  const ReplayCounts counts = replay(requests, with_large_disk(5 * kMiB, 6));
  CHECK(counts.hits == 3);
  CHECK(counts.disk_hits == 3);
  CHECK(counts.bytes_written == 10'000'000);
  CHECK(counts.disk_bytes_admitted ==
        2 * placed(cache::kPartBytes) + placed(10'000'000 - 2 * cache::kPartBytes) + placed(0));
  CHECK(counts.not_stored_full == 0);
  // One record where that takes it.
  const std::vector<ReplayRequest> whole(2, ask_object(1, 4 * kMiB));
  CHECK(replay(whole, with_large_disk(3 * kMiB, 6)).disk_bytes_admitted == placed(4 * kMiB));
  // Objects that may not be stored at all are not written either, nor those that fit no disk.
  cache::KernelOptions bounded = with_large_disk(5 * kMiB, 6);
  bounded.max_object_bytes = 9'999'999;
  CHECK(replay(requests, bounded).disk_bytes_admitted == 0);
  const std::vector<ReplayRequest> huge(2, ask_object(1, 12 * kMiB + 1));
  const ReplayCounts none = replay(huge, with_large_disk(5 * kMiB, 6));
  CHECK(none.hits == 0);
  CHECK(none.disk_bytes_admitted == 0);
  CHECK(none.not_stored_full == 2);
  CHECK(replay(huge, with_large_disk(5 * kMiB, 7)).hits == 1);
}

TEST_CASE("A large object that fits the memory is there, and in parts on disk", "[sim][disk]") {
  std::vector<ReplayRequest> requests{ask_object(1, 10'000'000), ask_object(1, 10'000'000)};
  CHECK(replay(requests, with_large_disk(25'000'000, 8)).disk_hits == 0);
  requests.push_back(ask_object(2, 10'000'000));
  requests.push_back(ask_object(3, 10'000'000));
  // On disk alone, then promoted as others are, then in memory again.
  for (int time = 0; time < 3; ++time) {
    requests.push_back(ask_object(1, 10'000'000));
  }
  const ReplayCounts counts = replay(requests, with_large_disk(25'000'000, 8));
  CHECK(counts.hits == 4);
  CHECK(counts.disk_hits == 2);
  CHECK(counts.disk_objects_broken == 0);
}

TEST_CASE("A large object of which a part has gone is fetched again", "[sim][disk]") {
  // Five parts, four of them in the first segment, and others until that one goes.
  const ReplayRequest first = ask_object(1, 5 * cache::kPartBytes);
  std::vector<ReplayRequest> requests{first};
  for (std::uint32_t object = 2; object < 12; ++object) {
    requests.push_back(ask_object(object, 3 * cache::kPartBytes));
  }
  CHECK(replay(requests, with_large_disk(5 * kMiB, 10)).disk_parts_dropped == 4);
  requests.push_back(first);
  CHECK(replay(requests, with_large_disk(5 * kMiB, 10)).hits == 0);
  requests.push_back(first);
  const ReplayCounts counts = replay(requests, with_large_disk(5 * kMiB, 10));
  CHECK(counts.disk_objects_broken == 1);
  CHECK(counts.hits == 1);
  CHECK(counts.bytes_from_origin == 40 * cache::kPartBytes);
  // The second segment has gone by now, with the part of the first object's first body in it.
  CHECK(counts.disk_parts_dropped == 8);
}

TEST_CASE("What a replay counts of its disk is what the kernel counts", "[sim][disk]") {
  std::mt19937_64 random(5);
  std::vector<ReplayRequest> requests;
  for (int i = 0; i < 6000; ++i) {
    const auto object = static_cast<std::uint32_t>(random() % (random() % 4 == 0 ? 400 : 30));
    requests.push_back(
        ask_object(object, (1 + object * 7919 % 97) * (object % 5 == 0 ? 400'000 : 5000)));
    requests.back().time_ns = i * std::int64_t{1'000'000};
    requests.back().ttl_seconds = object % 3 == 0 ? 20U : 100'000U;
  }
  cache::KernelOptions options = with_large_disk(60'000'000, 40);
  options.max_object_share = 4;
  options.shards = 4;
  auto run = ReplayRun::create({.kernel = options});
  REQUIRE(run);
  (*run)->feed(requests);
  const ReplayCounts& counts = (*run)->counts();
  const cache::DiskStatistics disk = (*run)->kernel().disk;
  const auto dropped = static_cast<std::size_t>(cache::DiskLoss::kDropped);
  const auto unreadable = static_cast<std::size_t>(cache::DiskLoss::kUnreadable);
  CHECK(counts.disk_bytes_admitted == disk.counters.admitted_bytes);
  CHECK(counts.disk_bytes_moved == disk.counters.moved_bytes);
  CHECK(counts.disk_objects_dropped == disk.counters.losses[dropped]);
  CHECK(counts.disk_parts_dropped == disk.counters.part_losses[dropped]);
  CHECK(counts.disk_objects_broken == disk.counters.losses[unreadable]);
  CHECK(counts.disk_parts_dropped > 100);
  CHECK(counts.disk_objects_broken > 10);
  CHECK(disk.counters.parts_placed > 100);
  CHECK(disk.counters.stored_alone > 10);
  // Each byte of the disk is one thing, and what is dead has gone from the index.
  const DiskSpace::Sums space = (*run)->disk_space();
  CHECK(space.body_bytes + space.beside_bytes + space.gap_bytes + space.described_bytes +
            space.unfilled_bytes + space.free_bytes ==
        disk.disks[0].segments * disk.disks[0].segment_bytes);
  CHECK(space.free_bytes == disk.disks[0].free_segments * disk.disks[0].segment_bytes);
  CHECK(space.body_bytes + space.beside_bytes == disk.disks[0].live_bytes + space.dead_bytes);
}

TEST_CASE("The report tells hits by tier and what was written on disk and why", "[sim][disk]") {
  const DiskTraceFile trace("akamai --requests 40000 --size lognormal:4096:1 --seed 3");
  const std::string line = "replay " + trace.path() +
                           " --cache-size 2MiB --disk-size 16MiB --disk-segment 1MiB --capacity "
                           "10000 --admission always,second-hit --json --no-timing";
  const Ran ran = run(line);
  REQUIRE(ran.exit_code == 0);
  const json report = json::parse(ran.out);
  REQUIRE(report["disk"].size() == 2);
  for (std::size_t i = 0; i < 2; ++i) {
    const json& row = report["disk"][i];
    const json& whole = report["rows"][i];
    CHECK(row["disk_bytes"] == 16U << 20U);
    CHECK(row["memory_hits"].get<std::uint64_t>() + row["disk_hits"].get<std::uint64_t>() ==
          whole["hits"]);
    CHECK(row["disk_hits"] > 0);
    CHECK(row["disk_bytes_admitted"].get<std::uint64_t>() +
              row["disk_bytes_moved"].get<std::uint64_t>() ==
          row["disk_bytes_written"]);
    CHECK(row["disk_bytes_moved"] > 0);
    CHECK(row["disk_write_amplification"] > 1);
    CHECK(row["disk_write_amplification"] <= 2);
    CHECK(row["disk_index_bytes"].get<std::uint64_t>() ==
          46 * row["disk_objects"].get<std::uint64_t>());
  }
  // The product's claim: fewer writes and more bytes from the cache.
  const json& always = report["disk"][0];
  const json& second = report["disk"][1];
  CHECK(second["disk_bytes_written"].get<double>() <
        0.56 * always["disk_bytes_admitted"].get<double>());
  CHECK(report["rows"][1]["byte_hit_ratio"] > report["rows"][0]["byte_hit_ratio"]);
  CHECK(run(line).out == ran.out);
}

TEST_CASE("Options of the disk that cannot be are refused with what is accepted", "[sim][disk]") {
  const DiskTraceFile trace("zipf --requests 2000");
  const std::string line = "replay " + trace.path() + " ";
  check_refused(run(line + "--disk-segment 1MiB"), "--disk-segment goes with --disk-size only");
  check_refused(run(line + "--disk-reinsert 0.2"), "--disk-reinsert goes with --disk-size only");
  check_refused(run(line + "--disk-size x"), "--disk-size");
  check_refused(run(line + "--disk-size 128KiB"), "4 to 1048576 segments");
  check_refused(run(line + "--disk-size 64MiB --disk-segment 3MiB"), "a power of two");
  check_refused(run(line + "--disk-size 64MiB --disk-segment 32KiB"), "a power of two");
  check_refused(run(line + "--disk-size 64MiB --disk-reinsert 0.95"), "--disk-reinsert");
  check_refused(run(line + "--disk-size 64MiB --sample 0.5"), "--disk-size cannot be combined");
  check_refused(run(line + "--disk-size 64MiB --mrc 3"), "--disk-size cannot be combined");
}

}  // namespace encore::sim
