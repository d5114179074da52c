#include "sim/learn/xgboost.h"

#ifdef ENCORE_XGBOOST

#include <dlfcn.h>
#include <xgboost/c_api.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <limits>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "sim/learn/tree_sum.h"

namespace encore::sim {
namespace {

constexpr const char* kLibrary = "libxgboost.so.0";
constexpr float kUnknown = std::numeric_limits<float>::quiet_NaN();

//  function
#define ENCORE_XGBOOST_FUNCTIONS(X) \
  X(XGDMatrixCreateFromMat)         \
  X(XGDMatrixSetFloatInfo)          \
  X(XGDMatrixFree)                  \
  X(XGBoosterCreate)                \
  X(XGBoosterFree)                  \
  X(XGBoosterSetParam)              \
  X(XGBoosterUpdateOneIter)         \
  X(XGBoosterDumpModelEx)           \
  X(XGBoosterPredict)

struct XgboostLibrary {
// A member is named by the argument, which parentheses would not let it be.
#define ENCORE_MEMBER(function) \
  decltype(&::function) function = nullptr;  // NOLINT(bugprone-macro-parentheses)
  ENCORE_XGBOOST_FUNCTIONS(ENCORE_MEMBER)
#undef ENCORE_MEMBER
};

Result<XgboostLibrary> load() {
  void* const handle = ::dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    return fail("cannot load " + std::string(kLibrary) + " (" + ::dlerror() +
                "); install it, on Debian with apt-get install libxgboost0");
  }
  XgboostLibrary library;
  std::string missing;
#define ENCORE_LOAD(function)                                                             \
  library.function = reinterpret_cast<decltype(&::function)>(::dlsym(handle, #function)); \
  missing += library.function == nullptr ? " " #function : "";
  ENCORE_XGBOOST_FUNCTIONS(ENCORE_LOAD)
#undef ENCORE_LOAD
  if (!missing.empty()) {
    return fail("libxgboost.so.0 has no" + missing + "; install version 1.7");
  }
  return library;
}

const Result<XgboostLibrary>& library() {
  static const Result<XgboostLibrary> loaded = load();
  return loaded;
}

void check(int result) { ENCORE_CHECK(result == 0, "XGBoost does what it is asked"); }

// Rows for the library, which copies them.
class Matrix {
 public:
  Matrix(std::span<const float> rows, std::size_t count) {
    check(library()->XGDMatrixCreateFromMat(rows.data(), count, rows.size() / count, kUnknown,
                                            &handle_));
  }
  ~Matrix() { library()->XGDMatrixFree(handle_); }
  Matrix(const Matrix&) = delete;
  Matrix& operator=(const Matrix&) = delete;
  DMatrixHandle handle() const { return handle_; }

 private:
  DMatrixHandle handle_ = nullptr;
};

class Booster {
 public:
  explicit Booster(const Matrix& rows) {
    const std::array handles = {rows.handle()};
    check(library()->XGBoosterCreate(handles.data(), handles.size(), &handle_));
  }
  ~Booster() { library()->XGBoosterFree(handle_); }
  Booster(const Booster&) = delete;
  Booster& operator=(const Booster&) = delete;
  BoosterHandle handle() const { return handle_; }

 private:
  BoosterHandle handle_ = nullptr;
};

std::string exact(float value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.9g", static_cast<double>(value));
  return text.data();
}

class XgboostRegressor final : public cache::Regressor {
 public:
  explicit XgboostRegressor(const cache::RegressorOptions& options) : options_(options) {}

  void fit(std::span<const float> rows, std::span<const float> targets) override {
    const Matrix matrix(rows, targets.size());
    check(
        library()->XGDMatrixSetFloatInfo(matrix.handle(), "label", targets.data(), targets.size()));
    booster_ = std::make_unique<Booster>(matrix);
    const auto mean = static_cast<float>(std::accumulate(targets.begin(), targets.end(), 0.0) /
                                         static_cast<double>(targets.size()));
    // As in LRB's program, which has LightGBM: trees that grow where they gain most, each from a
    // part of the examples and of the features.
    const std::vector<std::pair<const char*, std::string>> parameters = {
        {"objective", "reg:squarederror"},
        {"tree_method", "hist"},
        {"grow_policy", "lossguide"},
        {"max_depth", "0"},
        {"max_leaves", std::to_string(options_.leaves)},
        {"eta", exact(static_cast<float>(options_.rate))},
        {"subsample", "0.8"},
        {"colsample_bytree", "0.8"},
        {"base_score", exact(mean)},
        {"seed", std::to_string(options_.seed)},
        {"seed_per_iteration", "1"},
        {"nthread", "1"},
        {"verbosity", "0"}};
    for (const auto& [name, value] : parameters) {
      check(library()->XGBoosterSetParam(booster_->handle(), name, value.c_str()));
    }
    for (std::uint32_t tree = 0; tree < options_.trees; ++tree) {
      check(library()->XGBoosterUpdateOneIter(booster_->handle(), static_cast<int>(tree),
                                              matrix.handle()));
    }
    read_trees(mean);
  }

  void predict(std::span<const float> rows, std::span<float> predicted) const override {
    for (std::size_t i = 0; i < predicted.size(); ++i) {
      predicted[i] = trees_.predict(rows.subspan(i * options_.width, options_.width));
    }
  }

  void predict_by_library(std::span<const float> rows, std::span<float> predicted) const {
    const Matrix matrix(rows, predicted.size());
    bst_ulong count = 0;
    const float* values = nullptr;
    check(
        library()->XGBoosterPredict(booster_->handle(), matrix.handle(), 0, 0, 0, &count, &values));
    ENCORE_CHECK(count == predicted.size(), "a prediction for each row");
    std::ranges::copy(std::span(values, count), predicted.begin());
  }

 private:
  void read_trees(float base) {
    bst_ulong count = 0;
    const char** dumps = nullptr;
    check(library()->XGBoosterDumpModelEx(booster_->handle(), "", 0, "text", &count, &dumps));
    trees_ = TreeSum(base);
    for (std::size_t i = 0; i < count; ++i) {
      ENCORE_CHECK(trees_.add(dumps[i]), "a tree that can be read");
    }
  }

  cache::RegressorOptions options_;
  std::unique_ptr<Booster> booster_;
  TreeSum trees_;
};

}  // namespace

Result<cache::RegressorFactory> load_xgboost() {
  if (!library()) {
    return std::unexpected(library().error());
  }
  return [](const cache::RegressorOptions& options) -> std::unique_ptr<cache::Regressor> {
    return std::make_unique<XgboostRegressor>(options);
  };
}

void predict_by_library(const cache::Regressor& regressor, std::span<const float> rows,
                        std::span<float> predicted) {
  dynamic_cast<const XgboostRegressor&>(regressor).predict_by_library(rows, predicted);
}

}  // namespace encore::sim

#else

#include "base/check.h"

namespace encore::sim {

Result<cache::RegressorFactory> load_xgboost() {
  return fail(
      "this program was built without xgboost/c_api.h; install libxgboost-dev and build it");
}

void predict_by_library(const cache::Regressor& /*regressor*/, std::span<const float> /*rows*/,
                        std::span<float> /*predicted*/) {
  panic(__FILE__, __LINE__, "xgboost", "a regressor of load_xgboost()");
}

}  // namespace encore::sim

#endif
