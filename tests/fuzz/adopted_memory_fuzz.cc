// Reads bytes as another cache's admission memory, once as they are and once with all checksums
// made right, so that everything behind them is reached. A memory that can be adopted must answer,
// in a ring of ours and out of it, until it has left.
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>

#include "base/check.h"
#include "cache/saved_admission.h"
#include "filter/rotating_bloom_filter.h"
#include "filter/saved_filter.h"

namespace {

using namespace encore;

constexpr std::size_t kSumBytes = 8;
// Head of a saved admission memory: magic, version, number of shards, seed.
constexpr std::size_t kHeadBytes = 32;

void put(std::string& text, std::size_t at, std::uint64_t sum) {
  std::memcpy(text.data() + at, &sum, kSumBytes);
}

// With each shard's checksum made right as far as the lengths go, and then the whole one's.
std::string sealed(std::string text) {
  const std::size_t end = text.size() - kSumBytes;
  for (std::size_t at = kHeadBytes; at + kSumBytes <= end;) {
    std::uint64_t size = 0;
    std::memcpy(&size, text.data() + at, sizeof size);
    at += sizeof size;
    if (size > end - at) break;
    if (size >= kSumBytes) {
      put(text, at + size - kSumBytes,
          filter::saved_checksum(std::string_view(text).substr(at, size)));
    }
    at += size;
  }
  put(text, end, cache::state_checksum(std::string_view(text).substr(0, end)));
  return text;
}

void adopt(std::string_view bytes) {
  const auto adoptable = cache::read_adoptable(bytes);
  if (!adoptable) return;
  const filter::AdoptedMemory& memory = *adoptable->memory;
  ENCORE_CHECK(memory.generations() >= 2 && memory.sums().size() == memory.generations(),
               "a memory has generations");
  for (std::uint32_t i = 0; i <= memory.generations(); ++i) {
    const auto fpr = memory.fpr(i);
    ENCORE_CHECK(fpr.theory >= 0 && fpr.theory <= 1 && fpr.bits >= 0 && fpr.bits <= 1,
                 "rates are rates");
  }
  const MonotonicTime now{std::chrono::hours(1)};
  filter::RotatingOptions options{};
  options.parameters.bits = 4096;
  options.parameters.capacity = 100;
  auto ring = filter::RotatingBloomFilter::create(options, now);
  ENCORE_CHECK(ring.has_value(), "a small ring can be made");
  const auto taken = ring->adopt(adoptable->memory);
  if (!taken) return;
  ENCORE_CHECK(*taken <= memory.generations(), "no more are taken than there are");
  const filter::Seed ours{1, 2};
  const filter::HashedKey key = filter::identify(ours, bytes.substr(0, 40));
  const bool known = memory.test(key, *taken);
  ENCORE_CHECK(!known || ring->test(key), "the ring knows what it has adopted");
  for (int i = 0; i < 3; ++i) ring->rotate(now);
  ENCORE_CHECK(!ring->test(key), "what was adopted leaves");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  adopt(bytes);
  if (size >= kSumBytes) adopt(sealed(std::string(bytes)));
  return 0;
}
