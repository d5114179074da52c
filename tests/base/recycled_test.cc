// What is used again holds nothing of its former life.
#include "base/recycled.h"

#include <string>
#include <utility>

#include "tests/catch.h"

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
  {
    const auto thing = make_reused<Thing>();
    thing->text = std::string(1000, 't');
    first = thing.get();
  }
  const auto again = make_reused<Thing>();
  CHECK(again->text.empty());
  if (!kRecycles) return;
  CHECK(again.get() == first);
  CHECK(again->cleared == 1);
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

}  // namespace
}  // namespace encore
