#include "tests/simulate/byte_queue.h"

#include "tests/catch.h"

#include <string>
#include <vector>

#include "tests/fuzz/proxy/random.h"

namespace encore::simulate {
namespace {

std::string seen(const ByteQueue& queue) {
  std::string out(queue.size(), '\0');
  queue.peek(out.data(), out.size());
  return out;
}

}  // namespace

TEST_CASE("A queue of bytes is a string at both ends, whatever blocks it lies in", "[simulate]") {
  BytePool pool;
  ByteQueue queue(pool);
  ByteQueue beside(pool);  // takes blocks in between
  std::string expected;
  std::string expected_beside;
  proxyfuzz::Random random(11);
  for (int i = 0; i < 3000; ++i) {
    INFO("step " << i);
    // Often as long as blocks are.
    std::string more(random.pick({random.below(200), random.below(30000), 8192UL, 16384UL}), '\0');
    for (char& c : more) c = static_cast<char>(random.next());
    switch (random.below(5)) {
      case 0:
        queue.push(more.data(), more.size());
        expected += more;
        break;
      case 1:
        beside.push(more.data(), more.size());
        expected_beside += more;
        break;
      case 2: {
        const std::size_t size = random.percent(20) ? queue.size() : random.below(queue.size() + 1);
        std::string taken(size, '\0');
        queue.pop(taken.data(), size);
        REQUIRE(taken == expected.substr(0, size));
        expected.erase(0, size);
        break;
      }
      case 3: {
        const std::size_t part = random.percent(50) ? 8192 : random.below(queue.size() + 1);
        const std::size_t size = std::min(part, queue.size());
        queue.drop_back(size);
        expected.resize(expected.size() - size);
        break;
      }
      default:
        if (random.percent(10)) {
          beside.clear();
          expected_beside.clear();
        }
    }
    REQUIRE(seen(queue) == expected);
    REQUIRE(seen(beside) == expected_beside);
  }
}

}  // namespace encore::simulate
