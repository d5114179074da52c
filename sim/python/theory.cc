// The theory of Bloom filters (filter/theory.h) as functions of numbers and arrays.
#include <pybind11/stl.h>

#include <cmath>
#include <limits>
#include <string>

#include "filter/theory.h"
#include "sim/python/binding.h"

namespace encore::sim::python {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

filter::FilterShape shape_of(filter::Layout layout, std::uint64_t bits, std::uint32_t hashes) {
  return value_of(filter::checked({.layout = layout,
                                   .hash = filter::HashFamily::kXxh3,
                                   .bits = bits,
                                   .hashes = hashes,
                                   .capacity = 1,
                                   .seed = {}}))
      .shape();
}
filter::Layout layout_of(const std::string& name) { return value_of(filter::parse_layout(name)); }

double checked_keys(double keys) {
  if (!(keys >= 0 && keys <= 0x1p53)) {
    throw py::value_error("keys " + std::to_string(keys) + ", accepted: 0 to 2^53");
  }
  return keys;
}
double checked_rate(double rate) {
  if (!(rate > 0 && rate < 1)) {
    throw py::value_error("a false-positive rate of " + std::to_string(rate) +
                          ", accepted: above 0 and below 1");
  }
  return rate;
}
double checked_capacity(double capacity) {
  if (!(capacity >= 1 && capacity <= 0x1p53)) {
    throw py::value_error("a capacity of " + std::to_string(capacity) + ", accepted: 1 to 2^53");
  }
  return capacity;
}
std::uint32_t checked_generations(std::uint32_t generations) {
  if (generations < 2 || generations > filter::kGenerationsMax) {
    throw py::value_error(std::to_string(generations) + " generations, accepted: 2 to 16");
  }
  return generations;
}

using Bits = py::array_t<std::uint64_t>;
using Hashes = py::array_t<std::uint32_t>;
using Reals = py::array_t<double>;

// The function of a shape and a number, for arrays of any shapes that fit together.
template <double of(const filter::FilterShape& shape, double number)>
py::object each(const Bits& bits, const Hashes& hashes, const Reals& numbers,
                const std::string& layout) {
  return py::vectorize(
      [shaped = layout_of(layout)](std::uint64_t m, std::uint32_t k, double number) {
        return of(shape_of(shaped, m, k), number);
      })(bits, hashes, numbers);
}

double fpr(const filter::FilterShape& shape, double keys) {
  return filter::fpr(shape, checked_keys(keys));
}
double fpr_exponential(const filter::FilterShape& shape, double keys) {
  return filter::fpr_exponential(shape, checked_keys(keys));
}
double fpr_exact(const filter::FilterShape& shape, double keys) {
  return filter::fpr_exact(shape, static_cast<std::uint64_t>(checked_keys(keys))).value_or(kNone);
}
double fpr_incremental(const filter::FilterShape& shape, double keys) {
  return filter::fpr_incremental(shape, checked_keys(keys));
}
double set_bits(const filter::FilterShape& shape, double keys) {
  return filter::expected_set_bits(shape, checked_keys(keys));
}
double capacity_for(const filter::FilterShape& shape, double rate) {
  return filter::capacity_for(shape, checked_rate(rate));
}

// Properties of a ring that arrays do not have.
struct RingKind {
  filter::Layout layout = filter::Layout::kSplit;
  std::uint32_t generations = 2;
  bool refresh = true;
};
filter::Ring ring_of(const RingKind& kind, std::uint64_t bits, std::uint32_t hashes,
                     double capacity) {
  return {.shape = shape_of(kind.layout, bits, hashes),
          .capacity = checked_capacity(capacity),
          .generations = checked_generations(kind.generations),
          .refresh = kind.refresh};
}
py::object ring_fpr(const Bits& bits, const Hashes& hashes, const Reals& capacity,
                    const Reals& insertions, const std::string& layout, std::uint32_t generations,
                    bool refresh) {
  const RingKind kind{layout_of(layout), generations, refresh};
  return py::vectorize([kind](std::uint64_t m, std::uint32_t k, double c, double i) {
    const filter::Ring ring = ring_of(kind, m, k, c);
    if (!(i >= 0 && i <= c)) {
      throw py::value_error(std::to_string(i) +
                            " insertions, accepted: 0 to the capacity of a generation, " +
                            std::to_string(c));
    }
    return filter::ring_fpr(ring, i);
  })(bits, hashes, capacity, insertions);
}
py::dict ring_cycle(std::uint64_t bits, std::uint32_t hashes, double capacity,
                    const std::string& layout, std::uint32_t generations, bool refresh) {
  const filter::CycleFpr cycle = filter::ring_cycle(
      ring_of({layout_of(layout), generations, refresh}, bits, hashes, capacity));
  py::dict all;
  all["low"] = cycle.low;
  all["mean"] = cycle.mean;
  all["high"] = cycle.high;
  return all;
}

py::dict to_dict(const filter::Sizing& sizing) {
  if (!sizing.reached) {
    throw py::value_error("no filter of up to 2^42 bits has such a low false-positive rate");
  }
  py::dict all;
  all["bits"] = sizing.bits;
  all["hashes"] = sizing.hashes;
  all["fpr"] = sizing.fpr;
  return all;
}
py::dict size(double keys, double rate, const std::string& layout, std::uint32_t hashes) {
  const filter::SizingGoal goal{.keys = checked_capacity(keys), .fpr = checked_rate(rate)};
  const filter::Layout shape = layout_of(layout);
  if (hashes > filter::kHashesMax) {
    throw py::value_error(std::to_string(hashes) + " hashes, accepted: up to 1024, 0: the best");
  }
  return to_dict(hashes == 0 ? filter::size_for(shape, goal)
                             : filter::size_with_hashes(shape, goal, hashes));
}
py::dict size_ring(double capacity, double rate, const std::string& layout,
                   std::uint32_t generations, std::uint32_t hashes, bool refresh) {
  return to_dict(filter::size_ring({.layout = layout_of(layout),
                                    .capacity = checked_capacity(capacity),
                                    .fpr_worst = checked_rate(rate),
                                    .generations = checked_generations(generations),
                                    .hashes = hashes,
                                    .refresh = refresh}));
}
py::tuple interval(std::uint64_t hits, std::uint64_t trials, double z) {
  if (hits > trials) {
    throw py::value_error(std::to_string(hits) + " of " + std::to_string(trials) +
                          ", accepted: no more hits than trials");
  }
  const filter::Interval between = filter::wilson_interval({hits, trials}, z);
  return py::make_tuple(between.low, between.high);
}

}  // namespace

