// Resources that are published, updated and requested by several threads concurrently.
#include <array>
#include <latch>
#include <string>
#include <thread>
#include <vector>

#include "filter/published/form.h"
#include "proxy/publish/resources.h"
#include "tests/catch.h"
#include "tests/publish/noon.h"

namespace encore::publish {
namespace {

using namespace std::chrono_literals;

constexpr WallTime kHalfPastNoon = start_of(kNoon) + 30min;
constexpr int kWriters = 3;
constexpr int kReaders = 2;
constexpr int kKeys = 300;  // keys of a writer

filter::FilterParameters writers_parameters() {
  return {.layout = filter::Layout::kClassic,
          .bits = 9'600,
          .hashes = 7,
          .capacity = kWriters * kKeys,
          .seed = {}};
}

std::string url(int writer, int i) {
  return "http://h/" + std::to_string(writer) + "/" + std::to_string(i);
}

// The second half of what a writer tells of is of the next hour.
WallTime moment(int i) { return i < kKeys / 2 ? kHalfPastNoon : kHalfPastNoon + 1h; }

std::string hour_path(Hour hour) { return "/changed/" + to_path(hour); }

struct SharedPublished {
  std::string ask(const std::string& path, WallTime now, std::string_view coding = "identity") {
    http::RequestHead head;
    head.method = http::Method::kGet;
    head.fields.add("Accept-Encoding", coding);
    const Answer answer = resources.answer(head, "", path, now);
    return answer.status == 200 ? answer.body : "";
  }

  ChangedKeys changed{
      HourlyFilters::create({.keep = 48, .filter = writers_parameters()}, kHalfPastNoon).value()};
  std::unique_ptr<ResidentKeys> resident = ResidentKeys::create(writers_parameters()).value();
  Resources resources{{.changed = &changed, .resident = resident.get()}};
};

void write(SharedPublished& published, int writer) {
  for (int i = 0; i < kKeys; ++i) {
    published.changed.note(url(writer, i), moment(i));
    published.resident->add(url(writer, i));
    if (i % 2 == 0) published.resident->remove(url(writer, i));
  }
}

// How many answers were none.
int read(SharedPublished& published) {
  int missing = 0;
  for (int i = 0; i < kKeys / 4; ++i) {
    for (const char* path : {"/links", "/resident", "/resident.json", "/resident.digest"}) {
      missing += published.ask(path, kHalfPastNoon + std::chrono::seconds(i)).empty() ? 1 : 0;
    }
    missing += published.ask(hour_path(kNoon) + ".enc", kHalfPastNoon, "zstd").empty() ? 1 : 0;
    missing += published.ask(hour_path(kNoon) + ".json", kHalfPastNoon, "gzip").empty() ? 1 : 0;
    missing += published.changed.save(kHalfPastNoon).empty() ? 1 : 0;
  }
  return missing;
}

}  // namespace

TEST_CASE("Several threads tell of what happens while others ask for it", "[publish][concurrent]") {
  SharedPublished published;
  std::latch ready(kWriters + kReaders);
  std::array<int, kReaders> missing{};
  {
    std::vector<std::jthread> threads;
    for (int writer = 0; writer < kWriters; ++writer) {
      threads.emplace_back([&, writer] {
        ready.arrive_and_wait();
        write(published, writer);
      });
    }
    for (int& of_one : missing) {
      threads.emplace_back([&] {
        ready.arrive_and_wait();
        of_one = read(published);
      });
    }
  }
  CHECK(missing == std::array<int, kReaders>{});
  const WallTime now = kHalfPastNoon + 2h;
  const auto form_of = [&](const std::string& path) {
    auto filter = filter::read_form(published.ask(path, now), filter::Form::kEncore, {});
    REQUIRE(filter);
    return std::move(*filter);
  };
  const filter::AnyFilter noon = form_of(hour_path(kNoon));
  const filter::AnyFilter next = form_of(hour_path(after(kNoon)));
  const filter::AnyFilter resident = form_of("/resident");
  int lost = 0;
  for (int writer = 0; writer < kWriters; ++writer) {
    for (int i = 0; i < kKeys; ++i) {
      // A late thread finds that the hour is over.
      lost += noon.test(url(writer, i)) || next.test(url(writer, i)) ? 0 : 1;
      if (i >= kKeys / 2) lost += next.test(url(writer, i)) ? 0 : 1;
      if (i % 2 == 1) lost += resident.test(url(writer, i)) ? 0 : 1;
    }
  }
  CHECK(lost == 0);
  const ResidentKeys::Counts counts = published.resident->counts();
  CHECK(counts.stored == kWriters * kKeys / 2);
  CHECK(counts.removals == kWriters * kKeys / 2);
  CHECK(published.changed.with([](HourlyFilters& hours) {
    std::uint64_t events = 0;
    for (const auto& [hour, record] : hours.hours()) events += record.events;
    return events;
  }) == kWriters * kKeys);
}

}  // namespace encore::publish
