// Reused memory holds nothing of its former life.
#include "base/recycled.h"

#include <cstdlib>
#include <string>
#include <utility>

#include "tests/catch.h"
#include "tests/panic_report.h"

namespace encore {
namespace {

struct Thing {
  std::string text;
  int cleared = 0;
  void clear() {
    text.clear();
    ++cleared;
  }
};

TEST_CASE("an object that is used again was cleared, and keeps its room", "[base][recycled]") {
  const Thing* first = nullptr;
  int cleared = 0;  // before: another test may have used it
  {
    const auto thing = make_reused<Thing>();
    thing->text = std::string(1000, 't');
    first = thing.get();
    cleared = thing->cleared;
  }
  const auto again = make_reused<Thing>();
  CHECK(again->text.empty());
  CHECK(again.get() == first);
  CHECK(again->cleared == cleared + 1);
  CHECK(again->text.capacity() >= 1000);
}

TEST_CASE("texts come back empty, and none that is too large is kept", "[base][recycled]") {
  std::string large(2 * kReusedTextMax, 'x');
  give_text(std::move(large));
  give_text(std::string(100, 'y'));
  for (int i = 0; i < 3; ++i) {
    const std::string text = take_text();
    CHECK(text.empty());
    CHECK(text.capacity() <= kReusedTextMax);
  }
}

TEST_CASE("memory is used again, whichever way it came", "[base][recycled]") {
  void* const first = RecycledMemory<Thing>::take();
  RecycledMemory<Thing>::give(first);
  void* const again = RecycledMemory<Thing>::take();
  CHECK(again == first);
  RecycledMemory<Thing>::give(again);
  give_text(std::string(100, 'y'));
  const std::string text = take_text();
  CHECK(text.capacity() >= 100);
}

#if defined(ENCORE_ADDRESS_SANITIZER)

bool is_poisoned(const void* address) { return __asan_address_is_poisoned(address) == 1; }

TEST_CASE("whoever uses what waits to be used again is reported", "[base][recycled]") {
  const Thing* object = nullptr;
  {
    const auto thing = make_reused<Thing>();
    object = thing.get();
    CHECK_FALSE(is_poisoned(object));
  }
  CHECK(is_poisoned(&object->text));
  CHECK(is_poisoned(&object->cleared));
  const auto again = make_reused<Thing>();
  CHECK(again.get() == object);
  CHECK_FALSE(is_poisoned(&object->cleared));

  auto shared = make_recycled<Thing>();
  const Thing* const in_shared = shared.get();
  shared.reset();
  CHECK(is_poisoned(&in_shared->cleared));

  std::string given(100, 'y');
  const char* const room = given.data();
  give_text(std::move(given));
  CHECK(is_poisoned(room));
  const std::string text = take_text();
  CHECK(text.data() == room);
  CHECK_FALSE(is_poisoned(room));
}

// A Fetch, a stream: what is derived from it and deleted.
struct Derived final : Recycled<Derived> {
  int value = 7;
};

TEST_CASE("a use after the end is a report, and the process dies", "[base][recycled]") {
  const std::string report = report_of([] {
    __sanitizer_set_death_callback([] { std::abort(); });
    auto* const object = new Derived;
    delete object;
    std::_Exit(static_cast<const volatile Derived*>(object)->value);
  });
  CHECK(report.find("use-after-poison") != std::string::npos);
}

#endif

}  // namespace
}  // namespace encore
