// Records that operators follow: in their order, bounded, and what was missed is counted.
#include "proxy/observe/request_tap.h"

#include <string>
#include <thread>
#include <vector>

#include "tests/catch.h"

namespace encore::server {
namespace {

TEST_CASE("records are taken in their order, from any number on", "[observe][tap]") {
  RequestTap tap;
  CHECK(tap.next() == 0);
  CHECK(tap.take(0, 10).lines.empty());
  for (const char* const line : {"a\n", "b\n", "c\n"}) tap.add(line);
  CHECK(tap.take(0, 10).lines == std::vector<std::string>{"a", "b", "c"});
  CHECK(tap.take(0, 10).next == 3);
  const RequestTap::RecordBatch some = tap.take(1, 1);
  CHECK(some.lines == std::vector<std::string>{"b"});
  CHECK(some.next == 2);
  CHECK(some.dropped == 0);
  CHECK(tap.take(3, 10).lines.empty());
  // A number of another process.
  const RequestTap::RecordBatch later = tap.take(1000, 10);
  CHECK(later.lines.empty());
  CHECK(later.next == 3);
}

TEST_CASE("memory is bounded, and what was not fetched is counted", "[observe][tap]") {
  RequestTap tap;
  constexpr std::size_t kLine = 1000;
  constexpr std::size_t kKept = RequestTap::kBytesMax / (kLine + RequestTap::kRecordBytes);
  for (std::size_t i = 0; i < kKept; ++i) tap.add(std::string(kLine, 'a') + "\n");
  CHECK(tap.take(0, 100000).dropped == 0);
  CHECK(tap.take(0, 100000).lines.size() == kKept);
  tap.add(std::string(kLine, 'b') + "\n");
  const RequestTap::RecordBatch taken = tap.take(0, 100000);
  CHECK(taken.dropped == 1);
  CHECK(taken.lines.size() == kKept);
  CHECK(taken.lines.back().front() == 'b');
  CHECK(taken.next == kKept + 1);
  // A record beyond the bound drops all before it, and itself.
  tap.add(std::string(RequestTap::kBytesMax, 'c'));
  CHECK(tap.take(0, 100000).lines.empty());
  CHECK(tap.take(0, 100000).dropped == kKept + 2);
}

TEST_CASE("several threads add, one takes", "[observe][tap][concurrent]") {
  RequestTap tap;
  constexpr int kEach = 1000;
  {
    std::vector<std::jthread> workers;
    for (int i = 0; i < 3; ++i) {
      workers.emplace_back([&tap] {
        for (int j = 0; j < kEach; ++j) tap.add("x\n");
      });
    }
  }
  std::uint64_t from = 0;
  std::size_t seen = 0;
  while (from != tap.next()) {
    const RequestTap::RecordBatch taken = tap.take(from, 100);
    seen += taken.lines.size();
    from = taken.next;
  }
  CHECK(seen == std::size_t{3} * kEach);
}

}  // namespace
}  // namespace encore::server
