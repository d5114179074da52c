// Every trace format by its own lines, compression, the rule which lines count, bad input; and the
// figures of real traces, where they are at hand.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "sim/replay/trace_statistics.h"
#include "sim/trace/byte_source.h"
#include "sim/trace/open_trace.h"
#include "sim/trace/record_format.h"
#include "sim/trace/trace_reader.h"
#include "tests/catch.h"
#include "tests/sim/trace_bytes.h"

namespace encore::sim {

namespace {

// A file that is gone at the end of the test.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& content) {
    static int number = 0;
    path_ = std::filesystem::temp_directory_path() /
            ("encore_trace_" + std::to_string(::getpid()) + "_" + std::to_string(number++));
    std::ofstream(path_, std::ios::binary) << content;
  }
  ~TemporaryFile() {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

struct Read {
  std::vector<Request> requests;
  TraceCounts counts;
  TraceFormat format = TraceFormat::kAuto;
};

Result<Read> read_all(const std::string& path, const TraceOptions& options = {}) {
  auto reader = open_trace(path, options);
  if (!reader) {
    return std::unexpected(reader.error());
  }
  Read result;
  std::vector<Request> batch(7);
  while (true) {
    const auto count = (*reader)->read(batch);
    if (!count) {
      return std::unexpected(count.error());
    }
    if (*count == 0) {
      break;
    }
    result.requests.insert(result.requests.end(), batch.begin(),
                           batch.begin() + static_cast<std::ptrdiff_t>(*count));
  }
  result.counts = (*reader)->counts();
  result.format = (*reader)->format();
  return result;
}

Result<Read> read_text(const std::string& content, const TraceOptions& options = {}) {
  const TemporaryFile file(content);
  return read_all(file.path(), options);
}

TraceOptions as(TraceFormat format) {
  TraceOptions options;
  options.format = format;
  return options;
}

void check_request(const Request& request, const std::string& key, std::uint64_t size,
                   double seconds) {
  CHECK(request.key == filter::identify({}, key).hash);
  CHECK(request.size_bytes == size);
  CHECK(static_cast<double>(request.time_ns) * 1e-9 == Approx(seconds));
}

// The directory of real traces, empty if it is not there.
std::string real_traces() {
  const char* given = std::getenv("ENCORE_TRACES");
  const std::filesystem::path path =
      given != nullptr ? std::filesystem::path(given)
                       : std::filesystem::path(ENCORE_SOURCE_DIR) / "../shared/traces";
  return std::filesystem::is_directory(path) ? path.string() : "";
}

}  // namespace

TEST_CASE("Squid's native log is read", "[sim][trace]") {
  const auto read = read_text(
      "1157689312.049   5006 10.1.1.1 TCP_MISS/200 19763 CONNECT login.example:443 u DIRECT/1 -\n"
      "1157689320.327   2864 10.1.1.1 TCP_MISS/200 10182 GET http://www.example/ - DIRECT/1 "
      "text/html\n"
      "1157689320.343   1357 10.1.1.1 TCP_REFRESH_HIT/304 214 GET http://www.example/a.css - "
      "DIRECT/1 -\n"
      "1157689321.315      1 10.1.1.1 TCP_HIT/404 1464 GET http://www.example/b.js - NONE/- -\n");
  REQUIRE(read);
  CHECK(read->format == TraceFormat::kSquid);
  REQUIRE(read->requests.size() == 2);
  check_request(read->requests[0], "http://www.example/", 10182, 1157689320.327);
  check_request(read->requests[1], "http://www.example/a.css", 214, 1157689320.343);
  CHECK(read->counts.skipped == 2);
}

TEST_CASE("Common and combined logs are read", "[sim][trace]") {
  const auto read = read_text(
      "127.0.0.1 - frank [10/Oct/2000:13:55:36 -0700] \"GET /apache_pb.gif HTTP/1.0\" 200 2326\n"
      "127.0.0.1 - - [10/Oct/2000:13:55:37 -0700] \"GET /q?\\\"x HTTP/1.1\" 304 - \"-\" \"a b\"\n"
      "127.0.0.1 - - [10/Oct/2000:13:55:38 -0700] \"POST /form HTTP/1.1\" 200 5 \"-\" \"a\"\n");
  REQUIRE(read);
  CHECK(read->format == TraceFormat::kCombined);
  REQUIRE(read->requests.size() == 2);
  check_request(read->requests[0], "/apache_pb.gif", 2326, 971211336);
  check_request(read->requests[1], "/q?\\\"x", 1024, 971211337);
  CHECK(read->counts.without_size == 1);
}

TEST_CASE("JSON lines are read by the usual names, by given names, and as Caddy writes them",
          "[sim][trace]") {
  const auto usual =
      read_text(R"({"time":1.5,"method":"GET","url":"http://a/","status":200,"bytes":7,"ttl":60})"
                "\n");
  REQUIRE(usual);
  REQUIRE(usual->requests.size() == 1);
  check_request(usual->requests[0], "http://a/", 7, 1.5);
  CHECK(usual->requests[0].ttl_seconds == 60);

  TraceOptions named;
  named.columns = {{"key", "req.path"}, {"time", "@t"}, {"size", "n"}};
  const auto given = read_text(R"({"@t":"1970-01-01T00:01:00.250Z","req":{"path":"/x"},"n":"9"})"
                               "\n",
                               named);
  REQUIRE(given);
  REQUIRE(given->requests.size() == 1);
  check_request(given->requests[0], "/x", 9, 60.25);

  const auto caddy = read_text(
      R"({"level":"info","ts":1646861401.5,"request":{"method":"GET","host":"h","uri":"/u"},)"
      R"("status":200,"size":10900})"
      "\n");
  REQUIRE(caddy);
  CHECK(caddy->format == TraceFormat::kCaddy);
  REQUIRE(caddy->requests.size() == 1);
  check_request(caddy->requests[0], "h/u", 10900, 1646861401.5);
}

TEST_CASE("Logs of encore name objects by host and path, and skip what could not be parsed",
          "[sim][trace]") {
  const auto json = read_text(
      R"({"time":"1994-11-06T08:49:37.250001Z","client":"127.0.0.1","method":"GET",)"
      R"("url":"http://a/b","host":"a","version":"HTTP/1.1","status":200,"bytes":300,)"
      R"("body_bytes":200,"duration_us":12000,"outcome":"hit","origin":"127.0.0.1:80",)"
      R"("content_type":"text/html","referer":"http://a/","user_agent":"x"})"
      "\n"
      R"({"time":"1994-11-06T08:49:38.000000Z","client":"127.0.0.1","method":"GET","url":"/b",)"
      R"("host":"c","version":"HTTP/1.1","status":200,"bytes":310,"body_bytes":210,)"
      R"("duration_us":12000,"outcome":"hit"})"
      "\n"
      R"({"time":"1994-11-06T08:49:39.000000Z","client":"127.0.0.1","method":"","url":"",)"
      R"("version":"","status":400,"bytes":300,"body_bytes":50,"duration_us":1,)"
      R"("outcome":"bad-request"})"
      "\n");
  REQUIRE(json);
  CHECK(json->format == TraceFormat::kJson);
  REQUIRE(json->requests.size() == 2);
  check_request(json->requests[0], "http://a/b", 200, 784111777.250001);
  check_request(json->requests[1], "c/b", 210, 784111778);
  CHECK(json->counts.skipped == 1);
  CHECK(json->counts.bad == 0);

  const auto combined = read_text(
      "::1 - - [06/Nov/1994:08:49:37 +0000] \"GET http://a/b HTTP/1.1\" 200 200 \"-\" \"-\"\n"
      "::1 - - [01/Jan/1970:00:00:00 +0000] \"-\" 400 0 \"-\" \"-\"\n");
  REQUIRE(combined);
  CHECK(combined->requests.size() == 1);
  CHECK(combined->counts.skipped == 1);
  CHECK(combined->counts.bad == 0);
}

TEST_CASE("A prefix stands in front of each key of a format of lines", "[sim][trace]") {
  const TemporaryFile log(
      "{\"url\":\"http://a/b\",\"method\":\"GET\",\"status\":200}\n"
      "{\"url\":\"http://a/c\",\"method\":\"GET\",\"status\":200}\n");
  TraceOptions options;
  options.format = TraceFormat::kJson;
  options.identity_seed = {1, 1};
  options.key_prefix = "forward:";
  const auto read = read_all(log.path(), options);
  REQUIRE(read);
  REQUIRE(read->requests.size() == 2);
  CHECK(read->requests[0].key == filter::identify({1, 1}, "forward:http://a/b").hash);
  CHECK(read->requests[1].key == filter::identify({1, 1}, "forward:http://a/c").hash);
  options.format = TraceFormat::kInt32;
  const auto numbers = read_all(log.path(), options);
  REQUIRE_FALSE(numbers);
  CHECK(numbers.error().message.find("a prefix of the keys of format int32") != std::string::npos);
}

TEST_CASE("csv and tsv find their columns by name, number or count", "[sim][trace]") {
  const auto named = read_text("op_time,block_id,x,io_size\n5,abc,1,77\n6,\"d,\"\"e\",2,78\n");
  REQUIRE(named);
  REQUIRE(named->requests.size() == 2);
  check_request(named->requests[0], "abc", 77, 5);
  check_request(named->requests[1], "d,\"e", 78, 6);

  TraceOptions numbered;
  numbered.columns = {{"key", "1"}, {"size", "3"}};
  const auto by_number = read_text("k1,x,10\nk2,x,20\n", numbered);
  REQUIRE(by_number);
  REQUIRE(by_number->requests.size() == 2);
  check_request(by_number->requests[1], "k2", 20, 0);

  const auto by_count = read_text("1\tkey\t3\n");
  REQUIRE(by_count);
  CHECK(by_count->format == TraceFormat::kTsv);
  check_request(by_count->requests[0], "key", 3, 1);

  const auto keys = read_text("a\nb\na\n");
  REQUIRE(keys);
  CHECK(keys->requests.size() == 3);
  check_request(keys->requests[2], "a", 1024, 0);

  TraceOptions missing;
  missing.columns = {{"key", "nowhere"}};
  CHECK(!read_text("time,key\n1,2\n", missing));
}

TEST_CASE("Empty lines before a header, and separators within quotes, are seen through",
          "[sim][trace]") {
  for (const char* begin : {"\n", "\r\n", "# a remark\n\n", "\n# a remark\n"}) {
    const auto read = read_text(std::string(begin) + "time,key,size\n0,a,10\n1,b,20\n");
    REQUIRE(read);
    REQUIRE(read->requests.size() == 2);
    check_request(read->requests[1], "b", 20, 1);
  }
  const auto quoted = read_text("0,\"x,k\",10\n1,\"x,l\",20\n2,\"x,k\",10\n");
  REQUIRE(quoted);
  REQUIRE(quoted->requests.size() == 3);
  check_request(quoted->requests[1], "x,l", 20, 1);
  const auto named = read_text("\"my,own\",key,size\n7,a,10\n");
  REQUIRE(named);
  REQUIRE(named->requests.size() == 1);
  check_request(named->requests[0], "a", 10, 0);
}

TEST_CASE("LRB and wikibench lines are read", "[sim][trace]") {
  const auto lrb = read_text("1 100 12\n2 200 13\n");
  REQUIRE(lrb);
  CHECK(lrb->format == TraceFormat::kLrb);
  check_request(lrb->requests[1], "200", 13, 2);
  const auto wiki = read_text("929840853 1190146243.303 http://en.wikipedia.org/wiki/A -\n");
  REQUIRE(wiki);
  CHECK(wiki->format == TraceFormat::kWikibench);
  check_request(wiki->requests[0], "http://en.wikipedia.org/wiki/A", 1024, 1190146243.303);
}

TEST_CASE("Binary formats are read", "[sim][trace]") {
  const std::string two = little(10, 4) + little(0xabcdef0102030405U, 8) + little(500, 4) +
                          little(2, 8) + little(11, 4) + little(7, 8) + little(600, 4) +
                          little(UINT64_MAX, 8);
  CHECK(!read_text(two));  // too few records to be recognised
  const auto oracle = read_text(two, as(TraceFormat::kOracleGeneral));
  REQUIRE(oracle);
  CHECK(oracle->format == TraceFormat::kOracleGeneral);
  REQUIRE(oracle->requests.size() == 2);
  CHECK(oracle->requests[1].key == hash_of_id(7, {}));
  CHECK(oracle->requests[1].size_bytes == 600);
  CHECK(oracle->requests[1].time_ns == 11'000'000'000);

  const std::string three = big(1, 4) + big(0xb8000001U, 4) + big(1, 4);
  CHECK(!read_text(three));
  const auto small = read_text(three, as(TraceFormat::kInt32));
  REQUIRE(small);
  CHECK(small->format == TraceFormat::kInt32);
  CHECK(small->requests[2].key == hash_of_id(1, {}));
  const auto large = read_text(big(1, 8) + big(2, 8), as(TraceFormat::kInt64));
  REQUIRE(large);
  CHECK(large->format == TraceFormat::kInt64);
  CHECK(large->requests.size() == 2);

  const auto own = read_text(std::string(kEncoreMagic) + little(9, 8) + little(100, 8) +
                             little(5, 8) + little(60, 4) + little(0, 4));
  REQUIRE(own);
  REQUIRE(own->requests.size() == 1);
  CHECK(own->requests[0].key == hash_of_id(9, {}));
  CHECK(own->requests[0].ttl_seconds == 60);
}

TEST_CASE("Traces of lcs are read in each version", "[sim][trace]") {
  struct Version {
    std::uint64_t number;
    std::size_t features;  // their number
  };
  for (const auto& [number, features] :
       {Version{1, 0}, Version{2, 0}, Version{3, 0}, Version{4, 1}, Version{5, 2}, Version{6, 4},
        Version{7, 8}, Version{8, 16}}) {
    CAPTURE(number);
    const std::uint64_t large = number < 3 ? 700 : 1ULL << 33U;
    const auto record = [&](std::uint64_t time, std::uint64_t id, std::uint64_t size,
                            std::uint64_t ttl) {
      std::string bytes = little(time, 4) + little(id, 8) + little(size, number < 3 ? 4 : 8);
      if (number >= 2) bytes += little(1 + (7U << 8U), 4);  // operation and tenant
      if (number >= 3) bytes += little(ttl, 4);
      bytes += little(UINT64_MAX, 8);  // no next request
      for (std::size_t i = 0; i < features; ++i) bytes += little(i + 1, 4);
      return bytes;
    };
    std::string lcs = little(kLcsMagic, 8) + little(number, 8);
    lcs.resize(kLcsHeader);
    lcs += record(10, 5, large, 60) + record(11, 6, 500, 0);
    const auto read = read_text(lcs);
    REQUIRE(read);
    REQUIRE(read->requests.size() == 2);
    CHECK(read->requests[0].size_bytes == large);
    CHECK(read->requests[0].ttl_seconds == (number < 3 ? Request{}.ttl_seconds : 60));
    CHECK(read->requests[1].key == hash_of_id(6, {}));
    CHECK(read->requests[1].time_ns == 11'000'000'000);
    CHECK(read->requests[1].size_bytes == 500);
    CHECK(read->requests[1].ttl_seconds == Request{}.ttl_seconds);
  }
  for (const std::uint64_t number : {std::uint64_t{0}, std::uint64_t{9}}) {
    std::string lcs = little(kLcsMagic, 8) + little(number, 8);
    lcs.resize(kLcsHeader);
    const auto read = read_text(lcs);
    REQUIRE(!read);
    CHECK(read.error().message.find("accepted: 1 to 8") != std::string::npos);
  }
}

TEST_CASE("Noise is no trace, and an archive that ends in its first bytes is cut off",
          "[sim][trace]") {
  std::string noise;
  for (std::uint64_t i = 1; i <= 28; ++i) {
    noise += big(i * 0x9e3779b97f4a7c15U >> 32U, 4);
  }
  for (const std::string& none :
       {noise, noise.substr(16, 8), std::string("garb\x01ge\xff\n\n\n\n")}) {
    const auto read = read_text(none);
    REQUIRE(!read);
    CHECK(read.error().message.find("--format") != std::string::npos);
  }
  for (const std::string_view start : {"\x1f\x8b",
                                       "\xfd"
                                       "7zXZ",
                                       "\x28\xb5", "\x28\xb5\x2f"}) {
    const auto read = read_text(std::string(start));
    REQUIRE(!read);
    CHECK(read.error().message.find("cut off") != std::string::npos);
  }
}

TEST_CASE("Compressed traces are seen through, several members too", "[sim][trace]") {
  std::string text;
  for (int i = 0; i < 50000; ++i) {
    text += std::to_string(i) + " " + std::to_string(i * 7919 % 1000) + " 5\n";
  }
  for (const std::string& packed :
       {gzip(text), zstd(text), gzip(text.substr(0, 6)) + gzip(text.substr(6)),
        zstd(text.substr(0, 6)) + zstd(text.substr(6))}) {
    const auto read = read_text(packed);
    REQUIRE(read);
    CHECK(read->requests.size() == 50000);
    CHECK(read->counts.bad == 0);
  }
}

TEST_CASE("Traces that are cut off, damaged or missing are refused in one line", "[sim][trace]") {
  std::string text;
  for (int i = 0; i < 5000; ++i) {
    text += std::to_string(i) + " " + std::to_string(i * 7919 % 1000) + " 5\n";
  }
  for (std::string packed : {gzip(text), zstd(text)}) {
    CHECK(!read_text(packed.substr(0, packed.size() / 2)));
    CHECK(!read_text(packed.substr(0, packed.size() - 1)));
    packed[packed.size() / 2] = static_cast<char>(packed[packed.size() / 2] ^ 0x55);
    packed[packed.size() / 2 + 1] = static_cast<char>(packed[packed.size() / 2 + 1] ^ 0x55);
    CHECK(!read_text(packed));
  }
  CHECK(!read_text(""));
  CHECK(!read_text("\x1f\x8b"));
  CHECK(!read_all("/nonexistent/trace"));
  CHECK(!read_all("/"));
  CHECK(!read_text(std::string("\0\1\2", 3)));
  CHECK(!read_text(std::string(kEncoreMagic) + "short"));
  CHECK(!read_text("two words\nand more of them\n"));
  TraceOptions lcs;
  lcs.format = TraceFormat::kLcs;
  CHECK(!read_text("no lcs", lcs));
}

TEST_CASE("Bad lines are counted and shown, and refused past a share", "[sim][trace]") {
  std::string text;
  for (int i = 0; i < 998; ++i) {
    text += "1 key 5\n";
  }
  const auto fine = read_text(text + "bad\n1 key\n");
  REQUIRE(fine);
  CHECK(fine->counts.bad == 2);
  REQUIRE(fine->counts.bad_shown.size() == 2);
  CHECK(fine->counts.bad_shown[0].find("line 999") != std::string::npos);
  std::string worse = text;
  for (int i = 0; i < 20; ++i) {
    worse += "bad\n";
  }
  const auto refused = read_text(worse);
  REQUIRE(!refused);
  CHECK(refused.error().message.find("no lrb") != std::string::npos);
  TraceOptions tolerant;
  tolerant.bad_share_max = 0.5;
  CHECK(read_text(worse, tolerant));
}

TEST_CASE("Several traces are one after the other", "[sim][trace]") {
  const TemporaryFile one("1 a 5\n2 b 5\n");
  const TemporaryFile two("3 a 5\n");
  auto reader = open_traces({one.path(), two.path()}, {});
  REQUIRE(reader);
  std::vector<Request> batch(10);
  std::size_t count = 0;
  while (true) {
    const auto got = (*reader)->read(batch);
    REQUIRE(got);
    if (*got == 0) {
      break;
    }
    count += *got;
  }
  CHECK(count == 3);
  CHECK((*reader)->counts().lines == 3);
  auto missing = open_traces({one.path(), "/nonexistent/trace"}, {});
  REQUIRE(missing);
  REQUIRE((*missing)->read(batch));
  CHECK(!(*missing)->read(batch));
}

TEST_CASE("Statistics of a small trace are what one counts by hand", "[sim][trace]") {
  TraceStatistics statistics;
  for (const char key : std::string("abacadb")) {
    statistics.add({.key = filter::identify({}, std::string_view(&key, 1)).hash, .size_bytes = 10});
  }
  const TraceSummary summary = statistics.summary();
  CHECK(summary.requests == 7);
  CHECK(summary.objects == 4);
  CHECK(summary.bytes_requested == 70);
  CHECK(summary.bytes_unique == 40);
  CHECK(summary.one_hit_objects == 2);
  CHECK(summary.infinite_hit_ratio() == Approx(3.0 / 7));
  CHECK(summary.reuse_distances[1] == 2);  // a at distance 2
  CHECK(summary.reuse_distances[3] == 1);  // b at distance 5
}

TEST_CASE("Real traces give their known figures", "[sim][trace][real]") {
  const std::string directory = real_traces();
  if (directory.empty()) {
    SUCCEED("skipped: no real traces at hand (ENCORE_TRACES says where)");
    return;
  }
  struct Known {
    std::string file;
    bool all_lines;
    std::uint64_t requests;
    std::uint64_t objects;
    double one_hit_objects;
    double one_hit_requests;
    double infinite;
    std::uint64_t bytes;
    std::uint64_t bytes_unique;
  };
  for (const Known& known :
       {Known{"nasa_19950801.tsv.zst", false, 30297, 1739, .380, .022, .943, 481973703, 109359310},
        Known{"nasa_19950801.tsv.zst", true, 30969, 2088, .458, .031, .933, 482000467, 109383974},
        Known{"web07.trace.xz", false, 76118, 20484, .540, .145, .731, 0, 0},
        Known{"orm-night.trace.xz", false, 5000000, 86466, .135, .002, .983, 0, 0},
        Known{"corda_vaultservice.trace.gz", false, 135702, 90468, .500, .333, .333, 0, 0},
        Known{"cachelib_block_traces_1.csv.zst", false, 999, 625, .768, .480, .374, 3469145050,
              2854440940}}) {
    INFO(known.file);
    TraceOptions options;
    options.all_lines = known.all_lines;
    auto reader = open_trace(directory + "/" + known.file, options);
    REQUIRE(reader);
    TraceStatistics statistics;
    std::vector<Request> batch(4096);
    while (true) {
      const auto count = (*reader)->read(batch);
      REQUIRE(count);
      if (*count == 0) {
        break;
      }
      for (std::size_t i = 0; i < *count; ++i) {
        statistics.add(batch[i]);
      }
    }
    const TraceSummary summary = statistics.summary();
    CHECK(summary.requests == known.requests);
    CHECK(summary.objects == known.objects);
    CHECK(std::abs(summary.one_hit_objects_share() - known.one_hit_objects) < .0005001);
    CHECK(std::abs(summary.one_hit_requests_share() - known.one_hit_requests) < .0005001);
    CHECK(std::abs(summary.infinite_hit_ratio() - known.infinite) < .0005001);
    if (known.bytes != 0) {
      CHECK(summary.bytes_requested == known.bytes);
      CHECK(summary.bytes_unique == known.bytes_unique);
    }
  }
}

}  // namespace encore::sim
