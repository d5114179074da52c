#include "filter/cli/advice.h"

#include <nlohmann/json.hpp>
#include <regex>

#include "filter/theory.h"
#include "tests/filter_cli/run.h"
#include "tests/temporary_directory.h"

namespace encore::filter {
namespace {

using server::TemporaryDirectory;

// Builds a filter of the numbers 1 .. keys, and returns what it says of it.
std::string said_of_build(const std::string& options, int keys, const std::string& file) {
  const Ran ran = run("build " + options + " -o " + file, numbers(1, keys));
  CAPTURE(options, ran.err);
  REQUIRE(ran.exit_code == 0);
  return ran.err;
}

nlohmann::json advice_in_info(const std::string& file) {
  const auto report = nlohmann::json::parse(run("info --json " + file).out);
  return report.value("advice", nlohmann::json::array());
}

// The options that an advice ends with.
std::vector<std::string> options_in(const std::string& text) {
  const std::regex pattern(
      "build it with ((--layout \\S+ )?(--capacity \\d+) --fpr \\S+) "
      "\\(or (--bits \\d+ --hashes \\d+) instead of --fpr\\)");
  std::smatch found;
  REQUIRE(std::regex_search(text, found, pattern));
  return {found[1], found[2].str() + found[3].str() + " " + found[4].str()};
}

}  // namespace

TEST_CASE("The advised size fits the keys of a filter that is too small", "[filter-cli]") {
  const TemporaryDirectory directory;
  const std::string file = directory / "f";
  const std::string better = directory / "g";
  for (const std::string made :
       {"--capacity 100 --fpr 0.01", "--capacity 100 --fpr 0.001 --layout classic",
        "--bits 1000 --hashes 7", "--kind counting --capacity 100 --layout partitioned",
        "--capacity 100 --hash md5-fields", "--capacity 100 --hash squid-md5",
        "--capacity 100 --hash chained"}) {
    CAPTURE(made);
    const std::string text = said_of_build(made, 300, file);
    CHECK(text.starts_with("encore-filter: the filter is sized for "));
    CHECK(std::ranges::count(text, '\n') >= 1);
    const std::vector<std::string> options = options_in(text);
    const auto hash = made.find("--hash ");
    const std::string with = hash == std::string::npos ? "" : " " + made.substr(hash);
    CHECK(said_of_build(options[0] + with, 300, better).empty());
    const auto by_capacity = nlohmann::json::parse(run("info --json " + better).out);
    CHECK(options[1].find("--bits " + by_capacity["bits"].dump() + " --hashes " +
                          by_capacity["hashes"].dump()) != std::string::npos);
    CHECK(said_of_build(options[1] + with, 300, better).empty());
    REQUIRE(advice_in_info(file).size() >= 1);
    CHECK("encore-filter: " + advice_in_info(file)[0].get<std::string>() ==
          text.substr(0, text.find('\n')));
    CHECK(advice_in_info(better).empty());
  }
}

TEST_CASE("A saturated filter is sized by the keys that were read", "[filter-cli]") {
  const TemporaryDirectory directory;
  const std::string file = directory / "f";
  const std::string text = said_of_build("--bits 512 --hashes 8 --capacity 10", 5000, file);
  CHECK(text.find("is saturated, so that its number of keys is unknown: its false-positive rate is "
                  "1 instead of ") != std::string::npos);
  CHECK(text.find("; build it for the keys read with --capacity 5000 --fpr ") != std::string::npos);
  REQUIRE(advice_in_info(file).size() == 1);
  CHECK(advice_in_info(file)[0].get<std::string>().ends_with(
      "; build it with the number of keys as --capacity, or without a size (scalable)"));
  CHECK(run("add " + file, numbers(1, 6000)).err.find("--capacity 6000") != std::string::npos);
}

TEST_CASE("A filter of eight times the bits that its keys need says so", "[filter-cli]") {
  const TemporaryDirectory directory;
  const std::string file = directory / "f";
  const std::string better = directory / "g";
  const std::string text = said_of_build("--capacity 100000 --fpr 0.01", 1000, file);
  CHECK(text ==
        "encore-filter: the filter is sized for 100000 keys and has 1000, 98 times the bits that "
        "they need at the rate 0.01; build it with --capacity 1000 --fpr 0.01 (or --bits 10240 "
        "--hashes 8 instead of --fpr)\n");
  CHECK(advice_in_info(file).size() == 1);
  CHECK(said_of_build(options_in(text)[0], 1000, better).empty());
  CHECK(run("info " + file).out.find("\nadvice          the filter is sized for 100000 keys") !=
        std::string::npos);
  // Seven times is not far; an empty filter is for later, and a published form has its size.
  CHECK(said_of_build("--capacity 7000 --fpr 0.01", 1000, file).empty());
  CHECK(said_of_build("--capacity 9000 --fpr 0.01", 1000, file).find("8 times the bits") !=
        std::string::npos);
  CHECK(said_of_build("--capacity 100000 --fpr 0.01", 0, file).empty());
  CHECK(said_of_build("--hash sha1-fields20", 2, file).empty());
  CHECK(said_of_build("", 2, file).empty());
  // Ten keys have more bits than on average by chance.
  CHECK(said_of_build("--hash sha256-numbered --capacity 10 --fpr 1e-9", 10, file).empty());
  CHECK(run("add " + file, numbers(1, 3)).err.empty());
}

TEST_CASE("A number of hashes far from the best is named with the best one", "[filter-cli]") {
  const TemporaryDirectory directory;
  const std::string file = directory / "f";
  // 10 bits a key: .0952 with k = 1, .0082 with the best, 7.
  CHECK(said_of_build("--bits 100000 --hashes 1", 10'000, file) ==
        "encore-filter: --hashes 1 is far from the best number for 10015 keys in 100000 bits: "
        "the false-positive rate is 0.095, with --hashes 7 it is 0.0083; for the same rate build "
        "it with --layout classic --capacity 10015 --fpr 0.095 (or --bits 49308 "
        "--hashes 3 instead of --fpr)\n");
  CHECK(advice_in_info(file).size() == 1);
  CHECK(said_of_build("--bits 100000 --hashes 30 --capacity 10000", 10'000, file)
            .find("--hashes 30 is far from the best number for ") != std::string::npos);
  // At the given capacity it is right, though the keys so far are few.
  CHECK(said_of_build("--bits 100000 --hashes 7 --capacity 10000", 2000, file).empty());
  CHECK(said_of_build("--bits 100000 --hashes 4", 10'000, file).empty());
  CHECK(said_of_build("--capacity 1000 --hash squid-md5", 1000, file).empty());
  // Three fields of a digest are fewer than the best number, but more do not fit.
  CHECK(said_of_build("--bits 1048576 --hashes 6 --hash md5-fields --capacity 60000", 60'000, file)
            .empty());
}

TEST_CASE("Advice is computed from the figures of a filter", "[filter-cli]") {
  AnyFilterInfo info;
  info.parameters = {.layout = Layout::kClassic,
                     .hash = HashFamily::kXxh3,
                     .bits = 9586,
                     .hashes = 7,
                     .capacity = 1000,
                     .seed = {}};
  info.capacity = 1000;
  info.keys = 1000;
  info.keys_estimated = 1000;
  info.fpr_now = info.fpr_capacity = fpr(info.parameters.shape(), 1000);
  CHECK(advice_for(info, {}).empty());
  info.keys_estimated = 1200;
  info.fpr_now = 1.2 * info.fpr_capacity;
  CHECK(overfull_advice(info).has_value());
  // By fields, a rate above the planned one is not that of too many keys.
  info.keys_estimated = 990;
  CHECK_FALSE(overfull_advice(info).has_value());
  info.kind = FilterKind::kScalable;
  info.fpr_now = 1e-9;
  info.keys = 1;
  CHECK_FALSE(oversized_advice(info).has_value());
  info.kind = FilterKind::kPlain;
  CHECK(oversized_advice(info).has_value());
  CHECK_FALSE(hashes_advice(info, 0).has_value());
  CHECK(hashes_advice(info, 5000).has_value());
}

}  // namespace encore::filter
