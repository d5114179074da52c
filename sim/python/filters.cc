// Bloom filters on keys of Python: numbers in NumPy arrays, read where they are, and texts.
#include <pybind11/stl.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/time.h"
#include "filter/any_filter.h"
#include "filter/rotating_bloom_filter.h"
#include "filter/theory.h"
#include "sim/python/binding.h"

namespace encore::sim::python {
namespace {

constexpr std::size_t kAtOnce = 1024;
static_assert(std::endian::native == std::endian::little, "a number's key is its bytes in memory");

filter::Seed seed_of(std::uint64_t seed) { return {seed, seed}; }

std::string_view text_of(py::handle text) {
  if (PyUnicode_Check(text.ptr()) != 0 || PyBytes_Check(text.ptr()) != 0) {
    return text.cast<std::string_view>();
  }
  throw py::value_error("the key " + std::string(py::repr(text)) +
                        ", accepted: bytes, str, or an array of uint64");
}

// Calls each(keys, begin) for the keys of a list of texts, or an array of uint64, some at a time.
// A number's key is its eight bytes, little-endian, as in encore-sim's traces.
template <typename Each>
std::size_t for_keys(const py::object& keys, Each each) {
  std::vector<std::string_view> some;
  some.reserve(kAtOnce);
  if (py::isinstance<py::array>(keys)) {
    const auto array = py::array_t<std::uint64_t, py::array::c_style>::ensure(keys);
    if (!array || array.ndim() != 1) {
      throw py::value_error("keys of another shape, accepted: an array of one dimension");
    }
    const auto* bytes = reinterpret_cast<const char*>(array.data());
    const auto count = static_cast<std::size_t>(array.shape(0));
    for (std::size_t begin = 0; begin < count; begin += kAtOnce) {
      some.clear();
      for (std::size_t i = begin; i < std::min(count, begin + kAtOnce); ++i) {
        some.emplace_back(bytes + i * sizeof(std::uint64_t), sizeof(std::uint64_t));
      }
      each(std::span<const std::string_view>(some), begin);
    }
    return count;
  }
  const py::sequence list(keys);
  const std::size_t count = list.size();
  // Owners of the texts that the views point into.
  std::vector<py::object> held(std::min(count, kAtOnce));
  for (std::size_t begin = 0; begin < count; begin += kAtOnce) {
    some.clear();
    for (std::size_t i = begin; i < std::min(count, begin + kAtOnce); ++i) {
      held[i - begin] = list[i];
      some.push_back(text_of(held[i - begin]));
    }
    each(std::span<const std::string_view>(some), begin);
  }
  return count;
}

std::size_t count_of(const py::object& keys) { return py::len(keys); }

// The answers of ask(keys, out) for all keys.
template <typename Ask>
py::array_t<bool> answers(const py::object& keys, Ask ask) {
  py::array_t<bool> all(static_cast<py::ssize_t>(count_of(keys)));
  bool* const to = all.mutable_data();
  for_keys(keys, [&](std::span<const std::string_view> some, std::size_t begin) {
    ask(some, std::span<bool>(to + begin, some.size()));
  });
  return all;
}

// --- filters of one generation ------------------------------------------------------------------

filter::AnyFilter make_filter(const std::string& kind, std::uint64_t capacity, double fpr,
                              std::uint64_t bits, std::uint32_t hashes, const std::string& layout,
                              const std::string& hash, std::uint64_t seed) {
  filter::AnyFilterOptions options;
  options.kind = value_of(filter::parse_kind(kind));
  options.parameters = {.layout = value_of(filter::parse_layout(layout)),
                        .hash = value_of(filter::parse_hash_family(hash)),
                        .bits = bits,
                        .hashes = hashes,
                        .capacity = capacity,
                        .seed = seed_of(seed)};
  options.fpr = bits == 0 ? fpr : 0;
  return value_of(filter::AnyFilter::create(options));
}

py::array_t<bool> add_to(filter::AnyFilter& filter, const py::object& keys) {
  return answers(keys, [&](std::span<const std::string_view> some, std::span<bool> out) {
    std::ranges::transform(some, out.begin(),
                           [&](std::string_view key) { return filter.add(key); });
  });
}

py::array_t<bool> contained(const filter::AnyFilter& filter, const py::object& keys) {
  return answers(keys, [&](std::span<const std::string_view> some, std::span<bool> out) {
    filter.test(some, out);
  });
}

py::array_t<bool> removed_from(filter::AnyFilter& filter, const py::object& keys) {
  return answers(keys, [&](std::span<const std::string_view> some, std::span<bool> out) {
    std::ranges::transform(some, out.begin(),
                           [&](std::string_view key) { return value_of(filter.remove(key)); });
  });
}

py::dict info_of(const filter::AnyFilter& filter) {
  const filter::AnyFilterInfo info = filter.info();
  py::dict all;
  all["kind"] = std::string(to_string(info.kind));
  all["layout"] = std::string(to_string(info.parameters.layout));
  all["hash"] = std::string(to_string(info.parameters.hash));
  all["bits"] = info.parameters.bits;
  all["hashes"] = info.parameters.hashes;
  all["capacity"] = info.capacity;
  all["keys"] = info.keys;
  all["keys_estimated"] = info.keys_estimated;
  all["set_bits"] = info.set_bits;
  all["fill"] = info.fill;
  all["fpr_now"] = info.fpr_now;
  all["fpr_capacity"] = info.fpr_capacity;
  all["slices"] = info.slices;
  all["memory_bytes"] = filter.memory_bytes();
  return all;
}

// --- rotating filters ---------------------------------------------------------------------------

MonotonicTime time_of(double seconds) {
  // Enough for 31 years on each side of zero.
  constexpr double kSecondsMax = 1e9;
  if (!(std::abs(seconds) <= kSecondsMax)) {
    throw py::value_error("the time " + std::to_string(seconds) +
                          ", accepted: seconds from -1e9 to 1e9");
  }
  return MonotonicTime(Nanoseconds(static_cast<std::int64_t>(seconds * 1e9)));
}

class Rotating {
 public:
  Rotating(filter::RotatingBloomFilter filter, const filter::Seed& seed)
      : filter_(std::move(filter)), seed_(seed) {}

