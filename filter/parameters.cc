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

constexpr std::uint64_t up_to_multiple(std::uint64_t value, std::uint64_t unit) {
  return (value + unit - 1) / unit * unit;
}

// Checks that a Squid digest can have these parameters.
Result<void> check_squid(const FilterParameters& parameters) {
  if (parameters.hashes != kSquidHashes) {
    return fail("hash squid-md5 with " + std::to_string(parameters.hashes) +
                " hashes, accepted: 4, the words that a digest has");
  }
  if (parameters.bits >= kSquidBitsMax) {
    return fail("hash squid-md5 with " + std::to_string(parameters.bits) +
                " bits, accepted: 1 to " + std::to_string(kSquidBitsMax - 8) + ", as in Squid");
  }
  return {};
}

// Checks that the digest has enough fields, and that they reach all bits.
Result<void> check_fields(const FilterParameters& parameters) {
  const std::string name(to_string(parameters.hash));
  const std::uint32_t width = field_width(parameters.hash, parameters.bits);
  const std::uint32_t digest = fielded_bits(parameters.hash);
  if (parameters.bits > std::uint64_t{1} << width) {
    return fail("hash " + name + " with " + std::to_string(parameters.bits) +
                " bits, accepted: 1 to " + std::to_string(std::uint64_t{1} << width) +
                ", what a field reaches");
  }
  if (parameters.hashes > digest / width) {
    return fail("hash " + name + " with " + std::to_string(parameters.hashes) +
                " hashes, accepted: 1 to " + std::to_string(digest / width) + ", the fields of " +
                std::to_string(width) + " bits that a digest of " + std::to_string(digest) +
                " has; a numbered hash, as sha1-numbered, has any number");
  }
  return {};
}

// Checks the requirements of a hash family that lists indices.
Result<void> check_lists(const FilterParameters& parameters) {
  const std::string name(to_string(parameters.hash));
  if (parameters.layout != Layout::kClassic) {
    return fail("hash " + name + " with layout " + std::string(to_string(parameters.layout)) +
                ", accepted: classic");
  }
  if (parameters.hash == HashFamily::kChained) {
    return {};
  }
  if (parameters.seed != Seed{}) {
    return fail("hash " + name + " with a seed, accepted: none, for its form is published");
  }
  if (parameters.hash == HashFamily::kSquidMd5) {
    return check_squid(parameters);
  }
  return fielded_bits(parameters.hash) != 0 ? check_fields(parameters) : Result<void>{};
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
  if (lists_indices(parameters.hash)) {
    if (auto fine = check_lists(parameters); !fine) {
      return std::unexpected(fine.error());
    }
  }
  switch (parameters.layout) {
    case Layout::kClassic:
      if (parameters.hash == HashFamily::kSquidMd5) {
        parameters.bits = up_to_multiple(parameters.bits, 8);
      }
      break;
    case Layout::kPartitioned:
      if (parameters.bits < parameters.hashes) {
        return fail("partitioned filter of " + text(parameters.bits) + " bits in " +
                    text(parameters.hashes) + " slices, accepted: at least a bit a slice");
      }
      parameters.bits = up_to_multiple(parameters.bits, parameters.hashes);
      break;
    case Layout::kBlocked:
    case Layout::kSplit:
      parameters.bits = up_to_multiple(parameters.bits, kLineBits);
      break;
  }
  return parameters;
}

Result<void> alike(const FilterParameters& a, const FilterParameters& b, const std::string& deed) {
  if (a.shape() != b.shape() || a.hash != b.hash) {
    const auto text = [](const FilterParameters& p) {
      return std::string(to_string(p.layout)) + "/" + std::string(to_string(p.hash)) + ", " +
             std::to_string(p.bits) + " bits, " + std::to_string(p.hashes) + " hashes";
    };
    return fail("filters of different make cannot be " + deed + ": " + text(a) + " and " + text(b));
  }
  if (a.seed != b.seed) {
    return fail("filters with different seeds cannot be " + deed + ": fingerprints " +
                fingerprint(a.seed) + " and " + fingerprint(b.seed));
  }
  return {};
}

}  // namespace encore::filter
