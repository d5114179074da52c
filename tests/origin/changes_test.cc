// Answers of an origin that count as a change.
#include "proxy/origin/changes.h"

#include <string>
#include <vector>

#include "proxy/publish/changed_keys.h"
#include "tests/catch.h"
#include "tests/origin/world.h"

namespace encore::server {
namespace {

const std::string kGetPage = "GET /a HTTP/1.1\r\nHost: h\r\n\r\n";

publish::ChangedKeys few_keys() {
  publish::HourlyFilters::Options options;
  options.filter.layout = filter::Layout::kClassic;
  options.filter.bits = 100'000;
  options.filter.hashes = 7;
  options.filter.capacity = 10'000;
  auto hours = publish::HourlyFilters::create(options, wall_now());
  REQUIRE(hours);
  return publish::ChangedKeys(std::move(*hours));
}

class ChangingWorld {
 public:
  ChangingWorld() : world({origin.url()}) { world.services->changed = &changed; }

  // Asks, with the stored object to be validated, and has the origin answer.
  void exchange(const std::string& request, const std::string& response) {
    FetchPlan plan;
    plan.whole = true;
    if (request == kGetPage) plan.stored = world.stored(*world.request(request));
    FetchReader asker(world, world.request(request), plan);
    world.run_until_asked(origin);
    origin.say(response);
    world.run_until(origin, [&] { return asker.is_done(); });
  }
  std::uint64_t events() {
    return changed.with([](publish::HourlyFilters& hours) {
      std::uint64_t sum = 0;
      for (const auto& [hour, record] : hours.hours()) sum += record.events;
      return sum;
    });
  }
  bool has(std::string_view url) {
    return changed.with([&](publish::HourlyFilters& hours) {
      bool any = false;
      for (const auto& [hour, record] : hours.hours()) {
        any = any || (record.filter && record.filter->test(url));
      }
      return any;
    });
  }

  Origin origin;
  publish::ChangedKeys changed = few_keys();
  World world;
};

std::string response(const std::string& fields, const std::string& status = "200 OK") {
  return "HTTP/1.1 " + status + "\r\nCache-Control: max-age=60\r\n" + fields +
         "Content-Length: 0\r\n\r\n";
}

const std::string kDate1 = "Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT\r\n";
const std::string kDate2 = "Last-Modified: Sun, 06 Nov 1994 08:49:38 GMT\r\n";

}  // namespace

TEST_CASE("a response with another validator than the stored one's is a change",
          "[origin][changes]") {
  struct Row {
    std::string stored;
    std::string comes;
    std::string status;
    bool changes;
  };
  const std::vector<Row> rows = {
      {"ETag: \"1\"\r\n", "ETag: \"2\"\r\n", "200 OK", true},
      {"ETag: \"1\"\r\n", "ETag: \"1\"\r\n", "200 OK", false},
      {"ETag: \"1\"\r\n", "ETag: W/\"1\"\r\n", "200 OK", false},
      {"ETag: \"1\"\r\n" + kDate1, "ETag: \"1\"\r\n" + kDate2, "200 OK", false},
      {"ETag: \"1\"\r\n" + kDate1, "ETag: \"2\"\r\n" + kDate1, "200 OK", true},
      {"ETag: \"1\"\r\n" + kDate1, kDate1, "200 OK", false},
      {"ETag: \"1\"\r\n" + kDate1, kDate2, "200 OK", true},
      {kDate1, kDate1, "200 OK", false},
      {kDate1, kDate2, "200 OK", true},
      {kDate1, "", "200 OK", true},
      {"ETag: \"1\"\r\n", "", "200 OK", true},
      // Nobody can tell.
      {"", "", "200 OK", true},
      {"ETag: \"1\"\r\n", "ETag: \"1\"\r\n", "304 Not Modified", false},
      {"ETag: \"1\"\r\n", "", "404 Not Found", true},
      {"ETag: \"1\"\r\n", "", "503 Service Unavailable", false},
  };
  for (const Row& row : rows) {
    INFO(row.stored << " " << row.status << " " << row.comes);
    ChangingWorld it;
    it.exchange(kGetPage, response(row.stored));
    CHECK(it.events() == 0);  // it is the first
    it.exchange(kGetPage, response(row.comes, row.status));
    CHECK(it.events() == (row.changes ? 1 : 0));
    CHECK(it.has("http://h/a") == row.changes);
  }
}

TEST_CASE("a response that is not stored outdates one all the same", "[origin][changes]") {
  ChangingWorld it;
  it.exchange(kGetPage, response("ETag: \"1\"\r\n"));
  it.exchange(kGetPage,
              "HTTP/1.1 200 OK\r\nCache-Control: no-store\r\nETag: \"2\"\r\n"
              "Content-Length: 0\r\n\r\n");
  CHECK(it.has("http://h/a"));
}

TEST_CASE("an unsafe method that succeeds changes its target and what it names",
          "[origin][changes]") {
  for (const char* method : {"POST", "PUT", "DELETE", "PATCH", "FROB"}) {
    ChangingWorld it;
    it.exchange(method + std::string(" /a HTTP/1.1\r\nHost: h\r\n\r\n"),
                "HTTP/1.1 201 Created\r\nLocation: /b\r\nContent-Location: http://other/c\r\n"
                "Content-Length: 0\r\n\r\n");
    CHECK(it.has("http://h/a"));
    CHECK(it.has("http://h/b"));
    CHECK_FALSE(it.has("http://other/c"));
    CHECK(it.events() == 2);
  }
  for (const char* status : {"404 Not Found", "500 Internal Server Error"}) {
    ChangingWorld it;
    it.exchange("POST /a HTTP/1.1\r\nHost: h\r\n\r\n", response("", status));
    CHECK(it.events() == 0);
  }
  ChangingWorld it;
  it.exchange("OPTIONS /a HTTP/1.1\r\nHost: h\r\n\r\n", response(""));
  CHECK(it.events() == 0);
}

}  // namespace encore::server