  py::array_t<bool> add(const py::object& keys, double now) {
    const MonotonicTime time = time_of(now);
    return answers(keys, [&](std::span<const std::string_view> some, std::span<bool> out) {
      hash(some);
      seen_.resize(some.size());
      filter_.test_and_set(hashed_, time, seen_);
      std::ranges::transform(seen_, out.begin(),
                             [](filter::Seen seen) { return seen == filter::Seen::kNew; });
    });
  }
  py::array_t<bool> contains(const py::object& keys) {
    return answers(keys, [&](std::span<const std::string_view> some, std::span<bool> out) {
      hash(some);
      filter_.test(hashed_, out);
    });
  }
  void rotate(double now) { filter_.rotate(time_of(now)); }

  py::dict info() const {
    const filter::RotatingStatistics statistics = filter_.statistics(UINT64_MAX);
    const filter::RotatingOptions& options = filter_.options();
    py::list generations;
    for (const filter::GenerationStatistics& one : statistics.generations) {
      py::dict generation;
      generation["insertions"] = one.insertions;
      generation["set_bits"] = one.set_bits;
      generation["fill"] = one.fill;
      generation["fpr_theory"] = one.fpr_theory;
      generations.append(generation);
    }
    py::dict all;
    all["layout"] = std::string(to_string(options.parameters.layout));
    all["bits"] = options.parameters.bits;
    all["hashes"] = options.parameters.hashes;
    all["capacity"] = options.parameters.capacity;
    all["generations"] = generations;
    all["insertions"] = statistics.insertions;
    all["refreshes"] = statistics.refreshes;
    all["rotations"] = statistics.rotations;
    all["fpr_theory"] = statistics.fpr_theory;
    all["fpr_bits"] = statistics.fpr_bits;
    all["memory_bytes"] = statistics.memory_bytes;
    return all;
  }

