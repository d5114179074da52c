// Loads bytes as a saved filter, once as they are and once with the checksum made right, so that
// everything behind it is reached. A filter that loads must answer, rotate, save and load again.
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "base/check.h"
#include "filter/any_filter.h"
#include "filter/rotating_bloom_filter.h"
#include "filter/saved_filter.h"

namespace {

using encore::MonotonicTime;
using namespace encore::filter;

void load_ring(std::string_view bytes) {
  const MonotonicTime now{std::chrono::hours(1)};
  auto filter = RotatingBloomFilter::load(
      bytes, {.shadow_one_in = 256, .bits_max = std::uint64_t{1} << 24U}, now);
  if (!filter) {
    return;
  }
  const RotatingStatistics statistics = filter->statistics();
  ENCORE_CHECK(statistics.fpr_bits >= 0 && statistics.fpr_bits <= 1, "an FPR from bits");
  const HashedKey key = identify(filter->options().identity_seed, bytes.substr(0, 40));
  filter->test_and_set(key, now);
  ENCORE_CHECK(filter->test(key), "what was set is there");
  filter->rotate(now);
  ENCORE_CHECK(RotatingBloomFilter::load(filter->save(now), {}, now).has_value(),
               "what was saved loads");
}

// Every kind but a ring.
void load_any(std::string_view bytes) {
  auto filter = AnyFilter::load(bytes);
  if (!filter) {
    return;
  }
  const std::string saved = filter->save();
  const auto again = AnyFilter::load(saved);
  ENCORE_CHECK(again.has_value() && again->save() == saved, "what was saved loads, unchanged");
  const AnyFilterInfo info = filter->info();
  ENCORE_CHECK(info.fpr_now >= 0 && info.fpr_now <= 1, "an FPR from bits");
  const std::string_view key = bytes.substr(0, 40);
  filter->add(key);
  ENCORE_CHECK(filter->test(key), "what was added is there");
  bool answer = false;
  filter->test({&key, 1}, {&answer, 1});
  ENCORE_CHECK(answer, "in a batch as well");
  static_cast<void>(filter->unite(*again));
  static_cast<void>(filter->intersect(*again));
  static_cast<void>(filter->remove(key));
  static_cast<void>(filter->to_plain());
  ENCORE_CHECK(AnyFilter::load(filter->save()).has_value(), "what was changed and saved loads");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  load_ring(bytes);
  load_any(bytes);
  if (size >= 8) {
    std::string sealed(bytes);
    const std::uint64_t checksum = saved_checksum(sealed);
    std::memcpy(sealed.data() + size - 8, &checksum, 8);
    load_ring(sealed);
    load_any(sealed);
  }
  return 0;
}
