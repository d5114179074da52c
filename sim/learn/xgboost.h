// Regression by gradient-boosted trees: XGBoost (Chen, Guestrin 2016), whose library is loaded when
// it is asked for. One thread, the same model from the same examples and seed.
#pragma once

#include <span>

#include "base/error.h"
#include "cache/regressor.h"

namespace encore::sim {

// The factory of regressors, once the library is loaded; it stays loaded. Errors: the program was
// built without its header, or the library is not installed. Thread-safe.
Result<cache::RegressorFactory> load_xgboost();

// Returns the predictions of the library itself for the model that `regressor` learnt last, one by
// one: slow, to compare with. REQUIRES: it is of load_xgboost(), and fit() was called.
void predict_by_library(const cache::Regressor& regressor, std::span<const float> rows,
                        std::span<float> predicted);

}  // namespace encore::sim
