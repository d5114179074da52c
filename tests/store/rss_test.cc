// The memory that the system spends on 200,000 stored objects of 1 KiB. Hidden: run it as
// `store_test "[.rss]"`; figures of the process's own accounting, so nothing else may run in it.
#include <unistd.h>

#include <fstream>
#include <iostream>

#include "tests/store/store_fixture.h"

namespace encore::store {

namespace {

std::uint64_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  std::uint64_t total = 0;
  std::uint64_t resident = 0;
  file >> total >> resident;
  return resident * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

}  // namespace

TEST_CASE("200,000 objects of 1 KiB cost at most 1,636 bytes each beside the kernel's 64",
          "[.rss]") {
  constexpr std::size_t kObjects = 200'000;
  const auto store = memory_store(kGiB);
  std::vector<ObjectRef> objects;
  objects.resize(kObjects);
  const std::string head(250, 'h');
  const std::string body(1024, 'b');
  const std::string meta(112, 'm');
  const iovec part = part_of(body);
  const std::uint64_t before = resident_bytes();
  for (std::size_t i = 0; i < kObjects; ++i) {
    const std::string key = "f http://www.example.com/path/object/" + std::to_string(1'000'000 + i);
    auto object = store->make_small({key, bytes_of(meta), head}, {&part, 1});
    REQUIRE(object);
    objects[i] = std::move(*object);
  }
  const std::uint64_t each = (resident_bytes() - before) / kObjects;
  std::cout << "resident bytes an object: " << each << ", charged: " << objects[0]->charge()
            << ", held: " << store->stats().held_bytes / kObjects << '\n';
  CHECK(each <= 1'636);
}

TEST_CASE("resident memory follows what the store says it holds", "[.rss]") {
  constexpr std::uint64_t kBudget = 512 * kMiB;
  const auto store = memory_store(4 * kBudget);
  std::vector<ObjectRef> objects;
  const std::uint64_t before = resident_bytes();
  std::uint64_t number = 0;
  for (const std::size_t size : {1'000U, 100'000U, 30'000U, 1'000'000U, 5'000U, 1'000U}) {
    const std::string body = pattern(size, size);
    while (store->stats().live_bytes < kBudget * 3 / 4) {
      auto writer = store->reserve({"key", std::nullopt, {}});
      REQUIRE(writer);
      REQUIRE((*writer)->body()->append(bytes_of(body)) == size);
      (*writer)->body()->complete();
      auto object = (*writer)->commit({"key", {}, "head"});
      REQUIRE(object);
      objects.push_back(std::move(*object));
    }
    const auto resident = static_cast<double>(resident_bytes() - before);
    const auto held = static_cast<double>(store->stats().held_bytes);
    std::cout << size << " bytes each: held " << held / 1e6 << " MB, resident " << resident / 1e6
              << " MB\n";
    CHECK(resident <= held + 8e6);
    std::erase_if(objects, [&](const ObjectRef&) { return ++number % 7 != 0; });
  }
}

}  // namespace encore::store
