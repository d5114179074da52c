// Which options a kernel accepts: each bound with the values on both of its sides.
#include "cache/options.h"

#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "tests/cache/support.h"

namespace encore::cache::test {
namespace {

struct OptionsRow {
  std::string what;
  std::function<void(KernelOptions&)> change;
  bool is_accepted;
};

KernelOptions options_with_disk() {
  KernelOptions options = plain_options(1U << 20U);
  options.disks = {{.segments = kDiskSegmentsMin, .segment_bytes = kSegmentBytesMin}};
  return options;
}

std::vector<OptionsRow> rows_of_options() {
  std::vector<OptionsRow> rows;
  const auto add = [&](std::string what, bool is_accepted, auto change) {
    rows.push_back({std::move(what), change, is_accepted});
  };
  add("as they are", true, [](KernelOptions&) {});
  for (const std::uint32_t shards : {0U, 1U, 2U, 3U, 255U, 256U, 257U, 512U}) {
    add("shards " + std::to_string(shards), shards == 1 || shards == 2 || shards == 256,
        [=](KernelOptions& options) { options.shards = shards; });
  }
  constexpr std::uint64_t kMost = std::uint64_t{1} << 62U;
  for (const std::uint64_t bytes : {std::uint64_t{0}, std::uint64_t{1}, kMost, kMost + 1}) {
    add("capacity " + std::to_string(bytes), bytes != 0 && bytes <= kMost,
        [=](KernelOptions& options) { options.capacity_bytes = bytes; });
  }
  for (const std::uint32_t share : {0U, 1U}) {
    add("share " + std::to_string(share), share != 0,
        [=](KernelOptions& options) { options.max_object_share = share; });
  }
  for (const std::uint32_t variants : {0U, 1U, kVariantsMax, kVariantsMax + 1}) {
    add("variants " + std::to_string(variants), variants != 0 && variants <= kVariantsMax,
        [=](KernelOptions& options) { options.variants_max = variants; });
  }
  for (const std::size_t disks : {std::size_t{0}, std::size_t{kDisksMax}, kDisksMax + 1UL}) {
    add("disks " + std::to_string(disks), disks <= kDisksMax, [=](KernelOptions& options) {
      const DiskOptions disk = options.disks[0];
      options.disks.assign(disks, disk);
    });
  }
  for (const std::uint32_t segments :
       {kDiskSegmentsMin - 1, kDiskSegmentsMin, kSegmentsMax, kSegmentsMax + 1}) {
    // Also if it is not the first disk.
    for (const bool is_second : {false, true}) {
      add("segments " + std::to_string(segments),
          segments >= kDiskSegmentsMin && segments <= kSegmentsMax, [=](KernelOptions& options) {
            DiskOptions disk = options.disks[0];
            disk.segments = segments;
            if (!is_second) options.disks.clear();
            options.disks.push_back(disk);
          });
    }
  }
  for (const std::uint64_t bytes : {kSegmentBytesMin / 2, kSegmentBytesMin, kSegmentBytesMin + 1,
                                    3 * kSegmentBytesMin, kSegmentBytesMax, 2 * kSegmentBytesMax}) {
    const bool is_accepted = bytes == kSegmentBytesMin || bytes == kSegmentBytesMax;
    add("segments of " + std::to_string(bytes), is_accepted,
        [=](KernelOptions& options) { options.disks[0].segment_bytes = bytes; });
  }
  for (const std::uint32_t percent : {0U, kReinsertPercentMax, kReinsertPercentMax + 1}) {
    add("moves " + std::to_string(percent), percent <= kReinsertPercentMax,
        [=](KernelOptions& options) { options.disk_rules.reinsert_percent = percent; });
  }
  for (const std::uint64_t rate : {std::uint64_t{0}, kWriteRateMax, kWriteRateMax + 1}) {
    add("rate " + std::to_string(rate), rate <= kWriteRateMax,
        [=](KernelOptions& options) { options.disk_rules.write_rate_max = rate; });
  }

  const auto of = [&](AdmissionPolicy policy, std::string what, bool is_accepted, auto change) {
    add(std::string(to_string(policy)) + ": " + what, is_accepted, [=](KernelOptions& options) {
      options.admission.policy = policy;
      change(options.admission);
    });
  };
  using enum AdmissionPolicy;
  for (std::size_t i = 0; i < kAdmissionPolicyCount; ++i) {
    const auto policy = static_cast<AdmissionPolicy>(i);
    const bool uses_filter = policy == kSecondHit || policy == kNthHit || policy == kProbation;
    const bool uses_window =
        uses_filter || policy == kExactSecondHit || policy == kTinyLfu || policy == kAdaptSize;
    CHECK(has_filter(policy) == uses_filter);
    CHECK(has_window(policy) == uses_window);
    of(policy, "plain", true, [](AdmissionOptions&) {});
    of(policy, "no capacity", !uses_window,
       [](AdmissionOptions& options) { options.filter.capacity = 0; });
    of(policy, "no hashes", !uses_filter && policy != kTinyLfu,
       [](AdmissionOptions& options) { options.filter.hashes = 0; });
    for (const std::uint32_t least : {0U, 1U, 2U, kMinRequestsMax, kMinRequestsMax + 1}) {
      of(policy, "requests " + std::to_string(least),
         policy != kNthHit || (least >= 2 && least <= kMinRequestsMax),
         [=](AdmissionOptions& options) { options.min_requests = least; });
    }
    for (const double probability : {-0.1, 0.0, 0.001, 1.0, 1.001}) {
      of(policy, "probability " + std::to_string(probability),
         policy != kProbability || (probability > 0 && probability <= 1),
         [=](AdmissionOptions& options) { options.probability = probability; });
    }
    for (const std::uint64_t bytes : {0U, 1U}) {
      of(policy, "threshold " + std::to_string(bytes), policy != kSizeThreshold || bytes != 0,
         [=](AdmissionOptions& options) { options.size_threshold_bytes = bytes; });
    }
    for (const std::uint32_t generations : {1U, 2U, 3U}) {
      of(policy, "generations " + std::to_string(generations),
         policy != kProbation || generations == 2,
         [=](AdmissionOptions& options) { options.generations = generations; });
    }
    of(policy, "no refresh", policy != kProbation,
       [](AdmissionOptions& options) { options.refresh = false; });
    of(policy, "wait", true, [](AdmissionOptions& options) { options.wait_max = Nanoseconds(1); });
    of(policy, "wait below 0", policy != kProbation,
       [](AdmissionOptions& options) { options.wait_max = Nanoseconds(-1); });
  }
  of(kProbation, "another hash", false,
     [](AdmissionOptions& options) { options.filter.hash = filter::HashFamily::kSiphash; });
  return rows;
}

}  // namespace

TEST_CASE("Options are accepted up to each bound, and refused with a reason beyond it", "[cache]") {
  for (const OptionsRow& row : rows_of_options()) {
    CAPTURE(row.what);
    KernelOptions options = options_with_disk();
    row.change(options);
    const auto checked = check_options(options);
    CAPTURE(checked ? "" : checked.error().message);
    CHECK(checked.has_value() == row.is_accepted);
    if (!checked) CHECK_FALSE(checked.error().message.empty());
  }
}

TEST_CASE("The largest object is the smaller of its share and its own bound", "[cache]") {
  for (const std::uint64_t capacity : {std::uint64_t{1000}, std::uint64_t{1} << 62U}) {
    for (const std::uint32_t share : {1U, 8U}) {
      for (const std::uint64_t bytes :
           {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{124}, std::uint64_t{125},
            std::uint64_t{126}, std::uint64_t{1} << 50U}) {
        KernelOptions options = plain_options(capacity);
        options.max_object_share = share;
        options.max_object_bytes = bytes;
        std::uint64_t expected = capacity / share;
        if (bytes != 0 && bytes < expected) expected = bytes;
        // An entry has 40 bits for it.
        expected = std::min(expected, (std::uint64_t{1} << 40U) - 1);
        CAPTURE(capacity, share, bytes);
        CHECK(effective_max_object(reload_options(options)) == expected);
      }
    }
  }
}

TEST_CASE("Each policy has the name that is parsed as it, and others are refused", "[cache]") {
  for (std::size_t i = 0; i < kEvictionPolicyCount; ++i) {
    const auto policy = static_cast<EvictionPolicy>(i);
    const auto parsed = parse_eviction(to_string(policy));
    REQUIRE(parsed.has_value());
    CHECK(*parsed == policy);
  }
  for (std::size_t i = 0; i < kAdmissionPolicyCount; ++i) {
    const auto policy = static_cast<AdmissionPolicy>(i);
    const auto parsed = parse_admission(to_string(policy));
    REQUIRE(parsed.has_value());
    CHECK(*parsed == policy);
  }
  const auto eviction = parse_eviction("nothing");
  REQUIRE_FALSE(eviction.has_value());
  CHECK(eviction.error().message.starts_with("unknown eviction policy \"nothing\", accepted: " +
                                             std::string(kEvictionNames[0])));
  const auto admission = parse_admission("nothing");
  REQUIRE_FALSE(admission.has_value());
  CHECK(admission.error().message.starts_with("unknown admission policy \"nothing\", accepted: " +
                                              std::string(kAdmissionNames[0])));
  CHECK(admission.error().message.ends_with(" " + std::string(kAdmissionNames.back())));
}

}  // namespace encore::cache::test
