// Inputs that are traces and others: the detected format, its confidence, and the message without
// one.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "sim/trace/detect.h"
#include "sim/trace/record_format.h"
#include "tests/catch.h"
#include "tests/sim/directory.h"
#include "tests/sim/run.h"
#include "tests/sim/trace_bytes.h"

namespace encore::sim {

namespace {

Result<Detection> detect(std::string_view bytes, const std::string& path = "trace",
                         const TraceOptions& options = {}) {
  const std::string_view head = bytes.substr(0, kHeadBytes);
  return detect_format({.bytes = head, .whole = head.size() == bytes.size(), .path = path},
                       options);
}

void check_detected(const std::string& bytes, TraceFormat format, Confidence confidence,
                    const std::string& reason) {
  const auto told = detect(bytes);
  INFO((told ? told->reason : told.error().message));
  REQUIRE(told);
  CHECK(told->format == format);
  CHECK(told->confidence == confidence);
  CHECK(told->reason.find(reason) != std::string::npos);
}

void check_no_trace(const std::string& bytes, const std::string& because) {
  const auto told = detect(bytes);
  INFO((told ? std::string(to_string(told->format)) + ": " + told->reason : told.error().message));
  REQUIRE(!told);
  CHECK(told.error().message.find(because) != std::string::npos);
  CHECK(told.error().message.find("--format") != std::string::npos);
}

std::string noise(std::size_t size, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::string bytes;
  while (bytes.size() < size) {
    bytes += static_cast<char>(random() & 0xffU);
  }
  return bytes;
}

std::string lines_of(int count, const std::string& format) {
  std::string text;
  for (int i = 0; i < count; ++i) {
    std::string line = format;
    for (const auto& [what, number] :
         {std::pair("TIME", i), std::pair("KEY", i * 7919 % 13), std::pair("SIZE", 100 + i % 7)}) {
      if (const auto at = line.find(what); at != std::string::npos) {
        line.replace(at, std::string(what).size(), std::to_string(number));
      }
    }
    text += line + "\n";
  }
  return text;
}

std::string wide(const std::string& text, const std::string& before, const std::string& after) {
  std::string out;
  for (const char c : text) {
    out += before + c + after;
  }
  return out;
}

// As libCacheSim writes it, with the numbers of the next requests from `base` on.
std::string oracle_general(std::size_t count, std::uint64_t base, std::uint64_t leap_seconds = 1) {
  std::vector<std::uint64_t> ids;
  for (std::size_t i = 0; i < count; ++i) {
    ids.push_back(0xabcdef0102030400U + i * i % 19);
  }
  std::string bytes;
  for (std::size_t i = 0; i < count; ++i) {
    const auto next =
        std::find(ids.begin() + static_cast<std::ptrdiff_t>(i) + 1, ids.end(), ids[i]);
    const auto number = static_cast<std::uint64_t>(next - ids.begin()) + base;
    bytes += little(1000 + i * leap_seconds, 4) + little(ids[i], 8) + little(500 + ids[i] % 9, 4) +
             little(next == ids.end() ? UINT64_MAX : number, 8);
  }
  return bytes;
}

}  // namespace

TEST_CASE("Programs, noise and other files are no traces, and named where they are known",
          "[sim][trace]") {
  const std::string program = contents("/proc/self/exe");
  check_no_trace(program, "it is an ELF program");
  check_no_trace(program.substr(64), "");  // nor is what follows its mark
  check_no_trace(program.substr(program.size() / 2), "");
  for (const std::size_t size : {12U, 100U, 1000U, 4096U, 65536U, 100000U}) {
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      check_no_trace(noise(size, seed), "");
    }
  }
  for (const std::size_t size : {8U, 4096U, 65536U}) {
    check_no_trace(std::string(size, '\0'), "");
    check_no_trace(std::string(size, '\xff'), "");
  }
  check_no_trace("PK\3\4" + noise(100, 1), "a ZIP archive");
  check_no_trace("\x89PNG\r\n\x1a\n" + noise(100, 1), "a PNG image");
  check_no_trace("BZh91AY&SY" + noise(100, 1), "bzip2 -d");
  check_no_trace(gzip("1 a 5\n"), "within compressed data");
  check_no_trace(std::string(257, 'a') + std::string("ustar\0", 6) + noise(100, 1),
                 "a tar archive");
}

