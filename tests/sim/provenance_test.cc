// The origin of a run: a command line that a shell reads back, and digests as sha256sum has them.
#include "sim/cli/provenance.h"

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

#include "sim/report/chart_js.h"
#include "tests/catch.h"
#include "tests/sim/directory.h"
#include "tests/sim/run.h"

namespace encore::sim {
namespace {

std::string provenance_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

TEST_CASE("A command line is quoted so that a shell reads the same words", "[sim][provenance]") {
  CHECK(shell_line({"encore-sim", "replay", "--fpr=0.01,0.1", "10%"}) ==
        "encore-sim replay --fpr=0.01,0.1 10%");
  CHECK(shell_line({"a b", "", "it's", "$x", "*"}) == "'a b' '' 'it'\\''s' '$x' '*'");
  const Directory directory;
  const std::string out = directory.at("out");
  const std::string command =
      "printf '%s|' " + shell_line({"a b", "", "it's", "\"$x`"}) + " >" + out;
  REQUIRE(std::system(command.c_str()) == 0);
  CHECK(provenance_file(out) == "a b||it's|\"$x`|");
}

TEST_CASE("Digests are SHA-256 of regular files", "[sim][provenance]") {
  const Directory directory;
  const std::string path = directory.write("t", "abc");
  CHECK(*sha256_of_file(path) ==
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  // More than one block.
  const std::string large = directory.write("large", std::string(3'000'001, 'a'));
  const std::string out = directory.at("out");
  REQUIRE(std::system(("sha256sum <" + large + " >" + out).c_str()) == 0);
  CHECK(provenance_file(out) == *sha256_of_file(large) + "  -\n");
  const auto missing = sha256_of_file(path + "x");
  REQUIRE(!missing);
  CHECK(missing.error().message.find(path + "x") != std::string::npos);

  const auto provenance = provenance_of({"replay", path, "-"}, {path, "-"});
  REQUIRE(provenance);
  CHECK(provenance->command_line == "encore-sim replay " + path + " -");
  REQUIRE(provenance->files.size() == 2);
  CHECK(std::get<std::uint64_t>(*find(provenance->files[0], "bytes")) == 3);
  CHECK(std::holds_alternative<std::monostate>(*find(provenance->files[1], "sha256")));
  CHECK(std::get<std::uint64_t>(*find(provenance->machine, "cores")) > 0);
}

TEST_CASE("The page of a command has its data's digest, and repeats to the byte",
          "[sim][provenance]") {
  if (chart_js().empty()) {
    WARN("skipped: built without Chart.js");
    return;
  }
  const Directory directory;
  const std::string trace = directory.write("t", "time,key,size\n1,a,1\n2,b,1\n3,a,1\n");
  const std::string line = "replay " + trace + " --cache-size 10 --no-timing --html ";
  const std::string page = directory.at("page");
  REQUIRE(run(line + page).exit_code == 0);
  const std::string first = provenance_file(page);
  CHECK(first.find(*sha256_of_file(trace)) != std::string::npos);
  CHECK(first.find("encore-sim " + line + page + "\n") != std::string::npos);
  CHECK(first.find("processor") == std::string::npos);
  REQUIRE(run(line + page).exit_code == 0);
  CHECK(first == provenance_file(page));
}

}  // namespace encore::sim
