#include "filter/parameters.h"

#include <array>
#include <string>

namespace encore::filter {
namespace {

struct NamedLayout {
  Layout layout;
  std::string_view name;
};
constexpr std::array<NamedLayout, 4> kLayouts{{{Layout::kClassic, "classic"},
                                               {Layout::kPartitioned, "partitioned"},
                                               {Layout::kBlocked, "blocked"},
                                               {Layout::kSplit, "split"}}};

constexpr std::uint64_t round_up(std::uint64_t value, std::uint64_t unit) {
  return (value + unit - 1) / unit * unit;
}

}  // namespace

std::string_view to_string(Layout layout) noexcept {
  for (const NamedLayout& entry : kLayouts) {
    if (entry.layout == layout) {
      return entry.name;
    }
  }
  return "?";
}

Result<Layout> parse_layout(std::string_view name) {
  std::string accepted;
  for (const NamedLayout& entry : kLayouts) {
    if (entry.name == name) {
      return entry.layout;
    }
    accepted += accepted.empty() ? "" : ", ";
    accepted += entry.name;
  }
  return fail("unknown filter layout \"" + std::string(name) + "\", accepted: " + accepted);
}

Result<FilterParameters> checked(FilterParameters parameters) {
  const auto text = [](std::uint64_t value) { return std::to_string(value); };
  if (parameters.bits == 0 || parameters.bits > kBitsMax) {
    return fail("filter of " + text(parameters.bits) + " bits, accepted: 1 to " + text(kBitsMax));
  }
  if (parameters.hashes == 0 || parameters.hashes > kHashesMax) {
    return fail("filter with " + text(parameters.hashes) + " hashes, accepted: 1 to " +
                text(kHashesMax));
  }
  if (parameters.layout == Layout::kSplit && parameters.hashes != kSplitHashes) {
    return fail("split filter with " + text(parameters.hashes) +
                " hashes, accepted: 8 (one bit in each of eight words); another number of hashes "
                "needs the layout blocked, classic or partitioned");
  }
  if (parameters.capacity == 0) {
    return fail("filter with capacity 0, accepted: at least 1 insertion");
  }
  switch (parameters.layout) {
    case Layout::kClassic:
      break;
    case Layout::kPartitioned:
      if (parameters.bits < parameters.hashes) {
        return fail("partitioned filter of " + text(parameters.bits) + " bits in " +
                    text(parameters.hashes) + " slices, accepted: at least a bit a slice");
      }
      parameters.bits = round_up(parameters.bits, parameters.hashes);
      break;
    case Layout::kBlocked:
    case Layout::kSplit:
      parameters.bits = round_up(parameters.bits, kLineBits);
      break;
  }
  return parameters;
}

}  // namespace encore::filter