TEST_CASE("A file is refused by every command, whatever it is called and however compressed",
          "[sim][trace]") {
  const Directory directory;
  const std::string program = contents("/proc/self/exe").substr(0, 100000);
  for (const std::string& path :
       {directory.write("program.csv", program), directory.write("program", program),
        directory.write("program.csv.gz", gzip(program)),
        directory.write("noise.csv", noise(5000, 1)),
        directory.write("twice.gz", gzip(gzip("1 a 5\n")))}) {
    check_refused(run("stats " + path), path);
    check_refused(run("replay " + path + " --cache-size 1KiB"), "--format");
    check_refused(run("tune " + path), "--format");
    check_refused(run("drive " + path + " --proxy http://127.0.0.1:1"), "--format");
  }
  CHECK(run("stats --format int32 " + directory.write("noise", noise(5000, 1))).exit_code == 0);
  // Numbers, but the name says text.
  std::string ids;
  for (std::uint64_t i = 0; i < 2000; ++i) {
    ids += big(i * i % 97, 4);
  }
  CHECK(run("stats " + directory.write("ids", ids)).exit_code == 0);
  check_refused(run("stats " + directory.write("ids.csv", ids)), "its name says text");
}

TEST_CASE("Text with bytes that no text has is refused, later they are bad lines", "[sim][trace]") {
  std::string text = lines_of(50, "TIME KEY SIZE");
  check_detected(text, TraceFormat::kLrb, Confidence::kHigh, "50 of 50 lines fit");
  std::string zeros = text;
  zeros[17] = '\0';
  check_no_trace(zeros, "byte 0x00 at offset 17");
  check_no_trace(std::string("printable text\0with zeros\0in it\n", 32), "byte 0x00 at offset 14");
  std::string later = lines_of(20000, "TIME KEY SIZE");
  REQUIRE(later.size() > 2 * kHeadBytes);
  later[later.size() - 3] = '\0';
  const Directory directory;
  const Ran ran = run("stats --no-timing " + directory.write("later", later));
  CHECK(ran.exit_code == 0);
  CHECK(ran.out.find("line 20000: a zero byte, which no text has") != std::string::npos);
}

TEST_CASE("Wide characters and other ends of lines are named, or seen through", "[sim][trace]") {
  const std::string text = "time,key,size\n" + lines_of(20, "TIME,KEY,SIZE");
  const std::string zero(1, '\0');
  check_no_trace("\xff\xfe" + wide(text, "", zero), "iconv -f UTF-16");
  check_no_trace("\xfe\xff" + wide(text, zero, ""), "iconv -f UTF-16");
  check_no_trace(wide(text, "", zero), "UTF-16");
  check_no_trace(wide(text, zero, ""), "UTF-16");
  check_no_trace(wide(text, std::string(3, '\0'), ""), "UTF-32");
  check_no_trace(wide(text, "", std::string(3, '\0')), "UTF-32");
  std::string returns = text;
  std::ranges::replace(returns, '\n', '\r');
  check_no_trace(returns, "tr '\\r' '\\n'");
  const Directory directory;
  const std::string plain = run("stats --no-timing " + directory.write("t", text)).out;
  CHECK(plain.find("20 lines or records") != std::string::npos);
  CHECK(run("stats --no-timing " + directory.write("t", "\xef\xbb\xbf" + text)).out == plain);
  CHECK(run("stats --no-timing --format csv " + directory.write("t", "\xef\xbb\xbf" + text))
            .out.find("20 lines or records, 0 not counted by the rule, 0 bad") !=
        std::string::npos);
  std::string crlf;
  for (const char c : text) {
    crlf += c == '\n' ? "\r\n" : std::string(1, c);
  }
  CHECK(run("stats --no-timing " + directory.write("t", crlf)).out == plain);
}

