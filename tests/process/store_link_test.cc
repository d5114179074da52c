// That the kernel finds what the store has moved, and the store takes back what the kernel lets go.
#include "proxy/process/store_link.h"

#include <string>
#include <vector>

#include "tests/catch.h"
#include "tests/process/filled_cache.h"

namespace encore::server {
namespace {

class Find final : public cache::Selector {
 public:
  bool matches(cache::Payload payload) override {
    found = store::ObjectRef::share(payload);
    return true;
  }
  store::ObjectRef found;
};

store::ObjectRef find(FilledCache& cache, std::uint64_t n) {
  const std::string text = FilledCache::key_text(n);
  Find found;
  (void)cache.shared.kernel->lookup(cache.key(text), MonotonicTime{}, found);
  return std::move(found.found);
}

TEST_CASE("what the kernel lets go of, the store has back", "[process][link]") {
  FilledCache cache(100);
  CHECK(cache.shared.store->stats().objects == 100);
  for (std::uint64_t n = 0; n < 100; n += 2) {
    const std::string text = FilledCache::key_text(n);
    CHECK(cache.shared.kernel->invalidate(cache.key(text), MonotonicTime{}) == 1);
  }
  CHECK(cache.shared.store->stats().objects == 50);
}

TEST_CASE("an object that is moved is found at its new place, and the old one goes",
          "[process][link]") {
  // Enough that holes between them are worth closing.
  constexpr std::uint64_t kLinkedObjects = 20'000;
  FilledCache cache(kLinkedObjects);
  std::vector<std::uint64_t> left;
  for (std::uint64_t n = 0; n < kLinkedObjects; ++n) {
    const std::string text = FilledCache::key_text(n);
    if (n % 10 == 3) {
      left.push_back(n);
    } else {
      (void)cache.shared.kernel->invalidate(cache.key(text), MonotonicTime{});
    }
  }
  for (int i = 0; i < 1000; ++i) (void)cache.shared.store->maintain(100);
  const store::StoreStats stats = cache.shared.store->stats();
  CHECK(stats.moved_objects > 0);
  CHECK(stats.objects == left.size());
  for (const std::uint64_t n : left) {
    const store::ObjectRef object = find(cache, n);
    REQUIRE(object);
    REQUIRE(primary_key_of(*object) == FilledCache::key_text(n));
  }
}

TEST_CASE("what is not the kernel's is not put in its place", "[process][link]") {
  FilledCache cache(10);
  StoreLink link(*cache.shared.store, cache.shared.identity_seed);
  const std::string text = FilledCache::key_text(3);
  const store::ObjectRef own = find(cache, 3);
  const store::ObjectRef other = make_object(*cache.shared.store, {.key = text});
  // Not before there is a kernel.
  CHECK_FALSE(link.replace(text, own.payload(), other.payload()));
  link.connect(cache.shared.kernel.get());
  CHECK_FALSE(link.replace(text, other.payload(), own.payload()));
  CHECK(find(cache, 3).payload() == own.payload());
}

}  // namespace
}  // namespace encore::server
