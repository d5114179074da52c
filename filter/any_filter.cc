#include "filter/any_filter.h"

#include <array>
#include <cmath>
#include <cstdio>
#include <utility>

#include "filter/key_estimate.h"
#include "filter/saved_filter.h"
#include "filter/theory.h"

namespace encore::filter {
namespace {

struct NamedKind {
  FilterKind kind;
  std::string_view name;
};
constexpr std::array kKinds{
    NamedKind{FilterKind::kPlain, "plain"}, NamedKind{FilterKind::kScalable, "scalable"},
    NamedKind{FilterKind::kGrowable, "growable"}, NamedKind{FilterKind::kCounting, "counting"}};

// Layouts of whole lines have no more than a line's bits to tell keys apart: below some rate they
// need many times the memory that a classic filter takes.
Result<void> check_cost(Layout layout, const SizingGoal& goal, std::uint64_t bits) {
  constexpr double kTimesMax = 4;
  constexpr double kSmallBits = 32768;
  const auto classic = static_cast<double>(size_classic(goal).bits);
  const auto own = static_cast<double>(bits);
  if (layout == Layout::kClassic || layout == Layout::kPartitioned ||
      own <= kTimesMax * classic + kSmallBits) {
    return {};
  }
  std::array<char, 240> text{};
  std::snprintf(text.data(), text.size(),
                "a %s filter at a rate of %g takes %.0f bits a key, a classic one %.0f; accepted: "
                "--layout classic or partitioned, or a higher rate",
                std::string(to_string(layout)).c_str(), goal.fpr, own / goal.keys,
                classic / goal.keys);
  return fail(text.data());
}

Result<void> check_memory(std::uint64_t bytes, const AnyFilterOptions& options) {
  if (options.memory_bytes_max == 0 || bytes <= options.memory_bytes_max) {
    return {};
  }
  return fail("the filter takes " + std::to_string(bytes) + " bytes of memory, accepted: up to " +
              std::to_string(options.memory_bytes_max) + " (--memory-max)");
}

// The shape that capacity and rate ask for, or that of the bits with what was left open.
Result<FilterParameters> sized(const AnyFilterOptions& options) {
  FilterParameters parameters = options.parameters;
  if (parameters.bits == 0) {
    if (parameters.capacity == 0 || !(options.fpr > 0 && options.fpr < 1)) {
      return fail("a filter for " + std::to_string(parameters.capacity) + " keys at a rate of " +
                  std::to_string(options.fpr) +
                  ", accepted: at least one key and a rate between 0 and 1, or a number of bits");
    }
    const SizingGoal goal{static_cast<double>(parameters.capacity), options.fpr};
    const Sizing sizing = parameters.hashes == 0
                              ? size_for(parameters.layout, goal)
                              : size_with_hashes(parameters.layout, goal, parameters.hashes);
    if (!sizing.reached) {
      return fail("no filter of up to " + std::to_string(kBitsMax) + " bits in the layout " +
                  std::string(to_string(parameters.layout)) + " holds " +
                  std::to_string(parameters.capacity) + " keys at a rate of " +
                  std::to_string(options.fpr));
    }
    if (auto fine = check_cost(parameters.layout, goal, sizing.bits); !fine) {
      return std::unexpected(fine.error());
    }
    parameters.bits = sizing.bits;
    parameters.hashes = sizing.hashes;
    return parameters;
  }
  if (parameters.hashes == 0 && parameters.capacity != 0) {
    parameters.hashes = best_hashes(parameters.shape(), static_cast<double>(parameters.capacity));
  }
  if (parameters.hashes == 0) {
    return fail("a filter of " + std::to_string(parameters.bits) +
                " bits with neither hashes nor a capacity, accepted: one of them");
  }
  if (parameters.capacity == 0) {
    parameters.capacity = half_full_capacity(parameters.shape());
  }
  return parameters;
}

Result<ScalableOptions> growing(const AnyFilterOptions& options) {
  const FilterParameters& parameters = options.parameters;
  const std::string kind(to_string(options.kind));
  const bool scalable = options.kind == FilterKind::kScalable;
  if (parameters.bits != 0) {
    return fail("a " + kind + " filter of " + std::to_string(parameters.bits) +
                " bits, accepted: a capacity of the first slice and a rate");
  }
  if (parameters.hashes != 0 &&
      (parameters.layout != Layout::kSplit || parameters.hashes != kSplitHashes)) {
    return fail("a " + kind + " filter with " + std::to_string(parameters.hashes) +
                " hashes, accepted: none, for each slice has its own number");
  }
  if (scalable && options.tightening == 1) {
    return fail("a scalable filter whose rates do not tighten, accepted: below 1");
  }
  if (parameters.capacity != 0 && options.fpr > 0 && options.fpr < 1) {
    // The first slice: the others have lower rates yet.
    const SizingGoal goal{static_cast<double>(parameters.capacity),
                          scalable ? options.fpr * (1 - options.tightening) : options.fpr};
    const std::uint64_t bits = size_for(parameters.layout, goal).bits;
    auto fine = check_cost(parameters.layout, goal, bits);
    if (fine) fine = check_memory(bits / 8, options);
    if (!fine) {
      return std::unexpected(fine.error());
    }
  }
  return ScalableOptions{.layout = parameters.layout,
                         .hash = parameters.hash,
                         .seed = parameters.seed,
                         .capacity = parameters.capacity,
                         .fpr = options.fpr,
                         .growth = scalable ? options.growth : 1,
                         .tightening = scalable ? options.tightening : 1};
}

// Fields that plain and counting filters have in common.
template <typename T>
AnyFilterInfo info_of_one(const T& filter) {
  const FilterParameters& parameters = filter.parameters();
  const FilterShape shape = parameters.shape();
  AnyFilterInfo info;
  info.parameters = parameters;
  info.capacity = parameters.capacity;
  info.set_bits = filter.set_bits();
  info.fill = filter.fill();
  info.keys_estimated = keys_from_bits(shape, static_cast<double>(filter.set_bits()));
  info.keys_error = keys_error(shape, info.keys_estimated);
  info.fpr_capacity = fpr(shape, static_cast<double>(parameters.capacity));
  return info;
}

AnyFilterInfo info_of(const BloomFilter& filter) {
  AnyFilterInfo info = info_of_one(filter);
  info.keys = filter.insertions();
  info.fpr_now = filter.fpr_from_bits();
  return info;
}

AnyFilterInfo info_of(const CountingFilter& filter) {
  AnyFilterInfo info = info_of_one(filter);
  info.keys = filter.keys();
  info.kind = FilterKind::kCounting;
  // Without memory to read the bits: the rate that as many keys as there seem to be give.
  info.fpr_now = filter.fpr_from_bits().value_or(
      std::isfinite(info.keys_estimated) ? fpr(filter.parameters().shape(), info.keys_estimated)
                                         : 1.0);
  info.overflows = filter.overflows();
  return info;
}

AnyFilterInfo info_of(const ScalableFilter& filter) {
  AnyFilterInfo info;
  const ScalableOptions& options = filter.options();
  info.kind = options.growable() ? FilterKind::kGrowable : FilterKind::kScalable;
  info.parameters = filter.slices().back().parameters();
  info.parameters.bits = filter.bits();
  info.capacity = filter.capacity();
  info.set_bits = filter.set_bits();
  info.fill = static_cast<double>(info.set_bits) / static_cast<double>(info.parameters.bits);
  for (const BloomFilter& slice : filter.slices()) {
    const FilterShape shape = slice.parameters().shape();
    const double keys = keys_from_bits(shape, static_cast<double>(slice.set_bits()));
    info.keys_estimated += keys;
    const double error = keys_error(shape, keys);
    info.keys_error = std::hypot(info.keys_error, error);
  }
  info.keys = filter.insertions();
  info.fpr_now = filter.fpr_from_bits();
  info.slices = filter.slices().size();
  const double slices = static_cast<double>(info.slices);
  info.fpr_capacity =
      options.tightening < 1 ? options.fpr : -std::expm1(slices * std::log1p(-options.fpr));
  return info;
}

Result<bool> removed_from(ScalableFilter& filter, std::string_view) {
  return fail("a " + std::string(filter.options().growable() ? "growable" : "scalable") +
              " filter forgets no single key: its bits belong to other keys as well");
}
Result<bool> removed_from(BloomFilter&, std::string_view) {
  return fail("a plain filter forgets no single key: its bits belong to other keys as well");
}
Result<bool> removed_from(CountingFilter& filter, std::string_view key) {
  return filter.remove(key);
}

std::unexpected<Error> unlike_kinds(const AnyFilter& a, const AnyFilter& b,
                                    const std::string& deed) {
  return fail("a " + std::string(to_string(a.kind())) + " and a " +
              std::string(to_string(b.kind())) + " filter cannot be " + deed);
}

template <typename T>
Result<AnyFilter> any_of(Result<T> filter) {
  if (!filter) {
    return std::unexpected(filter.error());
  }
  return AnyFilter(std::move(*filter));
}

}  // namespace

std::string_view to_string(FilterKind kind) noexcept {
  for (const NamedKind& entry : kKinds) {
    if (entry.kind == kind) {
      return entry.name;
    }
  }
  return "?";
}

Result<FilterKind> parse_kind(std::string_view name) {
  std::string accepted;
  for (const NamedKind& entry : kKinds) {
    if (entry.name == name) {
      return entry.kind;
    }
    accepted += accepted.empty() ? "" : ", ";
    accepted += entry.name;
  }
  return fail("unknown kind of filter \"" + std::string(name) + "\", accepted: " + accepted);
}

Result<AnyFilter> AnyFilter::create(const AnyFilterOptions& options) {
  if (options.kind == FilterKind::kScalable || options.kind == FilterKind::kGrowable) {
    const auto grown = growing(options);
    return grown ? any_of(ScalableFilter::create(*grown)) : std::unexpected(grown.error());
  }
  const auto parameters = sized(options);
  if (!parameters) {
    return std::unexpected(parameters.error());
  }
  constexpr std::uint64_t kBitsOfCounter = 4;
  const std::uint64_t each = options.kind == FilterKind::kCounting ? kBitsOfCounter : 1;
  if (auto fine = check_memory(parameters->bits * each / 8, options); !fine) {
    return std::unexpected(fine.error());
  }
  return options.kind == FilterKind::kCounting ? any_of(CountingFilter::create(*parameters))
                                               : any_of(BloomFilter::create(*parameters));
}

bool AnyFilter::add(std::string_view key) {
  return std::visit([&](auto& filter) { return filter.add(key); }, filter_);
}

bool AnyFilter::test(std::string_view key) const {
  return std::visit([&](const auto& filter) { return filter.test(key); }, filter_);
}

void AnyFilter::test(std::span<const std::string_view> keys, std::span<bool> out) const {
  std::visit([&](const auto& filter) { filter.test(keys, out); }, filter_);
}

Result<bool> AnyFilter::remove(std::string_view key) {
  return std::visit([&](auto& filter) { return removed_from(filter, key); }, filter_);
}

Result<void> AnyFilter::unite(const AnyFilter& other) {
  if (kind() != other.kind()) {
    return unlike_kinds(*this, other, "united");
  }
  return std::visit([&]<typename T>(T& filter) { return filter.merge(std::get<T>(other.filter_)); },
                    filter_);
}

Result<void> AnyFilter::intersect(const AnyFilter& other) {
  if (kind() != other.kind()) {
    return unlike_kinds(*this, other, "intersected");
  }
  return std::visit(
      [&]<typename T>(T& filter) { return filter.intersect(std::get<T>(other.filter_)); }, filter_);
}

FilterKind AnyFilter::kind() const {
  if (const auto* scalable = std::get_if<ScalableFilter>(&filter_); scalable != nullptr) {
    return scalable->options().growable() ? FilterKind::kGrowable : FilterKind::kScalable;
  }
  return std::holds_alternative<CountingFilter>(filter_) ? FilterKind::kCounting
                                                         : FilterKind::kPlain;
}

Result<BloomFilter> AnyFilter::to_plain() const {
  if (const auto* counting = std::get_if<CountingFilter>(&filter_); counting != nullptr) {
    return counting->plain();
  }
  if (const auto* scalable = std::get_if<ScalableFilter>(&filter_); scalable != nullptr) {
    if (scalable->slices().size() != 1) {
      return fail("a filter of " + std::to_string(scalable->slices().size()) +
                  " slices cannot be made one plain filter");
    }
    return scalable->slices().front().copy();
  }
  return std::get<BloomFilter>(filter_).copy();
}

AnyFilterInfo AnyFilter::info() const {
  return std::visit([](const auto& filter) { return info_of(filter); }, filter_);
}

std::uint64_t AnyFilter::memory_bytes() const {
  if (const auto* growing = std::get_if<ScalableFilter>(&filter_)) {
    return growing->bits() / 8;
  }
  if (const auto* counting = std::get_if<CountingFilter>(&filter_)) {
    return counting->parameters().bits / 2;
  }
  return std::get<BloomFilter>(filter_).parameters().bits / 8;
}

std::string AnyFilter::save() const {
  return std::visit([](const auto& filter) { return filter.save(); }, filter_);
}

Result<AnyFilter> AnyFilter::load(std::string_view bytes) {
  const auto kind = saved_kind(bytes);
  if (!kind) {
    return std::unexpected(kind.error());
  }
  switch (*kind) {
    case SavedKind::kSingle:
      return any_of(BloomFilter::load(bytes));
    case SavedKind::kScalable:
      return any_of(ScalableFilter::load(bytes));
    case SavedKind::kCounting:
      return any_of(CountingFilter::load(bytes));
    case SavedKind::kRing:
      break;
  }
  return fail("saved filter refused: a rotating one, accepted: a single filter");
}

}  // namespace encore::filter