TEST_CASE("Columns are told by what is between them, or refused with what to do", "[sim][trace]") {
  const Directory directory;
  const std::string expected =
      run("stats --json --no-timing " +
          directory.write("t", "time,key,size\n" + lines_of(20, "TIME,KEY,SIZE")))
          .out;
  const auto same_rows = [&](const std::string& line) {
    const Ran ran = run("stats --json --no-timing " + line);
    INFO(ran.err);
    REQUIRE(ran.exit_code == 0);
    nlohmann::json rows = nlohmann::json::parse(ran.out)["rows"];
    nlohmann::json wanted = nlohmann::json::parse(expected)["rows"];
    rows[0].erase("format");
    wanted[0].erase("format");
    CHECK(rows == wanted);
  };
  for (const std::string between : {";", "|", "\t", " "}) {
    INFO(between);
    const std::string columns = "TIME" + between + "KEY" + between + "SIZE";
    same_rows(directory.write(
        "h", "time" + between + "key" + between + "size\n" + lines_of(20, columns)));
    same_rows(directory.write("n", lines_of(20, columns)));
  }
  same_rows(directory.write("c", lines_of(20, "TIME:KEY:SIZE")) + " --delimiter :");
  same_rows(directory.write("c", lines_of(20, "TIME;KEY;SIZE")) + " --format csv --delimiter ;");
  same_rows(directory.write("c", lines_of(20, "SIZE;KEY;TIME")) + " --columns time=3,key=2,size=1");
  check_refused(run("stats --delimiter ,, " + directory.at("c")), "one character, tab or space");

  const std::string unknown = "a;b;c\n" + lines_of(20, "KEY;x;TIME");
  check_no_trace(unknown, "3 columns with semicolons between, but \"a;b;c\" looks like a header");
  check_no_trace("a;b;c\n", "3 columns with semicolons between");
  same_rows(directory.write("u", "a;b;c\n" + lines_of(20, "TIME;KEY;SIZE")) +
            " --columns time=a,key=b,size=c");
  check_no_trace(lines_of(20, "KEY;;"), "semicolons");
  check_no_trace("server {\n  listen 80;\n  root /var/www;\n}\n", "no format of lines fits");
  check_no_trace(lines_of(20, "a text with the number TIME in it"), "no format of lines fits");
}

TEST_CASE("One word a line is a key where words come again", "[sim][trace]") {
  check_detected("a\nb\na\n", TraceFormat::kCsv, Confidence::kLow, "some repeat");
  check_detected(lines_of(50, "http://a/KEY?x=1"), TraceFormat::kCsv, Confidence::kLow, "word");
  check_no_trace(lines_of(50, "word-TIME"), "use --format csv");
  check_no_trace("{\n\"key\": 1\n}\n", "");
}

TEST_CASE("Some bad lines among the first ones do not hide the format", "[sim][trace]") {
  check_detected("cut off in the middle\n" + lines_of(30, "TIME KEY SIZE"), TraceFormat::kLrb,
                 Confidence::kHigh, "30 of 31 lines fit");
  check_detected("# remark\n\n" + lines_of(3, "TIME KEY SIZE"), TraceFormat::kLrb, Confidence::kLow,
                 "3 of 3 lines fit");
  check_detected("# remark\ntime,key,size\n" + lines_of(20, "TIME,KEY,SIZE"), TraceFormat::kCsv,
                 Confidence::kHigh, "a header with time, key, size");
  check_no_trace(lines_of(5, "TIME KEY SIZE") + lines_of(5, "four words without sense"), "");
  check_no_trace("# only\n# remarks\n", "only empty lines and comments");
  check_no_trace(std::string(2 * kHeadBytes, 'a'), "one line");
  const Directory directory;
  const Ran ran =
      run("stats --no-timing --bad-max 0.5 " +
          directory.write("t",
                          "# remark\ntime,key,size\n1,a,10\nbad\n2,a,x\n3,a,10\n"
                          "4,a,18446744073709551615\n5,a,7\n6,a,7\n7,a,7\n8,a,7\n9,a,7\n" +
                              lines_of(20, "TIME,KEY,SIZE")));
  INFO(ran.out << ran.err);
  CHECK(ran.out.find("line 4: no time in its column: \"bad\"") != std::string::npos);
  CHECK(ran.out.find("line 5: no number in the size's column") != std::string::npos);
  CHECK(ran.out.find("line 7: a size above a petabyte") != std::string::npos);
}

