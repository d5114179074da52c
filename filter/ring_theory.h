// RingTheory: what theory expects of the generations of a ring TOGETHER: which share of the
// positions is set in which of them, and from that p. A value; thread-compatible.
//
// Generation 0 is the current one, g was current g rotations ago. x_P is the expected share of
// positions that are set in exactly the generations P. The share that is set in none of S is z_S =
// sum of x_P over P without S; the share that is set in all of T is o_T = sum of x_P over P with
// all of T. With n(S) the distinct keys in any of S, z_S = e^(-b n(S)), and b is the share of the
// unset positions that one key sets. b is -k ln(1 - 1/m) for classic, -ln(1 - k/m) for partitioned,
// (1 - (1 - 1/512)^k) 512/m for blocked, 8/m for split. For the pair of nA and nB keys, r of them
// in both, that is
//
//   o = 1 - e^(-b nA) - e^(-b nB) + e^(-b (nA + nB - r)),    p = a^k + b^k - o^k.
//
// The ring does not know n(S), but counts insertions, and which generations had the key.
//
// With refresh every key that is presented has its bits in generation 0 afterwards. Let dn be the
// keys that no generation of W truly holds. A share 1 - p_(W and 0) of them gets no answer from W
// or 0, and counts as an insertion with no answer from W. So dn = di(W) / (1 - p_(W and 0)), and
// z_(W and 0) shrinks by b dn. Keys that are refreshed although they are new are so accounted for;
// at k = 1, where a position is a key, the result is what the bits hold, exactly.
//
// Without refresh a key is inserted only if no generation answers for it, so its bits avoid those
// that are set. With e keys presented, de = di / (1 - p), a position with the pattern P in the
// older generations is set at the rate b u_P, u_P = sum over T in P of (-1)^|T| P_T / o_T. The
// generations are then less alike than independent ones; at k = 1 no position is set in two.
//
// p is the inclusion and exclusion of P_T = o_T^k. Blocked and split: a line holds a Poisson number
// of keys of each kind, and P_T = E[o_T^k] = o_T^k C_T. For a single generation C comes from the
// sum over the counts (theory.h); for sets ln C_T is taken proportional to the relative variance of
// o_T over the lines, which is right for independent generations and for equal ones.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "filter/joint_bits.h"
#include "filter/parameters.h"

namespace encore::filter {

struct RingTheoryOptions {
  FilterShape shape;  // shape of one generation
  double capacity = 0;
  // Taken together: at most kJointMax, the newest. The caller takes others for independent.
  std::uint32_t generations = 2;
  bool refresh = true;
};

class RingTheory {
 public:
  RingTheory() = default;
  // Empty generations.
  explicit RingTheory(const RingTheoryOptions& options);

  // Generations that are taken together.
  std::uint32_t generations() const { return generations_; }
  // Sets of older generations: bit j of the set stands for generation j + 1.
  std::size_t older_sets() const { return positions_.size() / 2; }

  // Keys were inserted in the current generation: keys[T] of them when exactly the older
  // generations T answered for them, keys[0] when none did. REQUIRES: older_sets() numbers.
  void insert(std::span<const double> keys);
  void rotate();
  void set_refresh(bool refresh) { refresh_ = refresh; }

  // p that some generation answers for a key that is in none; that some older one does.
  double fpr() const { return some(positions_).back(); }
  double fpr_older() const { return some(positions_)[positions_.size() - 2]; }

  // x_P for each set P, and the same taken over, from a saved form or from the bits
  // (shares_set_in_all). REQUIRES: 2^generations numbers.
  std::span<const double> positions() const { return positions_; }
  void set_positions(std::span<const double> positions);
  void set_shares_in_all(std::vector<double> shares);

 private:
  using Sets = std::vector<double>;  // a number for each set of generations
  Sets some(const Sets& positions) const;
  Sets all(const Sets& positions) const;
  void spread_over_lines(const Sets& positions, const Sets& shares, Sets& probabilities) const;
  Sets moved(std::span<const double> keys, const Sets& some) const;
  Sets moved_with_refresh(std::span<const double> keys, const Sets& some) const;
  Sets moved_without_refresh(double keys, const Sets& some) const;
  double fpr_single(double unset) const;
  void read_older_singles();

  FilterShape shape_;
  double capacity_ = 1;
  std::uint32_t generations_ = 0;
  bool refresh_ = true;
  bool lines_ = false;   // blocked and split
  double in_line_ = 0;   // blocked and split: what one key sets of what its line has unset
  double per_key_ = 0;   // b
  Sets positions_{1.0};  // x
  Sets singles_;         // blocked and split: p of generation g alone; [0] is not used
};

}  // namespace encore::filter
