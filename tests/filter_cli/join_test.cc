#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "filter/hash.h"
#include "filter/theory.h"
#include "tests/filter_cli/run.h"
#include "tests/temporary_directory.h"

namespace encore::filter {
namespace {

using server::read_text;
using server::TemporaryDirectory;
using server::write_text;

struct Lines {
  std::vector<std::string> keys;
  std::string text() const {
    std::string out;
    for (const std::string& key : keys) out += key + "\n";
    return out;
  }
};

// So many random words of different lengths, some of them twice.
Lines random_lines(std::uint64_t seed, int count, std::uint64_t range) {
  Lines lines;
  std::uint64_t state = seed;
  for (int i = 0; i < count; ++i) {
    state = scrambled(state + 0x9e3779b97f4a7c15U);
    const std::uint64_t word = state % range;
    lines.keys.push_back(std::string(word % 13, 'x') + std::to_string(word));
  }
  return lines;
}

}  // namespace

TEST_CASE("A join by a filter is the exact join, and its bytes are those of a naive count",
          "[filter-cli]") {
  const TemporaryDirectory directory;
  const std::string r_file = directory / "r";
  const std::string s_file = directory / "s";
  const std::string out = directory / "out";
  for (const std::uint64_t range : {200U, 3000U, 100'000U}) {
    CAPTURE(range);
    const Lines r = random_lines(1, 800, range);
    const Lines s = random_lines(2, 5000, range);
    write_text(r_file, r.text());
    write_text(s_file, s.text());
    const std::set<std::string> in_r(r.keys.begin(), r.keys.end());
    std::set<std::string> in_s;
    Lines common;
    std::uint64_t s_bytes = 0;
    std::uint64_t common_bytes = 0;
    for (const std::string& key : s.keys) {
      if (!in_s.insert(key).second) continue;
      s_bytes += key.size() + 1;
      if (in_r.contains(key)) {
        common.keys.push_back(key);
        common_bytes += key.size() + 1;
      }
    }
    const Ran ran = run("join " + r_file + " " + s_file + " --fpr 0.02 --json -o " + out);
    CAPTURE(ran.err);
    REQUIRE(ran.exit_code == 0);
    CHECK(read_text(out) == common.text());
    CHECK(run("join " + r_file + " " + s_file + " -o -").out == common.text());
    const auto report = nlohmann::json::parse(ran.out);
    CHECK(report["joined"] == common.keys.size());
    CHECK(report["r"]["keys"] == in_r.size());
    CHECK(report["s"]["lines"] == 5000);
    const auto& rows = report["rows"];
    REQUIRE(rows.size() >= 3);
    CHECK(rows[0]["bytes"] == s_bytes);
    CHECK(rows[0]["false_drops"] == in_s.size() - common.keys.size());
    CHECK(rows[1]["keys_sent"] == in_r.size());
    for (std::size_t i = 2; i < rows.size(); ++i) {
      const auto& row = rows[i];
      CAPTURE(row.dump());
      CHECK(row["filter_bytes"] == (row["bits"].get<std::uint64_t>() + 7) / 8);
      CHECK(row["keys_sent"].get<std::uint64_t>() ==
            common.keys.size() + row["false_drops"].get<std::uint64_t>());
      CHECK(row["key_bytes"].get<std::uint64_t>() >= common_bytes);
      const double p = fpr(
          {Layout::kClassic, row["bits"].get<std::uint64_t>(), row["hashes"].get<std::uint32_t>()},
          static_cast<double>(in_r.size()));
      const double expected = p * static_cast<double>(in_s.size() - common.keys.size());
      CHECK(row["false_drops_expected"].get<double>() == Approx(expected).epsilon(0.01));
      CHECK((row["z"].is_null() || std::abs(row["z"].get<double>()) < 4.5));
    }
    CHECK(rows.back()["sent"] == "filter, given");
    CHECK(rows.back()["bits"] == size_classic({static_cast<double>(in_r.size()), 0.02}).bits);
  }
}

TEST_CASE("The planned filter of a join sends fewer bytes than others", "[filter-cli]") {
  const TemporaryDirectory directory;
  const std::string r = directory / "r";
  const std::string s = directory / "s";
  write_text(r, numbers(1, 1000));
  write_text(s, numbers(901, 9000));
  const auto bytes = [&](const std::string& options) {
    const auto rows =
        nlohmann::json::parse(run("join --json " + options + r + " " + s).out)["rows"];
    return rows.back()["bytes"].get<std::uint64_t>();
  };
  const std::uint64_t best = bytes("");
  CHECK(best < 2200);
  CHECK(best < bytes("--bits 5000 --hashes 3 "));
  CHECK(best < bytes("--bits 40000 --hashes 28 "));
  CHECK(best < bytes("--fpr 1e-6 "));
}

TEST_CASE("A join of nothing finds nothing, and wrong use is refused", "[filter-cli]") {
  const TemporaryDirectory directory;
  const std::string r = directory / "r";
  const std::string s = directory / "s";
  write_text(r, "");
  write_text(s, "a\nb\n");
  CHECK(run("join " + r + " " + s + " --fpr 0.1").exit_code == 1);
  CHECK(run("join " + s + " " + r + " --bits 100 --hashes 3").exit_code == 1);
  CHECK(run("join " + r + " " + r).exit_code == 1);
  CHECK(run("join - " + s + " -o -", "b\r\nc\n").out == "b\n");
  CHECK(run("join - " + s + " -0 -o -", "a\nb\n").out == std::string("a\nb\n\0", 5));
  CHECK(run("join " + s + " " + s + " --hash sha1-fields --bits 64 --hashes 4").exit_code == 0);
  check_refused(run("join - -"), "both come from standard input");
  check_refused(run("join " + r + " " + s + " --bits 8"), "--fpr, or --bits and --hashes");
  check_refused(run("join " + r + " " + s + " --bits 8 --hashes 1 --fpr 0.1"), "--fpr, or --bits");
  check_refused(run("join " + r + " " + s + " --hash rot13"), "\"rot13\"");
  check_refused(run("join " + r + " " + (directory / "none")), "No such file");
  check_refused(run("join " + s + " " + s + " --hash md5-fields --bits 64 --hashes 40"),
                "accepted: 1 to 21");
}

}  // namespace encore::filter
