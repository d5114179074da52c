#include <filesystem>
#include <nlohmann/json.hpp>

#include "filter/any_filter.h"
#include "tests/filter_cli/run.h"
#include "tests/temporary_directory.h"

namespace encore::filter {
namespace {

using server::read_text;
using server::TemporaryDirectory;
using server::write_text;
using Json = nlohmann::json;

const std::string kThousand = "build --capacity 1000 --fpr 0.0001 -o ";

Json info(const std::string& path) {
  const Ran ran = run("info --json " + path);
  REQUIRE(ran.exit_code == 0);
  return Json::parse(ran.out);
}

void make(const std::string& line, const std::string& keys) {
  const Ran ran = run(line, keys);
  CAPTURE(line, ran.err);
  REQUIRE(ran.exit_code == 0);
  REQUIRE(ran.out.empty());
}

}  // namespace

TEST_CASE("What is built is found again, and nothing else is", "[filter-cli]") {
  const TemporaryDirectory directory;
  const std::string file = directory / "f";
  make(kThousand + file, numbers(1, 1000));
  const Ran found = run("test " + file, numbers(991, 1010));
  CHECK(found.exit_code == 0);
  CHECK(found.out == numbers(991, 1000));
  CHECK(found.err.empty());
  CHECK(run("test -v " + file, numbers(991, 1010)).out == numbers(1001, 1010));
  CHECK(run("test -c " + file, numbers(991, 1010)).out == "10\n");
  CHECK(run("test -vc " + file, numbers(981, 1010)).out == "10\n");
  CHECK(run("test -q " + file, numbers(991, 1010)).out.empty());
}

TEST_CASE("The exit says whether there was one, as grep's does", "[filter-cli]") {
  const TemporaryDirectory directory;
  const std::string file = directory / "f";
  make(kThousand + file, numbers(1, 1000));
  CHECK(run("test " + file, "1\n").exit_code == 0);
  CHECK(run("test " + file, "x\n").exit_code == 1);
  CHECK(run("test -v " + file, "x\n").exit_code == 0);
  CHECK(run("test -v " + file, "1\n").exit_code == 1);
  CHECK(run("test -q " + file, "x\n1\n").exit_code == 0);
  CHECK(run("test -q " + file, "x\n").exit_code == 1);
  CHECK(run("test -c " + file, "x\n").exit_code == 1);
  CHECK(run("test " + file, "").exit_code == 1);
  check_refused(run("test " + (directory / "none"), "1\n"), "No such file or directory");
}

TEST_CASE("Keys come from files too, and end as they are asked to", "[filter-cli]") {
  const TemporaryDirectory directory;
  const std::string file = directory / "f";
  write_text(directory / "a", "a\r\nb\n");
  write_text(directory / "b", "c");
  make(kThousand + file + " " + (directory / "a") + " - " + (directory / "b"), "d\n");
  CHECK(run("test " + file, "a\nb\nc\nd\ne\n").out == "a\nb\nc\nd\n");
  CHECK(run("test " + file + " " + (directory / "a")).out == "a\nb\n");
  const std::string lines("x\ny\0z\r\0", 7);
  make(kThousand + file + " -0", lines);
  CHECK(run("test -0 " + file, lines + "x").out == lines);
}

TEST_CASE("info has the figures of theory", "[filter-cli]") {
  const TemporaryDirectory directory;
  const std::string file = directory / "f";
  make("build --bits 800000 --hashes 7 -o " + file, numbers(1, 80000));
  const Json report = info(file);
  CHECK(report["kind"] == "plain");
  CHECK(report["layout"] == "classic");
  CHECK(report["hash"] == "xxh3");
  CHECK(report["bits"] == 800000);
  CHECK(report["hashes"] == 7);
  CHECK(report["fill"].get<double>() == Approx(0.5034).margin(0.002));
  CHECK(report["set_bits"].get<double>() / 800000 == report["fill"].get<double>());
  CHECK(report["keys_estimated"].get<double>() == Approx(80000).epsilon(0.01));
  CHECK(report["fpr_now"].get<double>() == Approx(0.00819).epsilon(0.04));
  CHECK(report["capacity"] == 79216);
  CHECK(report["fpr_capacity"].get<double>() == Approx(0.0078).epsilon(0.02));
  CHECK(run("info " + file).out.find("\nhashes          7\n") != std::string::npos);
}

TEST_CASE("A seed is shown by its fingerprint only", "[filter-cli]") {
  const TemporaryDirectory directory;
  const std::string file = directory / "f";
  make(kThousand + file + " --seed 5ec4e75eed", numbers(1, 10));
  const Ran shown = run("info --json " + file);
  CHECK(shown.out.find("fingerprint " + fingerprint(parse_seed("5ec4e75eed").value())) !=
        std::string::npos);
  CHECK(shown.out.find("5ec4e75eed") == std::string::npos);
}

TEST_CASE("Keys are added in place", "[filter-cli]") {
  const TemporaryDirectory directory;
  const std::string file = directory / "f";
  make(kThousand + file, numbers(1, 10));
  make("add " + file, numbers(11, 20));
  CHECK(run("test " + file, numbers(1, 30)).out == numbers(1, 20));
  // In the form that it has.
  make("build --hash sha1-fields20 -o " + file, "jcgregorio\n");
  make("convert --to bloomnames -o " + file + " " + file, "");
  make("add " + file, "barney\n");
  CHECK(read_text(file).size() == 7189);
  CHECK(run("test " + file, "fred\nbarney\n").out == "barney\n");
}

TEST_CASE("A saved plain filter is used where it lies", "[filter-cli]") {
  const TemporaryDirectory directory;
  const std::string file = directory / "f";
  make(kThousand + file, numbers(1, 10));
  CHECK(run("test --map " + file, numbers(1, 30)).out == numbers(1, 10));
  CHECK(run("test --map " + file, "x\n").exit_code == 1);
  const auto place = std::filesystem::hard_link_count(file);
  std::filesystem::create_hard_link(file, directory / "same");
  make("add --map " + file, numbers(11, 20));
  CHECK(std::filesystem::hard_link_count(file) == place + 1);
  CHECK(run("test " + (directory / "same"), numbers(1, 30)).out == numbers(1, 20));
  CHECK(info(file)["keys_estimated"].get<double>() == Approx(20).epsilon(0.05));
  make("build -o " + file, numbers(1, 10));
  check_refused(run("test --map " + file, "1\n"), "(--map needs a saved plain filter)");
  check_refused(run("add --map " + file, "1\n"), "(--map needs a saved plain filter)");
}

TEST_CASE("Keys are removed from a counting filter, and from no other", "[filter-cli]") {
  const TemporaryDirectory directory;
  const std::string file = directory / "f";
  make("build --kind counting --capacity 1000 --fpr 0.0001 -o " + file, numbers(1, 100));
  make("remove " + file, numbers(1, 50));
  CHECK(run("test " + file, numbers(1, 100)).out == numbers(51, 100));
  const Ran missing = run("remove " + file, numbers(50, 51));
  CHECK(missing.exit_code == 1);
  CHECK(missing.err == "encore-filter remove: 1 of the keys were not in " + file + "\n");
  CHECK(run("test " + file, numbers(1, 100)).out == numbers(52, 100));
  CHECK(info(file)["overflows"] == 0);
  make("convert --plain --to encore -o " + file + " " + file, "");
  CHECK(info(file)["kind"] == "plain");
  CHECK(run("test " + file, numbers(1, 100)).out == numbers(52, 100));
  check_refused(run("remove " + file, "60\n"), "plain filter");
}

TEST_CASE("A union has the keys of both, an intersection those that both have", "[filter-cli]") {
  const TemporaryDirectory directory;
  const std::string a = directory / "a";
  const std::string b = directory / "b";
  const std::string c = directory / "c";
  make("build --capacity 1000 --fpr 1e-6 -o " + a, numbers(1, 300));
  make("build --capacity 1000 --fpr 1e-6 -o " + b, numbers(201, 500));
  make("union " + a + " " + b + " -o " + c, "");
  CHECK(run("test " + c, numbers(1, 600)).out == numbers(1, 500));
  make("intersect " + a + " " + b + " -o " + c, "");
  CHECK(run("test " + c, numbers(1, 600)).out == numbers(201, 300));
  make("union " + a + " " + b + " " + c + " -o " + a, "");
  CHECK(run("test " + a, numbers(1, 600)).out == numbers(1, 500));

  make("build --capacity 1000 --fpr 1e-6 --seed 1 -o " + c, numbers(1, 300));
  const std::string before = read_text(b);
  const Ran unlike = run("union " + b + " " + c + " -o " + b);
  check_refused(unlike, "different seeds");
  CHECK(unlike.err.find(b + " and " + c) != std::string::npos);
  make("build --capacity 1000 --fpr 1e-5 -o " + c, numbers(1, 300));
  check_refused(run("union " + b + " " + c + " -o " + b), "different");
  check_refused(run("intersect " + b + " -o " + b), "two filters or more");
  CHECK(read_text(b) == before);
}

TEST_CASE("bloomnames come out of the program as published", "[filter-cli]") {
  const TemporaryDirectory directory;
  const std::string file = directory / "f";
  for (const char* options : {"", " --bits 30000 --hashes 7", " --kind plain --layout classic"}) {
    make("build --hash sha1-fields20 -o " + file + options, "jcgregorio\nbarney\n");
    const Ran hex = run("convert " + file + " --to bloomnames -o -");
    CHECK(hex.out.size() == 7188 + 1);
    CHECK(hex.out.starts_with("0x8000"));
    CHECK(hex.out.ends_with("L\n"));
    const Ran decimal = run("convert " + file + " --to bloomnames-decimal -o -");
    CHECK(decimal.out.starts_with("20000708816"));
    CHECK(decimal.out.ends_with("675924992\n"));
  }
  make("convert " + file + " --to bloomnames-json -o " + (directory / "j"), "");
  CHECK(Json::parse(read_text(directory / "j"))["m"] == 30000);
  make("convert " + (directory / "j") + " --to encore -o " + (directory / "e"), "");
  CHECK(run("test " + (directory / "e"), "barney\nfred\n").out == "barney\n");
  CHECK(info(directory / "j")["form"] == "bloomnames-json");
}

TEST_CASE("The lecture's filter of sixteen bits is built by the fields of MD5", "[filter-cli]") {
  const TemporaryDirectory directory;
  const std::string file = directory / "f";
  make("build --hash md5-fields --bits 16 --hashes 3 --capacity 4 -o " + file,
       "7217\n4568\n1569\n423\n");
  const Ran json = run("convert " + file + " --to bloomnames-json -o -");
  CHECK(Json::parse(json.out)["filter"] == "0x9e64L");
  CHECK(info(file)["set_bits"] == 8);
  for (const std::string name : {"sha1-fields", "sha256-fields", "sha256-fields32", "md5-numbered",
                                 "sha1-numbered", "sha256-numbered"}) {
    CAPTURE(name);
    make("build --capacity 1000 --fpr 0.01 --hash " + name + " -o " + file, numbers(1, 1000));
    CHECK(info(file)["hash"] == name);
    CHECK(run("test -c " + file, numbers(1, 1000)).out == "1000\n");
    // About 9 of 1,000; of fields of 14 bits mod 9,594 some more.
    CHECK(std::stoi(run("test -c " + file, numbers(1001, 2000)).out) < 50);
  }
  check_refused(run("build --hash md5-fields --capacity 1000000 --fpr 0.01 -o " + file, "1\n"),
                "hash md5-fields with 7 hashes, accepted: 1 to 5, the fields of 24 bits that a "
                "digest of 128 has; a numbered hash");
}

TEST_CASE("A filter becomes a Squid digest and raw bits, and is read again", "[filter-cli]") {
  const TemporaryDirectory directory;
  const std::string file = directory / "f";
  const std::string digest = directory / "d";
  make("build --hash squid-md5 --capacity 1000 -o " + file, numbers(1, 1000));
  make("convert " + file + " --to squid-digest -o " + digest, "");
  CHECK(read_text(digest).size() == 128 + 625);
  CHECK(info(digest)["form"] == "squid-digest");
  CHECK(info(digest)["fpr_capacity"].get<double>() == Approx(0.092).epsilon(0.01));
  CHECK(run("test " + digest, numbers(1, 1000)).out == numbers(1, 1000));
  make("convert " + digest + " --to raw -o " + (directory / "r"), "");
  CHECK(read_text(directory / "r") == read_text(digest).substr(128));
  make("convert " + (directory / "r") + " --from raw --hash squid-md5 --bits 5000 --to encore -o " +
           file,
       "");
  CHECK(run("test " + file, numbers(1, 1000)).out == numbers(1, 1000));
  make(kThousand + file, numbers(1, 10));
  check_refused(run("convert " + file + " --to squid-digest -o " + digest), "8 hashes xxh3");
  check_refused(run("convert " + file + " --from raw --to encore -o " + digest), "--bits");
  check_refused(run("convert " + file + " --to zip -o " + digest), "\"zip\", accepted: encore");
}

TEST_CASE("What is left open follows from the rest", "[filter-cli]") {
  const TemporaryDirectory directory;
  const std::string file = directory / "f";
  const auto built = [&](const std::string& options) {
    make("build " + options + " -o " + file, "");
    const Json report = info(file);
    return report["layout"].get<std::string>() + " " + std::to_string(report["bits"].get<int>()) +
           " " + std::to_string(report["hashes"].get<int>()) + " " +
           std::to_string(report["capacity"].get<int>());
  };
  CHECK(built("--capacity 1000") == "split 10240 8 1000");
  CHECK(built("--capacity 1000 --layout classic") == "classic 9594 7 1000");
  CHECK(built("--bits 9586 --hashes 7") == "classic 9586 7 949");
  CHECK(built("--bits 9586") == "split 9728 8 830");
  CHECK(built("--bits 9586 --hashes 8 --capacity 5") == "split 9728 8 5");
  CHECK(built("--bits 100000 --hash chained --hashes 3") == "classic 100000 3 23104");
  CHECK(built("--hash squid-md5 --capacity 1001") == "classic 5008 4 1001");
  CHECK(built("--hash squid-md5 --capacity 1000 --fpr 0.01") == "classic 10528 4 1000");
}

TEST_CASE("Without a size a filter takes any number of keys", "[filter-cli]") {
  const TemporaryDirectory directory;
  const std::string file = directory / "f";
  make("build --fpr 0.001 -o " + file, numbers(1, 100000));
  const Json report = info(file);
  CHECK(report["kind"] == "scalable");
  CHECK(report["slices"].get<int>() > 3);
  CHECK(report["fpr_capacity"].get<double>() <= 0.001);
  CHECK(report["fpr_now"].get<double>() <= 0.001);
  CHECK(report["keys_estimated"].get<double>() == Approx(100000).epsilon(0.02));
  CHECK(run("test -c " + file, numbers(1, 100000)).out == "100000\n");
  const Ran others = run("test -c " + file, numbers(200001, 300000));
  CHECK(std::stoi(others.out) <= 145);  // 100 and 4.5 sigma

  make("build --kind growable --capacity 1000 --fpr 0.001 -o " + file, numbers(1, 10000));
  CHECK(info(file)["kind"] == "growable");
  CHECK(info(file)["slices"] == 10);
  check_refused(run("convert --to raw -o - " + file), "10 slices");
  check_refused(run("build --kind scalable --bits 800 -o " + file), "bits");
  check_refused(run("build --kind scalable --growth 0.5 -o " + file), "--growth");
  check_refused(run("build --kind scalable --hash chained -o " + file), "chained");
}

TEST_CASE("A filter that is overfull says so", "[filter-cli]") {
  const TemporaryDirectory directory;
  const Ran ran = run("build --capacity 100 -o " + (directory / "f"), numbers(1, 300));
  CHECK(ran.exit_code == 0);
  CHECK(ran.err.starts_with("encore-filter: the filter is sized for 100 keys and has about "));
  CHECK(run("build --capacity 100 -o " + (directory / "f"), numbers(1, 100)).err.empty());
}

TEST_CASE("Sizes are those of theory", "[filter-cli]") {
  const Json rows = Json::parse(run("sizing --capacity 3000 --fpr 0.01 --json").out)["rows"];
  REQUIRE(rows.size() == 4);
  CHECK(rows[0]["layout"] == "classic");
  CHECK(rows[0]["bits"] == 28756);
  CHECK(rows[0]["hashes"] == 7);
  const Json keys =
      Json::parse(run("sizing --bits 28756 --fpr 0.01 --layout classic --json").out)["rows"];
  REQUIRE(keys.size() == 1);
  CHECK(keys[0]["capacity"].get<int>() == Approx(2996).margin(3));
  CHECK(keys[0]["hashes"] == 7);
  const Json rate =
      Json::parse(run("sizing --bits 800000 --capacity 80000 --layout classic --json").out)["rows"];
  CHECK(rate[0]["hashes"] == 7);
  CHECK(rate[0]["fpr"].get<double>() == Approx(0.0081937).epsilon(1e-4));
  CHECK(run("sizing --capacity 3000 --fpr 0.01").out.find("28756") != std::string::npos);
  check_refused(run("sizing --capacity 3000"), "two of");
  check_refused(run("sizing --capacity 3000 --fpr 0.01 --layout round"), "\"round\"");
}

TEST_CASE("Wrong use ends with one line and exit 2", "[filter-cli]") {
  const TemporaryDirectory directory;
  const std::string file = directory / "f";
  make(kThousand + file, numbers(1, 10));
  for (const std::string line : {"build",

                                 "build --bits 0 -o x",
                                 "build --bits 800 --fpr 0.1 -o x",
                                 "build --capacity 10 --fpr 1 -o x",
                                 "build --capacity -1 -o x",
                                 "build --kind round -o x",
                                 "build --capacity 10 --hash rot13 -o x",
                                 "build --capacity 10 --layout round -o x",
                                 "build --bits 800 --hashes 7 --layout split -o x",
                                 "build --capacity 10 --seed xyz -o x",
                                 "build --hash sha1-fields20 --layout split -o x",
                                 "build --hash squid-md5 -o x",
                                 "build --hash sha1-fields20 --bits 1048577 -o x",
                                 "build --hash sha1-fields --bits 16 --hashes 41 -o x",
                                 "build --hash md5-numbered --capacity 10 --seed 1 -o x",
                                 "build --capacity 10 -o x --no-such",
                                 "test",
                                 "info",
                                 "info /dev/null",
                                 "info --jsn /dev/null",
                                 "convert /dev/null -o x",
                                 "union -o x",
                                 "fetch",
                                 "fetch nonsense: -o x",
                                 "fetch file:///etc/passwd -o x",
                                 "sizing",
                                 "info -",
                                 "test /proc/self/mem"}) {
    INFO(line);
    const Ran ran = run(line);
    CHECK(ran.exit_code == 2);
    CHECK(ran.out.empty());
    CHECK(std::ranges::count(ran.err, '\n') == 1);
    CHECK_FALSE(std::filesystem::exists("x"));
  }
  CHECK(run("tets " + file).err.find("did you mean \"test\"?") != std::string::npos);
  check_refused(run("build --capcity 10 -o x"), "did you mean \"--capacity\"?");
  check_refused(run("test - "), "both come from standard input");
}

TEST_CASE("An option that would change nothing is refused", "[filter-cli]") {
  const server::TemporaryDirectory directory;
  const std::string file = directory / "plain.enc";
  CHECK(run("build --capacity 100 -o " + file, "a\n").exit_code == 0);
  for (const std::string option : {"--hash siphash", "--layout classic", "--bits 10", "--hashes 3",
                                   "--capacity 7", "--seed ab"}) {
    CAPTURE(option);
    check_refused(run("convert " + file + " --to encore -o - " + option),
                  option.substr(0, option.find(' ')) + ", accepted only with --from raw");
  }
  check_refused(run("build --kind plain --capacity 9 --growth 4 -o -", "a\n"),
                "--growth for a plain filter, accepted: --kind scalable");
  check_refused(run("build --kind growable --tightening 0.5 -o -", "a\n"),
                "--tightening for a growable filter, accepted: --kind scalable");
  CHECK(run("build --growth 4 --tightening 0.5 -o " + file, "a\n").exit_code == 0);
  check_refused(run("convert " + file + " --to raw --from bloomnames-decimal -o -"),
                "--from: the form bloomnames-decimal cannot be read");
  check_refused(run("convert " + file + " --to raw --from rw -o -"),
                "all but bloomnames-decimal can be read");
}

TEST_CASE("A filter without a size is told which options give one", "[filter-cli]") {
  for (const std::string kind : {"--kind plain", "--kind counting", "--hash squid-md5"}) {
    CAPTURE(kind);
    check_refused(run("build " + kind + " -o -", "a\n"),
                  "without a size, accepted: --capacity and --fpr, or --bits and --hashes");
  }
}

TEST_CASE("Keys are not overwritten by the filter that is made of them", "[filter-cli]") {
  const TemporaryDirectory directory;
  const std::string keys = directory / "keys";
  write_text(keys, "a\nb\n");
  check_refused(run("build --capacity 10 -o " + keys + " " + keys), "is read as well");
  CHECK(read_text(keys) == "a\nb\n");
}

TEST_CASE("What is refused on the way leaves the file as it was", "[filter-cli]") {
  const TemporaryDirectory directory;
  const std::string file = directory / "f";
  make(kThousand + file, numbers(1, 10));
  const std::string before = read_text(file);
  const std::string long_key = numbers(1, 5000) + std::string(1 << 21U, 'x');
  check_refused(run("add " + file, long_key), "standard input:5001");
  check_refused(run(kThousand + file, long_key), "standard input:5001");
  check_refused(run("add " + file + " " + (directory / "none")), "No such file");
  CHECK(read_text(file) == before);
  CHECK(std::distance(std::filesystem::directory_iterator(directory.path()), {}) == 1);
}

TEST_CASE("A damaged filter is refused by every command", "[filter-cli]") {
  const TemporaryDirectory directory;
  const std::string file = directory / "f";
  make(kThousand + file, numbers(1, 10));
  std::string bytes = read_text(file);
  bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 1);
  write_text(file, bytes);
  for (const std::string line : {"test", "info", "add", "remove"}) {
    check_refused(run(line + " " + file, "1\n"), file + ": saved filter refused: the checksum");
  }
  check_refused(run("convert --to raw -o - " + file), "the checksum");
  check_refused(run("union " + file + " " + file + " -o -"), "the checksum");
}

}  // namespace encore::filter
