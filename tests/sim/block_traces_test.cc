// Traces of block devices: vSCSI records, and requests that are split into blocks.
#include <cstdint>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "sim/trace/open_trace.h"
#include "tests/catch.h"
#include "tests/sim/directory.h"
#include "tests/sim/run.h"
#include "tests/sim/trace_bytes.h"

namespace encore::sim {
namespace {

struct DiskRequest {
  std::uint64_t sector;
  std::uint32_t bytes;
};

std::string vscsi_of(int version, const std::vector<DiskRequest>& requests) {
  std::string bytes;
  std::uint32_t serial = 0;
  for (const auto& [sector, length] : requests) {
    const std::string head = version == 1 ? little(serial, 4) + little(length, 4) + little(1, 4) +
                                                little(0x2a, 2) + little(0x100, 2)
                                          : little(0x2a, 2) + little(0x200, 2) + little(serial, 4) +
                                                little(length, 4) + little(1, 4);
    bytes += head + little(sector, 8) + little(1'000'000 + serial, 8);
    if (version == 2) bytes += little(77, 8);
    ++serial;
  }
  return bytes;
}

std::vector<Request> requests_in(const std::string& path, const TraceOptions& options) {
  auto reader = open_trace(path, options);
  REQUIRE(reader);
  std::vector<Request> all;
  std::vector<Request> batch(3);
  while (true) {
    const auto got = (*reader)->read(batch);
    REQUIRE(got);
    if (*got == 0) return all;
    all.insert(all.end(), batch.begin(), batch.begin() + static_cast<std::ptrdiff_t>(*got));
  }
}

std::vector<DiskRequest> disk_requests() {
  std::vector<DiskRequest> all;
  for (std::uint64_t i = 0; i < 40; ++i) {
    all.push_back({.sector = i % 7 * 1000, .bytes = static_cast<std::uint32_t>(512 * (1 + i % 5))});
  }
  return all;
}

TEST_CASE("vSCSI traces are told by their version, and read", "[sim][trace]") {
  const int version = GENERATE(1, 2);
  const Directory directory;
  const auto wanted = disk_requests();
  const std::string path = directory.write("t.vscsi", vscsi_of(version, wanted));
  auto reader = open_trace(path, {});
  REQUIRE(reader);
  CHECK((*reader)->format() == TraceFormat::kVscsi);
  CHECK((*reader)->sources().front().confidence == Confidence::kHigh);
  const auto read = requests_in(path, {});
  REQUIRE(read.size() == wanted.size());
  for (std::size_t i = 0; i < read.size(); ++i) {
    CHECK(read[i].size_bytes == wanted[i].bytes);
    CHECK(read[i].time_ns == static_cast<std::int64_t>(1'000'000 + i) * 1000);
    CHECK((read[i].key == read[i % 7].key) == (wanted[i].sector == wanted[i % 7].sector));
  }
  const std::string cut =
      directory.write("cut.vscsi", vscsi_of(version, wanted).substr(0, 40 * 20 - 4));
  const Ran ran = run("stats --format vscsi " + cut);
  check_refused(ran, "the trace is cut off within record");
  const std::string one = directory.write("one.vscsi", vscsi_of(version, {wanted.front()}));
  CHECK(run("stats --format vscsi " + one).exit_code == 0);
  check_refused(run("stats --format vscsi " + directory.write("x.bin", std::string(400, 'x'))),
                "no vSCSI records of version 1 or 2");
}

// The blocks of each request, counted by hand.
std::uint64_t blocks_by_hand(const std::vector<DiskRequest>& requests, std::uint64_t block,
                             std::set<std::uint64_t>& distinct) {
  std::uint64_t count = 0;
  for (const auto& [sector, bytes] : requests) {
    std::uint64_t last = UINT64_MAX;
    for (std::uint64_t at = sector * 512; at < sector * 512 + bytes; ++at) {
      if (at / block == last) continue;
      last = at / block;
      distinct.insert(last);
      ++count;
    }
  }
  return count;
}

TEST_CASE("A request is split into the blocks that it touches", "[sim][trace]") {
  const std::uint64_t block = GENERATE(512U, 1024U, 4096U, 65536U);
  const Directory directory;
  const auto wanted = disk_requests();
  std::string alibaba;
  std::string msr;
  std::string spc;
  std::string tencent;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const std::string offset = std::to_string(wanted[i].sector * 512);
    const std::string bytes = std::to_string(wanted[i].bytes);
    const std::string sector = std::to_string(wanted[i].sector);
    alibaba += "419,W," + offset + "," + bytes + "," + std::to_string(1577808000000000 + i) + "\n";
    msr += "1281660837" + std::to_string(20000000 + i) + ",usr,0,Read," + offset + "," + bytes +
           ",41286\n";
    spc += "0," + sector + "," + bytes + ",R," + std::to_string(i) + ".5\n";
    tencent += std::to_string(1538323200 + i) + "," + sector + "," +
               std::to_string(wanted[i].bytes / 512) + ",0,1063\n";
  }
  std::set<std::uint64_t> distinct;
  const std::uint64_t count = blocks_by_hand(wanted, block, distinct);
  for (const auto& [format, bytes] :
       std::vector<std::pair<std::string, std::string>>{{"alibaba-block", alibaba},
                                                        {"msr", msr},
                                                        {"spc", spc},
                                                        {"tencent-block", tencent},
                                                        {"vscsi", vscsi_of(2, wanted)}}) {
    CAPTURE(format, block);
    const Ran ran = run("stats --json --format " + format + " --split-blocks " +
                        std::to_string(block) + " " + directory.write(format, bytes));
    REQUIRE(ran.exit_code == 0);
    const auto row = nlohmann::json::parse(ran.out)["rows"][0];
    CHECK(row["requests"] == count);
    CHECK(row["objects"] == distinct.size());
    CHECK(row["bytes_requested"] == count * block);
  }
}

TEST_CASE("What has no blocks, or too many, is not split", "[sim][trace]") {
  const Directory directory;
  check_refused(
      run("stats --split-blocks 4KiB " + directory.write("t.csv", "key,size\na,1\nb,2\n")),
      "--split-blocks with format csv, accepted with traces of blocks");
  check_refused(run("stats --split-blocks 2GiB " + directory.at("t.csv")), "--split-blocks");
  std::string lines;
  for (int i = 0; i < 20; ++i)
    lines += "1,W,0,1000000000000," + std::to_string(1577808000000000 + i) + "\n";
  check_refused(
      run("stats --format alibaba-block --split-blocks 512 " + directory.write("t", lines)),
      "a request of more than a million blocks");
}

}  // namespace
}  // namespace encore::sim
