// A kernel on probation against a naive model of it: one list in order of arrival, exact sets in
// the place of the pair, every search from one end to the other.
#include <algorithm>
#include <cmath>
#include <list>
#include <random>
#include <set>
#include <string>

#include "tests/cache/support.h"

namespace encore::cache::test {
namespace {

constexpr std::uint64_t kMemoryBytes = 80'000;
constexpr std::uint64_t kLargestBytes = kMemoryBytes / 8;
constexpr std::uint64_t kDiskBytes = 32 * 64 * 1024;
constexpr std::uint64_t kPlanned = 1000;  // keys of a generation

struct ModelRequest {
  std::uint64_t id = 0;
  std::uint64_t bytes = 0;
};

struct Did {
  bool in_memory = false;
  bool on_disk = false;
  AdmitReason reason = AdmitReason::kPolicyRefuses;
  friend bool operator==(const Did&, const Did&) = default;
};

class KernelProbationModel {
 public:
  Did request(const ModelRequest& asked) {
    if (waits(asked.id) || is_copy(asked.id)) return {.in_memory = true};
    if (disk.contains(asked.id)) return {.on_disk = true};
    Did did{.reason = fetched(asked)};
    const bool alone = asked.bytes > kLargestBytes;
    switch (did.reason) {
      case AdmitReason::kSecondRequest:
        make_room(alone ? kDiskEntryBytes : asked.bytes + kDiskEntryBytes);
        if (!alone) copies_.push_back(asked);
        write(asked);
        break;
      case AdmitReason::kWaits:
        make_room(asked.bytes);
        waiting_.push_back({asked, false});
        break;
      case AdmitReason::kWritesAll:
        make_room(asked.bytes + kDiskEntryBytes);
        waiting_.push_back({asked, false});
        write(asked);
        break;
      default:
        break;
    }
    return did;
  }
  void purge(std::uint64_t id) {
    std::erase_if(waiting_, [&](const WaitingTotals& each) { return each.asked.id == id; });
    std::erase_if(copies_, [&](const ModelRequest& each) { return each.id == id; });
    disk.erase(id);
    std::erase_if(lines_, [&](const ModelRequest& each) { return each.id == id; });
  }
  bool knows(std::uint64_t id) const { return newer_.contains(id) || older_.contains(id); }
  std::uint64_t waiting_bytes() const {
    std::uint64_t bytes = 0;
    for (const WaitingTotals& each : waiting_) bytes += each.only_key ? 0 : each.asked.bytes;
    return bytes;
  }
  std::uint64_t objects_waiting() const { return waiting_.size() - keys_waiting(); }
  std::uint64_t keys_waiting() const {
    return static_cast<std::uint64_t>(
        std::ranges::count_if(waiting_, [](const WaitingTotals& each) { return each.only_key; }));
  }
  std::uint64_t used() const {
    std::uint64_t bytes = waiting_bytes() + kDiskEntryBytes * disk.size();
    for (const ModelRequest& each : copies_) bytes += each.bytes;
    return bytes;
  }

  ProbationRule rule;
  std::set<std::uint64_t> disk;

 private:
  struct WaitingTotals {
    ModelRequest asked;
    bool only_key = false;
  };
  bool waits(std::uint64_t id) const {
    return std::ranges::any_of(
        waiting_, [&](const WaitingTotals& each) { return each.asked.id == id && !each.only_key; });
  }
  bool is_copy(std::uint64_t id) const {
    return std::ranges::any_of(copies_, [&](const ModelRequest& each) { return each.id == id; });
  }
  std::uint64_t most() const {
    const std::uint64_t entries = kMemoryBytes - kDiskEntryBytes * disk.size();
    return std::min(entries - entries / 8, kDiskBytes / 15);
  }
  AdmitReason fetched(const ModelRequest& asked) {
    ++fetched_;
    mean_ += (static_cast<double>(asked.bytes) - mean_) /
             std::min(4096.0, static_cast<double>(fetched_));
    for (const WaitingTotals& each : waiting_) {
      if (each.asked.id == asked.id) return AdmitReason::kKeyWaits;
    }
    if (newer_.contains(asked.id) ||
        (older_.contains(asked.id) && static_cast<double>(asked.bytes) <= mean_)) {
      remember(asked.id);
      return AdmitReason::kSecondRequest;
    }
    if (asked.bytes <= kLargestBytes)
      return rule.all ? AdmitReason::kWritesAll : AdmitReason::kWaits;
    if (waiting_.empty()) {
      remember(asked.id);
      return AdmitReason::kKeyWaits;
    }
    waiting_.push_back({asked, true});
    while (keys_waiting() * 64 > std::max<std::uint64_t>(64, most() / 8)) {
      const auto oldest = std::ranges::find_if(waiting_, &WaitingTotals::only_key);
      const std::uint64_t id = oldest->asked.id;
      waiting_.erase(oldest);
      remember(id);
    }
    return AdmitReason::kKeyWaits;
  }
  void remember(std::uint64_t id) {
    if (newer_.contains(id)) return;
    std::uint64_t bytes = 0;
    for (const ModelRequest& each : lines_) bytes += disk_room(each.bytes);
    const double each =
        disk.empty() ? mean_ : static_cast<double>(bytes) / static_cast<double>(disk.size());
    const double full = std::clamp(std::ceil(rule.window * static_cast<double>(kDiskBytes) / each),
                                   1.0, static_cast<double>(kPlanned));
    if (static_cast<double>(newer_.size()) >= full) {
      older_ = std::move(newer_);
      newer_.clear();
    }
    newer_.insert(id);
  }
  void write(const ModelRequest& asked) {
    disk.insert(asked.id);
    lines_.push_back(asked);
  }
  void make_room(std::uint64_t bytes) {
    const std::uint64_t bound = most();
    bool no_copies = false;
    while (used() + bytes > kMemoryBytes) {
      if (!waiting_.empty() && (waiting_bytes() > bound || copies_.empty() || no_copies)) {
        const WaitingTotals oldest = waiting_.front();
        waiting_.pop_front();
        if (oldest.only_key || !disk.contains(oldest.asked.id)) remember(oldest.asked.id);
      } else if (!copies_.empty()) {
        copies_.pop_front();
      } else {
        no_copies = true;
      }
    }
  }