void bind_theory(py::module_& module) {
  py::module_ theory = module.def_submodule("theory");
  const auto layout = py::arg("layout") = "classic";
  const auto ring_layout = py::arg("layout") = "split";
  const auto generations = py::arg("generations") = 2;
  const auto refresh = py::arg("refresh") = true;
  const auto bits = py::arg("bits");
  const auto hashes = py::arg("hashes");
  const auto keys = py::arg("keys");
  theory.def("fpr", &each<fpr>, bits, hashes, keys, layout);
  theory.def("fpr_exponential", &each<fpr_exponential>, bits, hashes, keys, layout);
  theory.def("fpr_exact", &each<fpr_exact>, bits, hashes, keys, layout);
  theory.def("fpr_incremental", &each<fpr_incremental>, bits, hashes, keys, layout);
  theory.def("set_bits", &each<set_bits>, bits, hashes, keys, layout);
  theory.def("capacity_for", &each<capacity_for>, bits, hashes, py::arg("fpr"), layout);
  theory.def("ring_fpr", &ring_fpr, bits, hashes, py::arg("capacity"), py::arg("insertions"),
             ring_layout, generations, refresh);
  theory.def("ring_cycle", &ring_cycle, py::arg("bits"), py::arg("hashes"), py::arg("capacity"),
             ring_layout, generations, refresh);
  theory.def("size", &size, py::arg("keys"), py::arg("fpr"), layout, py::arg("hashes") = 0);
  theory.def("size_ring", &size_ring, py::arg("capacity"), py::arg("fpr"), ring_layout, generations,
             py::arg("hashes") = 0, refresh);
  theory.def("wilson_interval", &interval, py::arg("hits"), py::arg("trials"), py::arg("z") = 1.96);
}

}  // namespace encore::sim::python
