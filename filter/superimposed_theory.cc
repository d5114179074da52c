#include "filter/superimposed_theory.h"

#include <cmath>
#include <cstddef>
#include <vector>

#include "base/check.h"

namespace encore::filter {
namespace {

using Vector = std::vector<double>;

// A square matrix of transitions that never go down: row from, column to.
class Transitions {
 public:
  explicit Transitions(std::size_t states) : states_(states), cells_(states * states) {}
  double& at(std::size_t from, std::size_t to) { return cells_[from * states_ + to]; }
  double at(std::size_t from, std::size_t to) const { return cells_[from * states_ + to]; }

  Transitions squared() const {
    Transitions out(states_);
    for (std::size_t from = 0; from < states_; ++from) {
      for (std::size_t over = from; over < states_; ++over) {
        for (std::size_t to = over; to < states_; ++to) {
          out.at(from, to) += at(from, over) * at(over, to);
        }
      }
    }
    return out;
  }
  Vector after(const Vector& before) const {
    Vector out(states_);
    for (std::size_t from = 0; from < states_; ++from) {
      for (std::size_t to = from; to < states_; ++to) {
        out[to] += before[from] * at(from, to);
      }
    }
    return out;
  }

 private:
  std::size_t states_;
  std::vector<double> cells_;
};

// The number of `open` positions that one code hits: its positions are drawn one after the other.
Vector hits(const CodeShape& shape, std::size_t open) {
  Vector chance(open + 1);
  chance[0] = 1;
  for (std::uint32_t drawn = 0; drawn < shape.weight; ++drawn) {
    const double left = static_cast<double>(shape.bits) - drawn;
    for (std::size_t hit = open + 1; hit-- != 0;) {
      // More hits than draws, or fewer positions left than are open, have no probability.
      const double hits_next = static_cast<double>(open - hit) / left;
      const double stays = chance[hit] * std::fmax(0, 1 - hits_next);
      const double comes =
          hit == 0 ? 0 : chance[hit - 1] * std::fmin(1, static_cast<double>(open - hit + 1) / left);
      chance[hit] = stays + comes;
    }
  }
  return chance;
}

}  // namespace

double superimposed_fpr(const CodeShape& shape, std::uint64_t keys) {
  ENCORE_CHECK(shape.weight >= 1 && shape.weight <= kCodeWeightMax && shape.weight <= shape.bits,
               "a code of one position at least, and of no more than there are");
  const std::size_t weight = shape.weight;
  Transitions step(weight + 1);
  for (std::size_t covered = 0; covered <= weight; ++covered) {
    const Vector chance = hits(shape, weight - covered);
    for (std::size_t hit = 0; hit < chance.size(); ++hit) {
      step.at(covered, covered + hit) = chance[hit];
    }
  }
  Vector covered(weight + 1);
  covered[0] = 1;
  for (std::uint64_t left = keys; left != 0; left >>= 1U) {
    if ((left & 1U) != 0) {
      covered = step.after(covered);
    }
    step = step.squared();
  }
  return std::fmin(1, covered[weight]);
}

double superimposed_set_bits(const CodeShape& shape, double keys) {
  const auto bits = static_cast<double>(shape.bits);
  return bits * -std::expm1(keys * std::log1p(-static_cast<double>(shape.weight) / bits));
}

double bit_vector_size(double keys, double fpr) {
  ENCORE_CHECK(fpr > 0 && fpr < 1 && keys > 0, "a rate between 0 and 1");
  return -1 / std::expm1(std::log1p(-fpr) / keys);
}

}  // namespace encore::filter
