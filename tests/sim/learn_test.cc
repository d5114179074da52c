// Trees that are read from text, and XGBoost's predictions from its own.
#include <array>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "sim/learn/tree_sum.h"
#include "sim/learn/xgboost.h"
#include "tests/catch.h"

namespace encore::sim {
namespace {

constexpr float kUnknownValue = std::numeric_limits<float>::quiet_NaN();

std::vector<float> random_rows(std::size_t count, std::size_t width, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<float> rows(count * width);
  for (float& value : rows) {
    value = random() % 8 == 0 ? kUnknownValue : static_cast<float>(random() % 1000) / 7;
  }
  return rows;
}

}  // namespace

TEST_CASE("A sum of trees is read from text", "[sim]") {
  TreeSum trees(10);
  REQUIRE(
      trees.add("0:[f1<2.5] yes=1,no=2,missing=2\n"
                "\t1:leaf=-1.5\n"
                "\t2:[f0<1e-3] yes=3,no=4,missing=3\n\t\t3:leaf=2\n\t\t4:leaf=4\n"));
  REQUIRE(trees.add("0:leaf=0.25\n"));
  const auto predict = [&](float a, float b) {
    const std::array row = {a, b};
    return trees.predict(row);
  };
  CHECK(predict(0, 2) == 8.75F);
  CHECK(predict(0, 2.5) == 12.25F);
  CHECK(predict(1, 3) == 14.25F);
  CHECK(predict(1, kUnknownValue) == 14.25F);
  CHECK(predict(kUnknownValue, 3) == 12.25F);
}

TEST_CASE("Text that is no tree is refused", "[sim]") {
  const auto refusal = [](std::string_view text) {
    TreeSum trees;
    const auto added = trees.add(text);
    return added ? "" : added.error().message;
  };
  CHECK(refusal("").find("without a first node") != std::string::npos);
  CHECK(refusal("1:leaf=2\n").find("without a first node") != std::string::npos);
  CHECK(refusal("0:leaf=x\n").find("the line \"0:leaf=x\"") != std::string::npos);
  CHECK(refusal("0:leaf=1 more\n").find("the line") != std::string::npos);
  CHECK(refusal("0:[f0<1] yes=1,no=2\n").find("the line") != std::string::npos);
  CHECK(refusal("4000000000:leaf=1\n").find("the line") != std::string::npos);
  CHECK(refusal("0:[f0<1] yes=1,no=2,missing=1\n1:leaf=1\n").find("the node 2") !=
        std::string::npos);
  // An endless walk.
  CHECK(refusal("0:[f0<1] yes=0,no=1,missing=1\n1:leaf=1\n").find("the node 0") !=
        std::string::npos);
}

TEST_CASE("Trees of XGBoost predict what the library does, and learn", "[sim]") {
  const auto make = load_xgboost();
  if (!make) {
    WARN(make.error().message);
    return;
  }
  constexpr std::size_t kWidth = 6;
  constexpr std::size_t kCount = 3000;
  const std::vector<float> rows = random_rows(kCount, kWidth, 1);
  std::vector<float> targets;
  for (std::size_t i = 0; i < kCount; ++i) {
    const float a = rows[i * kWidth];
    const float b = rows[i * kWidth + 3];
    targets.push_back(std::isnan(a) ? 7 : a > 70 ? 1 : std::isnan(b) ? 3 : b / 30);
  }
  const auto model = (*make)({.width = kWidth, .trees = 60, .leaves = 16});
  model->fit(rows, targets);
  const std::vector<float> asked = random_rows(500, kWidth, 2);
  std::vector<float> own(500);
  std::vector<float> its(500);
  model->predict(asked, own);
  predict_by_library(*model, asked, its);
  for (std::size_t i = 0; i < own.size(); ++i) {
    REQUIRE(own[i] == Approx(its[i]).epsilon(1e-5));
  }
  std::vector<float> learnt(kCount);
  model->predict(rows, learnt);
  double squares = 0;
  for (std::size_t i = 0; i < kCount; ++i) {
    squares += std::pow(static_cast<double>(learnt[i]) - static_cast<double>(targets[i]), 2);
  }
  CHECK(squares / kCount < 0.1);  // their variance is 5
  // Another one learns the same.
  const auto again = (*make)({.width = kWidth, .trees = 60, .leaves = 16});
  again->fit(rows, targets);
  std::vector<float> same(500);
  again->predict(asked, same);
  CHECK(same == own);
}

}  // namespace encore::sim