 private:
  void hash(std::span<const std::string_view> keys) {
    hashed_.clear();
    for (const std::string_view key : keys) {
      hashed_.push_back(filter::identify(seed_, key));
    }
  }

  filter::RotatingBloomFilter filter_;
  filter::Seed seed_;
  std::vector<filter::HashedKey> hashed_;
  std::vector<filter::Seen> seen_;
};

Rotating make_rotating(std::uint64_t capacity, double fpr, std::uint64_t bits, std::uint32_t hashes,
                       const std::string& layout, const std::string& hash,
                       std::uint32_t generations, bool refresh, double rotate_after,
                       std::uint64_t seed) {
  const filter::Layout shape = value_of(filter::parse_layout(layout));
  if (bits == 0) {
    if (!(fpr > 0 && fpr < 1) || capacity == 0 || generations < 2 ||
        generations > filter::kGenerationsMax) {
      throw py::value_error("capacity " + std::to_string(capacity) + ", fpr " +
                            std::to_string(fpr) + ", generations " + std::to_string(generations) +
                            ", accepted: a capacity of 1 or more, a rate between 0 and 1, 2 to 16 "
                            "generations");
    }
    const filter::Sizing sizing = filter::size_ring({.layout = shape,
                                                     .capacity = static_cast<double>(capacity),
                                                     .fpr_worst = fpr,
                                                     .generations = generations,
                                                     .hashes = hashes,
                                                     .refresh = refresh});
    if (!sizing.reached) {
      throw py::value_error("a rate of " + std::to_string(fpr) + " needs more than 2^42 bits");
    }
    bits = sizing.bits;
    hashes = sizing.hashes;
  } else if (hashes == 0) {
    hashes = filter::best_hashes({shape, bits, 1},
                                 static_cast<double>(std::max<std::uint64_t>(capacity, 1)));
  }
  const filter::RotatingOptions options{
      .parameters = {.layout = shape,
                     .hash = value_of(filter::parse_hash_family(hash)),
                     .bits = bits,
                     .hashes = hashes,
                     .capacity = capacity,
                     .seed = seed_of(seed)},
      .generations = generations,
      .refresh = refresh,
      .rotate_after = time_of(rotate_after).time_since_epoch(),
      .identity_seed = seed_of(seed),
      .shadow_one_in = 0};
  return {value_of(filter::RotatingBloomFilter::create(options, MonotonicTime{})), seed_of(seed)};
}

}  // namespace

void bind_filters(py::module_& module) {
  py::class_<filter::AnyFilter>(module, "BloomFilter")
      .def(py::init(&make_filter), py::arg("kind"), py::arg("capacity"), py::arg("fpr"),
           py::arg("bits"), py::arg("hashes"), py::arg("layout"), py::arg("hash"), py::arg("seed"))
      .def("add", &add_to)
      .def("contains", &contained)
      .def("remove", &removed_from)
      .def("info", &info_of)
      .def("save", [](const filter::AnyFilter& filter) { return py::bytes(filter.save()); })
      .def_static("load",
                  [](std::string_view bytes) { return value_of(filter::AnyFilter::load(bytes)); });
  py::class_<Rotating>(module, "RotatingBloomFilter")
      .def(py::init(&make_rotating), py::arg("capacity"), py::arg("fpr"), py::arg("bits"),
           py::arg("hashes"), py::arg("layout"), py::arg("hash"), py::arg("generations"),
           py::arg("refresh"), py::arg("rotate_after"), py::arg("seed"))
      .def("add", &Rotating::add)
      .def("contains", &Rotating::contains)
      .def("rotate", &Rotating::rotate)
      .def("info", &Rotating::info);
}

}  // namespace encore::sim::python
