// Probation against its naive model, request for request.
#include <optional>
#include <random>
#include <string>

#include "tests/cache/probation_model.h"
#include "tests/cache/support.h"

namespace encore::cache::test {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kTraceObjects = 400;
// Enough misses for the mean to have more than its 4,096.
constexpr int kTraceRequests = 10'000;

// So many bits for so few keys that no answer is false: the model has none of those.
filter::FilterParameters exact_keys(std::uint64_t capacity) {
  return {.layout = filter::Layout::kSplit,
          .hash = filter::HashFamily::kXxh3,
          .bits = 1U << 20U,
          .hashes = filter::kSplitHashes,
          .capacity = capacity,
          .seed = kSeed};
}

class Trace {
 public:
  explicit Trace(std::uint64_t seed) : random_(seed) {
    settings.memory_bytes = 2'000 + below(30'000);
    settings.disk_bytes = 20'000 + below(200'000);
    // From a bound that is always met to one that never is.
    settings.keys = exact_keys(std::uint64_t{1} << (2 + below(10)));
    settings.fill = below(3) != 0;
    settings.wait_max = below(3) == 0 ? Nanoseconds(std::chrono::seconds(1 + below(500))) : 0ns;
    settings.rule = any_rule();
    for (std::uint64_t& size : sizes_) size = any_size();
  }

  ProbationRule any_rule() {
    static constexpr std::array kWindows{.25, .5, 1., 1.37, 2.};
    return {.window = kWindows.at(below(kWindows.size())),
            .all = below(6) == 0,
            .chance = below(4) == 0 ? .125 : 1};
  }
  struct Asked {
    std::uint64_t id = 0;
    ProbationRequest request;
  };
  Asked next() {
    now_ += std::chrono::seconds(below(3));
    // Some are popular, most are not; bursts of one object; what is popular changes.
    if (below(500) == 0) shift_ = below(kTraceObjects);
    if (below(4) != 0 || last_ == kTraceObjects) {
      const std::uint64_t rank = below(1 + below(1 + below(kTraceObjects)));
      last_ = (rank + shift_) % kTraceObjects;
    }
    if (below(300) == 0) sizes_.at(last_) = any_size();
    const bool expires = last_ % 5 == 0;
    return {.id = last_,
            .request = {.key = key(last_).hash,
                        .size_bytes = sizes_.at(last_),
                        .payload = last_,
                        .now = now_,
                        .fresh_until = expires ? now_ + std::chrono::seconds(20 + last_)
                                               : MonotonicTime::max()}};
  }
  std::uint64_t below(std::uint64_t n) { return random_() % n; }

  ProbationCacheSettings settings;

 private:
  std::uint64_t any_size() {
    switch (below(10)) {
      case 0:
        return 1 + below(settings.disk_bytes / 6);  // too large for the disk, now and then
      case 1:
        return 1 + below(settings.memory_bytes / 4);  // too large to wait, now and then
      default:
        return 1 + below(1000);
    }
  }
  std::mt19937_64 random_;
  std::array<std::uint64_t, kTraceObjects> sizes_{};
  std::uint64_t last_ = kTraceObjects;
  std::uint64_t shift_ = 0;
  MonotonicTime now_ = at(1);
};

std::string text_of(const ProbationAnswer& answer) {
  return std::to_string(static_cast<int>(answer.found)) + (answer.was_stale ? " stale " : " ") +
         std::to_string(static_cast<int>(answer.verdict));
}

// Compares the contents of memory and disk, and the order on disk.
std::string first_difference(const ProbationCache& cache, const ProbationModel& model) {
  const WaitingQueue& queue = cache.probation().queue();
  if (queue.entries() != model.memory.size()) return "entries in memory";
  if (!model.memory.empty() && queue.oldest()->key != key(model.memory.front().key).hash) {
    return "oldest entry in memory";
  }
  std::size_t n = 0;
  std::string difference;
  cache.log().each([&](const LoggedObject& object) {
    if (n >= model.disk.size()) {
      difference = "more on disk";
    } else if (const auto& d = model.disk.at(n); object.key != key(d.key).hash ||
                                                 object.size_bytes != d.size ||
                                                 object.visits != d.visits) {
      difference = "object on disk";
    }
    ++n;
  });
  if (n < model.disk.size()) return "fewer on disk";
  return difference;
}

// Empty: no difference to the last request.
std::string compare_probation(std::uint64_t seed, Defect defect, int requests) {
  Trace trace(seed);
  auto cache = ProbationCache::create(trace.settings, at(0));
  REQUIRE(cache);
  ProbationModel model(trace.settings, defect);
  for (int n = 0; n < requests; ++n) {
    if (trace.below(700) == 0) {
      model.rule = trace.any_rule();
      cache->set_rule(model.rule);
    }
    const Trace::Asked asked = trace.next();
    const std::string is = text_of(cache->request(asked.request));
    const std::string should = text_of(model.request(asked.id, asked.request));
    const VisitedLog::Counts& counts = cache->log().counts();
    const std::string at =
        "request " + std::to_string(n) + " of seed " + std::to_string(seed) + ": ";
    if (is != should) return at + is + " instead of " + should;
    if (counts.first_bytes != model.first_bytes || counts.fill_bytes != model.fill_bytes ||
        counts.moved_bytes != model.moved_bytes) {
      return at + "bytes written";
    }
    if (counts.objects_dropped != model.dropped ||
        counts.admitted_dropped != model.admitted_dropped ||
        counts.admitted_visited != model.admitted_visited) {
      return at + "objects dropped";
    }
    if (cache->probation().mean_bytes() != model.mean_bytes()) return at + "mean";
    if (n % 97 == 0 || n + 1 == requests) {
      if (const std::string other = first_difference(*cache, model); !other.empty()) {
        return at + other;
      }
    }
  }
  return {};
}

}  // namespace

TEST_CASE("probation decides as its naive model, to the last request", "[cache][probation]") {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    CHECK(compare_probation(seed, Defect::kNone, kTraceRequests) == "");
  }
}

TEST_CASE("planted defect: each is found by the comparison with the naive model",
          "[cache][probation]") {
  for (std::size_t n = 1; n < kDefects; ++n) {
    bool found = false;
    for (std::uint64_t seed = 1; seed <= 40 && !found; ++seed) {
      found = !compare_probation(seed, static_cast<Defect>(n), kTraceRequests).empty();
    }
    INFO("defect " << n);
    CHECK(found);
  }
}

}  // namespace encore::cache::test
