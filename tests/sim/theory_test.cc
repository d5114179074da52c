#include <cmath>
#include <nlohmann/json.hpp>

#include "sim/replay/code_experiment.h"
#include "tests/catch.h"
#include "tests/sim/run.h"

namespace encore::sim {

TEST_CASE("The theory tables show the published figures", "[sim][cli][theory]") {
  struct Known {
    const char* line;
    const char* shown;
  };
  for (const Known& known : {
           Known{"theory size --keys 1000 --fpr 0.0001 --layout classic", "19171"},
           Known{"theory capacity --bits 9585059 --fpr 0.01 --layout classic", "1000000"},
           Known{"theory table --bits-per-key 5,10,20 --hashes 1..14", "6.714e-05"},
           Known{"theory pair --bits 800000 --capacity 80000 --hashes 4,7,8",
                 "80000  0.008194  0.009526  0.016320"},
           Known{"theory ring --fpr 0.01 --generations 2,8", "22.06"},
           Known{"theory ring --fpr 0.001 --generations 2,8", "21.38"},
           Known{"theory layouts --bits-per-key 10 --hashes 7,8",
                 "0.008455     0.008455  0.010135    0.010490    0.012648"},
           Known{"theory fill --keys 10 --bits 100 --hashes 4", "0.012276"},
           // The lecture's .147 by the exponential form, classic and exact.
           Known{"theory fill --keys 4 --bits 16 --hashes 3",
                 "\n3     0.146892  0.156633  0.164955"},
       }) {
    INFO(known.line);
    const Ran ran = run(known.line);
    CHECK(ran.exit_code == 0);
    CHECK(ran.out.find(known.shown) != std::string::npos);
  }
}

TEST_CASE("An FPR beyond reach is refused with the number of hashes that it would need",
          "[sim][cli][theory]") {
  const Ran deep = run("theory size --fpr 1e-300 --no-timing");
  CHECK(deep.exit_code == 0);
  CHECK(deep.out.find("1437758757  171.4MiB     1437.76  997             997  1.000e-300") !=
        std::string::npos);
  CHECK(deep.out.find("layout split comes down to 4.19335e-19 in 512 GiB") != std::string::npos);
  check_refused(run("theory size --fpr 1e-300 --layout split"),
                "a classic filter would need k = 997");
  check_refused(run("theory size --fpr 1e-300 --layout blocked"), "need k = 997");
  check_refused(run("theory size --fpr 1e-320 --layout classic"), "need k = 1064");
  check_refused(run("theory size --keys 18446744073709551615 --layout classic"),
                "1.76813e+20 bits, accepted: k up to 1024 and 2^63 bits");
  check_refused(run("theory ring --fpr 1e-300 --layout split"), "would need k = 998");
  // A filter that cannot hold a key has no bits a key; and memory is for throws, not for cells.
  CHECK(run("theory capacity --fpr 1e-300 --bits 512").out.find("inf") == std::string::npos);
  CHECK(run("theory fill --bits 4398046511104 --keys 1 --hashes 1..3").exit_code == 0);
}

TEST_CASE("Impossible theory is refused with exit 2", "[sim][cli][theory]") {
  for (const char* line :
       {"theory size --fpr 0", "theory size --fpr 1", "theory size --keys 0",
        "theory size --layout round", "theory capacity --bits 0", "theory capacity --fpr nan",
        "theory table --hashes 0", "theory table --bits-per-key 0", "theory pair --generations 1",
        "theory pair --layout split --hashes 3", "theory ring --generations 1",
        "theory ring --fpr 2", "theory layouts --hashes 1025"}) {
    INFO(line);
    const Ran ran = run(line);
    CHECK(ran.exit_code == 2);
    CHECK(ran.out.empty());
  }
}

TEST_CASE("Capacities of the smallest filters are told for the layouts that have one",
          "[sim][theory]") {
  for (int bits = 1; bits < 12; ++bits) {
    const Ran ran =
        run("theory capacity --json --no-timing --fpr 0.9 --bits " + std::to_string(bits));
    CAPTURE(bits, ran.err);
    CHECK(ran.exit_code == 0);
    for (const char* layout : {"classic", "partitioned", "blocked", "split"}) {
      CHECK(ran.out.find("\"layout\": \"" + std::string(layout) + "\"") != std::string::npos);
    }
  }
  CHECK(run("theory capacity --bits 1").exit_code == 0);
}

TEST_CASE("Codes, filters and vectors measure as theory says", "[sim][cli][theory]") {
  const Ran ran = run("theory codes --keys 200 --bits 2000 --hashes 1,3,7 --tests 2000 --json");
  REQUIRE(ran.exit_code == 0);
  const auto rows = nlohmann::json::parse(ran.out)["rows"];
  // Bitmap, one bit vector, then code and filter of each k, with a bit vector as good.
  REQUIRE(rows.size() == 2 + 2 + 3 + 3);
  int measured = 0;
  for (const auto& row : rows) {
    CAPTURE(row.dump());
    if (row.contains("z_theory")) {
      ++measured;
      CHECK(std::abs(row["z_theory"].get<double>()) < 4.5);
      CHECK(std::abs(row["z_set_bits"].get<double>()) < 4.5);
    }
  }
  CHECK(measured == 6);
  // Different positions set more bits than such that may coincide.
  CHECK(rows[7]["set_bits"].get<double>() > rows[8]["set_bits"].get<double>());
  CHECK(rows[7]["structure"] == "superimposed code");
  CHECK(rows[9]["structure"] == "bit vector at this rate");
  CHECK(rows[9]["bytes"].get<double>() > 10 * rows[8]["bytes"].get<double>());
  check_refused(run("theory codes --bits 3 --hashes 4"), "--hashes 4 with 3 bits, accepted");
  check_refused(run("theory codes --hashes 129"), "129");
  CHECK(run("theory codes --filters 0 --keys 1000000 --bits 100 --hashes 7").exit_code == 0);
}

TEST_CASE("A code measured as a filter, or the reverse, fails its theory", "[sim][theory]") {
  // In sixteen bits, positions that coincide make a difference that 300 filters show.
  Monitor monitor;
  const auto mean_bits = [&](CodeKind kind) {
    double bits = 0;
    for (std::uint64_t seed = 0; seed < 300; ++seed) {
      const auto count = run_code(
          {.kind = kind, .bits = 16, .hashes = 3, .keys = 4, .tests = 1, .seed = seed}, monitor);
      bits += static_cast<double>(count->set_bits) / 300;
    }
    return bits;
  };
  // 16 (1 - (13/16)^4) and 16 (1 - (15/16)^12), standard error 0.07.
  CHECK(mean_bits(CodeKind::kSuperimposed) == Approx(9.027).margin(0.32));
  CHECK(mean_bits(CodeKind::kBloom) == Approx(8.624).margin(0.32));
  CHECK(mean_bits(CodeKind::kSuperimposed) - mean_bits(CodeKind::kBloom) > 0.1);
}

}  // namespace encore::sim
