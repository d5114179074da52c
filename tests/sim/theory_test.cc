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
       }) {
    INFO(known.line);
    const Ran ran = run(known.line);
    CHECK(ran.exit_code == 0);
    CHECK(ran.out.find(known.shown) != std::string::npos);
  }
}

TEST_CASE("Impossible theory is refused with exit 2", "[sim][cli][theory]") {
  for (const char* line :
       {"theory size --fpr 0", "theory size --fpr 1", "theory size --keys 0",
        "theory size --layout round", "theory capacity --bits 0", "theory capacity --fpr nan",
        "theory table --hashes 0", "theory table --bits-per-key 0", "theory pair --generations 1",
        "theory pair --layout split --hashes 3", "theory ring --generations 1",
        "theory ring --fpr 2", "theory layouts --hashes 65"}) {
    INFO(line);
    const Ran ran = run(line);
    CHECK(ran.exit_code == 2);
    CHECK(ran.out.empty());
  }
}

}  // namespace encore::sim
