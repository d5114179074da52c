// A trace that was written in another format is the same trace: request by request, object by
// object.
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "sim/trace/open_trace.h"
#include "tests/catch.h"
#include "tests/sim/directory.h"
#include "tests/sim/run.h"

namespace encore::sim {
namespace {

std::vector<Request> read_trace(const std::string& path) {
  auto reader = open_traces({path}, {});
  REQUIRE(reader);
  std::vector<Request> all;
  std::vector<Request> batch(1000);
  for (auto got = (*reader)->read(batch); got && *got != 0; got = (*reader)->read(batch)) {
    all.insert(all.end(), batch.begin(), batch.begin() + static_cast<long>(*got));
  }
  return all;
}

// The objects' numbers in the order of their first requests.
std::vector<std::size_t> objects_in(const std::vector<Request>& requests) {
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::size_t> numbers;
  std::vector<std::size_t> in_order;
  for (const Request& request : requests) {
    const auto key = std::pair(request.key.lo, request.key.hi);
    in_order.push_back(numbers.try_emplace(key, numbers.size()).first->second);
  }
  return in_order;
}

std::uint64_t number_at(const std::string& bytes, std::size_t at, std::size_t size) {
  std::uint64_t value = 0;
  for (std::size_t i = size; i-- != 0;) {
    value = value << 8U | static_cast<unsigned char>(bytes.at(at + i));
  }
  return value;
}

std::string bytes_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Nine requests, with a size that changes and a TTL.
std::string put_small_trace(const Directory& in) {
  const std::string path = in.at("small.csv");
  std::ofstream(path) << "time,key,size,ttl\n"
                         "100,a,10,\n101,b,20,\n102,a,10,\n103,c,5000,60\n104,b,21,\n"
                         "105,d,1,\n106,a,10,\n107,c,5000,60\n109,e,300,\n";
  return path;
}

}  // namespace

TEST_CASE("A converted trace has the same requests, whatever its format", "[sim][convert]") {
  const Directory here;
  const std::string made = here.at("made.csv");
  REQUIRE(run("generate zipf -o " + made +
              " --requests 20000 --objects 3000 --size lognormal:10KiB:1 --seed 5 --rate 10")
              .exit_code == 0);
  const auto before = read_trace(made);
  for (const std::string format : {"encore", "csv", "oracle-general", "lcs"}) {
    CAPTURE(format);
    const std::string out = here.at(format == "csv" ? "out.csv" : "out.oracleGeneral");
    const Ran ran = run("convert " + made + " -o " + out + " --as " + format);
    CAPTURE(ran.err);
    REQUIRE(ran.exit_code == 0);
    const auto after = read_trace(out);
    REQUIRE(after.size() == before.size());
    CHECK(objects_in(after) == objects_in(before));
    const bool has_parts_of_seconds = format == "encore" || format == "csv";
    std::size_t differ = 0;
    for (std::size_t i = 0; i < after.size(); ++i) {
      const std::int64_t unit = has_parts_of_seconds ? 1'000 : 1'000'000'000;
      differ += after[i].size_bytes == before[i].size_bytes &&
                        after[i].time_ns / unit == before[i].time_ns / unit
                    ? 0U
                    : 1U;
    }
    CHECK(differ == 0);
  }
}

TEST_CASE("In libCacheSim's formats each request names the next for its object", "[sim][convert]") {
  const Directory here;
  const std::string small = put_small_trace(here);
  // a b a c b d a c e
  const std::vector<std::uint64_t> objects = {0, 1, 0, 2, 1, 3, 0, 2, 4};
  const std::vector<std::uint64_t> sizes = {10, 20, 10, 5000, 21, 1, 10, 5000, 300};
  constexpr std::uint64_t kNone = UINT64_MAX;
  const std::vector<std::uint64_t> next = {2, 4, 6, 7, kNone, kNone, kNone, kNone, kNone};
  const std::string oracle = here.at("small.oracle");
  REQUIRE(run("convert " + small + " -o " + oracle + " --as oracle-general").exit_code == 0);
  const std::string bytes = bytes_of(oracle);
  REQUIRE(bytes.size() == 9 * 24);
  for (std::size_t i = 0; i < 9; ++i) {
    CAPTURE(i);
    CHECK(number_at(bytes, 24 * i, 4) == (i == 8 ? 109 : 100 + i));
    CHECK(number_at(bytes, 24 * i + 4, 8) == objects[i]);
    CHECK(number_at(bytes, 24 * i + 12, 4) == sizes[i]);
    CHECK(number_at(bytes, 24 * i + 16, 8) == next[i]);
  }

  // With TTLs lcs is of version 3.
  const std::string lcs = here.at("small.lcs");
  REQUIRE(run("convert " + small + " -o " + lcs + " --as lcs").exit_code == 0);
  const std::string with_head = bytes_of(lcs);
  constexpr std::uint64_t kMagic = 0x123456789abcdef0;
  REQUIRE(with_head.size() == 8192 + 9 * 36);
  CHECK(number_at(with_head, 0, 8) == kMagic);
  CHECK(number_at(with_head, 8, 8) == 3);
  CHECK(number_at(with_head, 24, 8) == 9);
  CHECK(number_at(with_head, 32, 8) == 5);
  CHECK(number_at(with_head, 40, 8) == 10372);
  CHECK(number_at(with_head, 48, 8) == 10 + 21 + 5000 + 1 + 300);
  CHECK(number_at(with_head, 56, 8) == 100);
  CHECK(number_at(with_head, 64, 8) == 109);
  CHECK(number_at(with_head, 8184, 8) == kMagic);
  for (std::size_t i = 0; i < 9; ++i) {
    CAPTURE(i);
    const std::size_t at = 8192 + 36 * i;
    CHECK(number_at(with_head, at + 4, 8) == objects[i]);
    CHECK(number_at(with_head, at + 12, 8) == sizes[i]);
    CHECK(number_at(with_head, at + 24, 4) == (objects[i] == 2 ? 60 : 0));
    CHECK(number_at(with_head, at + 28, 8) == (next[i] == kNone ? INT64_MAX : next[i]));
  }
  const auto read = read_trace(lcs);
  REQUIRE(read.size() == 9);
  CHECK(read[3].ttl_seconds == 60);
  CHECK(read[0].ttl_seconds == kNoTtl);
}

TEST_CASE("Only what is asked for is written", "[sim][convert]") {
  const Directory here;
  const std::string small = put_small_trace(here);
  const auto sizes_with = [&](const std::string& options) {
    const std::string out = here.at("part.csv");
    const Ran ran = run("convert " + small + " -o " + out + " " + options);
    CAPTURE(ran.err);
    REQUIRE(ran.exit_code == 0);
    std::vector<std::uint64_t> sizes;
    for (const Request& request : read_trace(out)) sizes.push_back(request.size_bytes);
    return sizes;
  };
  using Sizes = std::vector<std::uint64_t>;
  CHECK(sizes_with("--from 3s") == Sizes{5000, 21, 1, 10, 5000, 300});
  CHECK(sizes_with("--until 3s") == Sizes{10, 20, 10});
  CHECK(sizes_with("--from 1s --until 4s") == Sizes{20, 10, 5000});
  CHECK(sizes_with("--size-min 20") == Sizes{20, 5000, 21, 5000, 300});
  CHECK(sizes_with("--size-max 20") == Sizes{10, 20, 10, 1, 10});
  CHECK(sizes_with("--size-min 21 --size-max 300") == Sizes{21, 300});
  // A share has whole objects.
  const auto part = [&](int seed) {
    return sizes_with("--share 0.5 --share-seed " + std::to_string(seed));
  };
  std::size_t other = 0;
  for (int seed = 1; seed <= 10; ++seed) {
    const auto count = static_cast<std::size_t>(std::ranges::count(part(seed), 10U));
    CHECK((count == 0 || count == 3));
    other += part(seed) == part(1) ? 0U : 1U;
  }
  CHECK(other > 0);
}

TEST_CASE("What cannot be converted is refused, and says why", "[sim][convert]") {
  const Directory here;
  const std::string small = put_small_trace(here);
  const std::string out = " -o " + here.at("x");
  check_refused(run("convert " + small), "no output: add -o FILE");
  check_refused(run("convert " + small + out + " --as tsv"),
                "unknown format \"tsv\", accepted: encore csv oracle-general lcs");
  check_refused(run("convert " + small + out + " --from 5s --until 5s"),
                "--until 5s is not after --from 5s");
  check_refused(run("convert " + small + out + " --size-min 2KiB --size-max 1KiB"),
                "--size-max 1KiB is below --size-min 2KiB");
  check_refused(run("convert " + small + out + " --from 1h"), "no request is left: of 9, 9 are");
  const std::string large = here.at("large.csv");
  std::ofstream(large) << "time,key,size\n1,a,10\n2,b,5000000000\n";
  check_refused(run("convert " + large + out + " --as oracle-general"),
                "request 2 has a size of 5000000000 bytes");
  CHECK(run("convert " + large + out + " --as lcs").exit_code == 0);
}

}  // namespace encore::sim