TEST_CASE("Binary traces without a mark are told by many records, not by few", "[sim][trace]") {
  for (const std::uint64_t base : {0U, 1U}) {
    check_detected(oracle_general(200, base), TraceFormat::kOracleGeneral, Confidence::kHigh,
                   "190 of which name the next request of their object");
  }
  check_detected(oracle_general(200, 1000000), TraceFormat::kOracleGeneral, Confidence::kLow,
                 "200 records with times in order");
  check_no_trace(oracle_general(200, 0, 90000), "");           // a day between any two
  check_no_trace(oracle_general(15, 0), "");                   // too few
  check_no_trace(oracle_general(200, 0).substr(0, 4799), "");  // cut off
  std::string ids;
  std::string wide_ids;
  std::string hashes;
  for (std::uint64_t i = 0; i < 2000; ++i) {
    ids += big((i * i % 37) + (i % 3 << 28U), 4);
    wide_ids += big(i * i % 1009, 8);
    hashes += big((i * i % 1009 + 1) * 0x9e3779b97f4a7c15U ^ (i * i % 1009) << 29U, 8);
  }
  check_detected(ids, TraceFormat::kInt32, Confidence::kLow, "2000 numbers, ids");
  check_detected(wide_ids, TraceFormat::kInt64, Confidence::kLow, "2000 numbers, ids");
  check_detected(hashes, TraceFormat::kInt64, Confidence::kHigh, "2000 numbers, hashes");
  // The same numbers the other way round, as most programs write them.
  std::string little_ids;
  std::string little_wide_ids;
  std::string few_ids;
  for (std::uint64_t i = 0; i < 2000; ++i) {
    little_ids += little((i * i % 1009) + 70000, 4);
    little_wide_ids += little(i * i % 1009, 8);
    few_ids += little(i * i % 37, 4);
  }
  check_detected(little_ids, TraceFormat::kInt32Little, Confidence::kLow, "2000 numbers, ids");
  check_detected(little_wide_ids, TraceFormat::kInt64Little, Confidence::kLow, "2000 numbers, ids");
  check_detected(few_ids, TraceFormat::kInt32Little, Confidence::kLow,
                 "2000 numbers, ids that come again or in order; int32 fits too, and less well");
  check_detected(ids.substr(0, 400), TraceFormat::kInt32, Confidence::kLow, "100 numbers");
  check_no_trace(ids.substr(0, 60), "");
  check_no_trace(ids.substr(0, 401), "");
  check_detected(std::string(kEncoreMagic), TraceFormat::kEncore, Confidence::kCertain, "ENCTRC01");
}

TEST_CASE("A record whose size is none is an error with its number", "[sim][trace]") {
  const Directory directory;
  const std::string good =
      little(9, 8) + little(100, 8) + little(5, 8) + little(60, 4) + little(0, 4);
  const std::string bad =
      little(9, 8) + little(1ULL << 60U, 8) + little(5, 8) + little(60, 4) + little(0, 4);
  check_refused(run("stats " + directory.write("t", std::string(kEncoreMagic) + good + bad)),
                "record 2 has a size of 1152921504606846976 bytes");
}

TEST_CASE("The report says the format, how sure it is and why", "[sim][trace]") {
  const Directory directory;
  const std::string csv =
      directory.write("t.csv", "time,key,size\n" + lines_of(20, "TIME,KEY,SIZE"));
  const std::string keys = directory.write("keys", "a\nb\na\n");
  const std::string told =
      "Format csv (high: a header with time, key, size between commas, "
      "20 of 20 lines fit): 20 lines or records, ";
  CHECK(run("stats " + csv).out.find(told) != std::string::npos);
  CHECK(run("replay --cache-size 1KiB " + csv).out.find(told) != std::string::npos);
  CHECK(run("tune " + csv).out.find(told) != std::string::npos);
  CHECK(run("stats --format csv " + csv).out.find("Format csv (given): 20 lines") !=
        std::string::npos);
  CHECK(run("stats " + keys).out.find("Format csv (low: one word per line") != std::string::npos);

  const Ran both = run("stats --json --no-timing " + csv + " " + keys);
  const nlohmann::json files = nlohmann::json::parse(both.out)["trace"];
  REQUIRE(files.size() == 2);
  CHECK(files[0]["file"] == csv);
  CHECK(files[0]["format"] == "csv");
  CHECK(files[0]["confidence"] == "high");
  CHECK(files[1]["confidence"] == "low");
  CHECK(files[1]["reason"] == "one word per line, used as the key, and some repeat");
  CHECK(run("stats " + csv + " " + keys).out.find("Together: 23 lines or records") !=
        std::string::npos);
}

}  // namespace encore::sim
