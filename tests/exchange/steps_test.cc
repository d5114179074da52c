#include "proxy/exchange/steps.h"

#include <fstream>
#include <sstream>
#include <string>

#include "tests/catch.h"

namespace encore::server {
namespace {

TEST_CASE("every step can be reached, and every one but the last left", "[exchange][steps]") {
  for (const StepRow& row : kSteps) {
    CAPTURE(row.name);
    bool entered = row.step == Step::kBegun;
    bool left = false;
    for (const StepRow& other : kSteps) {
      entered = entered || may_follow(other.step, row.step);
      left = left || may_follow(row.step, other.step);
    }
    CHECK(entered);
    CHECK(left == (row.step != Step::kEnded));
  }
}

TEST_CASE("nothing is sent twice, and nothing is asked for behind the answer",
          "[exchange][steps]") {
  CHECK_FALSE(may_follow(Step::kRespond, Step::kRespond));
  CHECK_FALSE(may_follow(Step::kRespond, Step::kAsk));
  CHECK_FALSE(may_follow(Step::kEnded, Step::kEnded));
  CHECK(may_follow(Step::kWait, Step::kStored));
}

TEST_CASE("the diagram of the steps in docs/ARCHITECTURE.md is drawn from the table",
          "[exchange][steps]") {
  std::ifstream file(ENCORE_SOURCE_DIR "/docs/ARCHITECTURE.md");
  std::ostringstream text;
  text << file.rdbuf();
  INFO("what the table says:\n" << draw_steps());
  CHECK(text.str().find("```steps\n" + draw_steps() + "```\n") != std::string::npos);
}

}  // namespace
}  // namespace encore::server