  std::list<WaitingTotals> waiting_;
  std::list<ModelRequest> copies_;
  std::list<ModelRequest> lines_;  // on disk
  std::set<std::uint64_t> newer_;
  std::set<std::uint64_t> older_;
  double mean_ = 0;
  std::uint64_t fetched_ = 0;
};

Did request(Kernel& kernel, const ModelRequest& asked) {
  const LookupResult result = kernel.lookup(key(asked.id), at(1));
  if (result.state != LookupState::kMiss) {
    return {.in_memory = !result.on_disk(), .on_disk = result.on_disk()};
  }
  const bool alone = asked.bytes > kLargestBytes;
  Did did{.reason =
              kernel.admit(key(asked.id), {.size_bytes = asked.bytes, .disk_only = alone}, at(1))};
  if (!is_stored(did.reason)) return did;
  DiskDecision decision;
  kernel.commit(key(asked.id),
                {.charge_bytes = alone ? 0 : asked.bytes,
                 .disk_bytes = did.reason == AdmitReason::kWaits ? 0 : asked.bytes,
                 .disk_only = alone,
                 .waits = is_on_probation(did.reason)},
                0, at(1), &decision);
  if (decision.outcome == DiskOutcome::kPlaced) {
    kernel.written(key(asked.id), decision.place, Kernel::Write::kDone, at(1));
  }
  return did;
}

}  // namespace

TEST_CASE("A kernel on probation does what a naive model does, request by request",
          "[cache][probation][model]") {
  const std::uint64_t seed = GENERATE(range(std::uint64_t{1}, std::uint64_t{9}));
  std::mt19937_64 random(seed);
  KernelOptions options = plain_options(kMemoryBytes);
  options.max_object_share = 8;
  options.eviction = EvictionPolicy::kFifo;
  options.admission.policy = AdmissionPolicy::kProbation;
  options.admission.filter.bits = 1 << 20;
  options.admission.filter.capacity = kPlanned;
  options.admission.fill = false;
  options.disks = {{.segments = 32, .segment_bytes = 64 * 1024}};
  const auto kernel = make_kernel(options);
  KernelProbationModel model;
  std::set<AdmitReason> reasons;
  const std::uint64_t keys = seed % 2 == 0 ? 200 : 350;
  for (int i = 0; i < 6000; ++i) {
    if (random() % 300 == 0) {
      const double windows[] = {0.02, 0.1, 0.5, 1, 2};
      model.rule = {.window = windows[random() % 5], .all = random() % 8 == 0};
      REQUIRE(kernel->follow(model.rule, at(1)));
    }
    const std::uint64_t id = std::min(random() % keys, random() % keys);
    if (random() % 100 == 0) {
      kernel->invalidate(key(id), at(1));
      model.purge(id);
    }
    const std::uint64_t bytes =
        id % 16 == 7 ? kLargestBytes + 1 + id * 5 : 200 + filter::scrambled(id) % 3000;
    const Did wanted = model.request({id, bytes});
    const Did did = request(*kernel, {id, bytes});
    INFO("seed " << seed << ", request " << i << " of " << id << ": " << to_string(did.reason)
                 << ", wanted " << to_string(wanted.reason));
    REQUIRE(did == wanted);
    reasons.insert(did.reason);
    const KernelStatistics statistics = kernel->statistics();
    REQUIRE(statistics.waiting_objects == model.objects_waiting());
    REQUIRE(statistics.waiting_bytes == model.waiting_bytes());
    REQUIRE(statistics.used_bytes == model.used());
    REQUIRE(statistics.disk.entries == model.disk.size());
    REQUIRE(kernel->admission_statistics(1).keys_waiting == model.keys_waiting());
  }
  for (std::uint64_t id = 0; id < keys; ++id) {
    CHECK((kernel->recall(key(id)).requests != 0) == model.knows(id));
  }
  CHECK(reasons.contains(AdmitReason::kWaits));
  CHECK(reasons.contains(AdmitReason::kKeyWaits));
  CHECK(reasons.contains(AdmitReason::kSecondRequest));
  CHECK(reasons.contains(AdmitReason::kWritesAll));
  // Nothing was reclaimed: the model knows nothing of that.
  CHECK(kernel->statistics().disk.counters.segments_reclaimed == 0);
}

}  // namespace encore::cache::test
