// Parts of a whole: which are joined, and how the rest of one is asked for.
#include "proxy/origin/parts.h"

#include <string>

#include "tests/catch.h"
#include "tests/origin/world.h"

namespace encore::server {
namespace {

// Bytes `begin` to `last` of a representation of so many.
struct Part {
  std::size_t begin;
  std::size_t last;
  const char* body;
  const char* etag = "\"v1\"";
  std::size_t total = 10;

  std::string range() const { return std::to_string(begin) + "-" + std::to_string(last); }
  std::string response() const {
    return "HTTP/1.1 206 Partial Content\r\nCache-Control: max-age=60\r\nETag: " +
           std::string(etag) + "\r\nContent-Range: bytes " + range() + "/" + std::to_string(total) +
           "\r\nContent-Length: " + std::to_string(last - begin + 1) + "\r\n\r\n" + body;
  }
};

std::string ask_for(const Part& part) {
  return "GET /a HTTP/1.1\r\nHost: h\r\nRange: bytes=" + part.range() + "\r\n\r\n";
}

const std::string kAskWhole = "GET /a HTTP/1.1\r\nHost: h\r\n\r\n";

// Has it asked for and passed on.
void bring(World& world, Origin& origin, const Part& part) {
  FetchReader reader(world, world.request(ask_for(part)), FetchPlan{});
  world.run_until_asked(origin);
  origin.say(part.response());
  world.run_until(origin, [&] { return reader.is_done(); });
  REQUIRE(reader.body == part.body);
}

struct Stored {
  int status = 0;
  std::string range;  // Content-Range's value; empty: none
  std::string length;
  std::string body;
  friend bool operator==(const Stored&, const Stored&) = default;
  friend std::ostream& operator<<(std::ostream& out, const Stored& s) {
    return out << s.status << ' ' << s.range << " (" << s.length << ") " << s.body;
  }
};
std::string field_of(std::string_view head, std::string_view name) {
  const auto at = head.find("\r\n" + std::string(name) + ": ");
  if (at == std::string_view::npos) return {};
  const std::size_t from = at + name.size() + 4;
  return std::string(head.substr(from, head.find("\r\n", from) - from));
}
Stored stored_in(World& world) {
  const store::ObjectRef object = world.stored(*world.request(kAskWhole));
  if (!object) return {};
  const std::string_view head = stored_head_of(*object);
  Stored found{.status = meta_of(*object).http.status,
               .range = field_of(head, "Content-Range"),
               .length = field_of(head, "Content-Length"),
               .body = std::string(object->inline_body())};
  CHECK(meta_of(*object).http.is(http::StoredMeta::kPartial) == (found.status == 206));
  return found;
}

TEST_CASE("a part is joined with the one that is stored, where they are of one whole",
          "[origin][parts]") {
  struct Row {
    Part first;
    Part second;
    Stored stored;
  };
  const Stored whole{200, "", "10", "0123456789"};
  const Stored second_half{206, "bytes 5-9/10", "5", "56789"};
  const Row row = GENERATE_COPY(values<Row>({
      {{0, 4, "01234"}, {5, 9, "56789"}, whole},
      {{5, 9, "56789"}, {0, 4, "01234"}, whole},
      // Bytes that both have are the newer one's.
      {{0, 5, "012345"}, {3, 9, "DEFGHIJ"}, {200, "", "10", "012DEFGHIJ"}},
      {{3, 9, "3456789"}, {0, 5, "ABCDEF"}, {200, "", "10", "ABCDEF6789"}},
      {{2, 6, "23456"}, {3, 4, "DE"}, {206, "bytes 2-6/10", "5", "2DE56"}},
      {{3, 4, "34"}, {2, 6, "CDEFG"}, {206, "bytes 2-6/10", "5", "CDEFG"}},
      {{1, 2, "12"}, {3, 4, "34"}, {206, "bytes 1-4/10", "4", "1234"}},
      // A gap, another version, another length, and what is not the same to the byte.
      {{0, 2, "012"}, {5, 9, "56789"}, second_half},
      {{0, 4, "01234", "\"v0\""}, {5, 9, "56789"}, second_half},
      {{0, 4, "01234", "\"v1\"", 20}, {5, 9, "56789"}, second_half},
      {{0, 4, "01234", "W/\"v1\""},
       {5, 9, "56789", "W/\"v1\""},
       {206, "bytes 5-9/10", "5", "56789"}},
  }));
  CAPTURE(row.first.range(), row.first.etag, row.second.range());
  Origin origin;
  World world({origin.url()});
  bring(world, origin, row.first);
  CHECK(stored_in(world).body == row.first.body);
  bring(world, origin, row.second);
  CHECK(stored_in(world) == row.stored);
  CHECK(world.kernel->statistics().reserved_bytes == 0);
}

TEST_CASE("a part takes no fresh whole's place", "[origin][parts]") {
  Origin origin;
  World world({origin.url()});
  FetchPlan plan;
  plan.whole = true;
  FetchReader reader(world, world.request(kAskWhole), std::move(plan));
  world.run_until_asked(origin);
  origin.say(
      "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nETag: \"v1\"\r\nContent-Length: 10\r\n\r\n"
      "0123456789");
  world.run_until(origin, [&] { return reader.is_done(); });
  bring(world, origin, {2, 3, "CD", "\"v2\""});
  CHECK(stored_in(world) == Stored{200, "", "10", "0123456789"});
  CHECK(world.kernel->statistics().reserved_bytes == 0);
}

TEST_CASE("what comes from a private address stays so when it is joined", "[origin][parts]") {
  Origin origin;
  World world({origin.url()});
  bring(world, origin, {0, 4, "01234"});
  const auto request = world.request(kAskWhole);
  const store::ObjectRef part = world.stored(*request);
  REQUIRE(part);
  // As it would have been stored, had a client chosen where it came from.
  ObjectMeta meta = meta_of(*part);
  meta.http.flags |= http::StoredMeta::kPrivateOrigin;
  auto marked = world.store->with_head(
      part, {.key = part->key(), .meta = std::as_bytes(std::span(&meta, 1)), .head = part->head()});
  REQUIRE(marked.has_value());
  REQUIRE(world.kernel->freshen({request->hash, request->key},
                                {.variant = meta.variant,
                                 .charge_bytes = (*marked)->charge(),
                                 .payload = marked->payload()},
                                world.loop->now()) == cache::FreshenOutcome::kFreshened);
  (void)marked->detach();
  bring(world, origin, {5, 9, "56789"});
  CHECK(stored_in(world).status == 200);
  CHECK(meta_of(*world.stored(*request)).http.is(http::StoredMeta::kPrivateOrigin));
}

TEST_CASE("only a beginning that its tag proves the same to the byte is completed",
          "[origin][parts]") {
  const auto [part, may] = GENERATE(table<Part, bool>({
      {{0, 4, "01234"}, true},
      {{1, 4, "1234"}, false},
      {{0, 4, "01234", "W/\"v1\""}, false},
  }));
  CAPTURE(part.range(), part.etag);
  Origin origin;
  World world({origin.url()});
  bring(world, origin, part);
  const store::ObjectRef stored = world.stored(*world.request(kAskWhole));
  REQUIRE(stored);
  CHECK(may_complete(*stored, 1000) == may);
}

TEST_CASE("the rest of a stored beginning is asked for, and makes the whole", "[origin][parts]") {
  Origin origin;
  World world({origin.url()});
  bring(world, origin, {0, 4, "01234"});
  const auto request = world.request(kAskWhole);
  FetchPlan plan;
  plan.whole = true;
  plan.completes = world.stored(*request);
  REQUIRE(plan.completes);
  REQUIRE(may_complete(*plan.completes, 5));
  CHECK_FALSE(may_complete(*plan.completes, 4));
  FetchReader reader(world, request, std::move(plan));
  world.run_until_asked(origin);
  CHECK(origin.asked.find("Range: bytes=5-\r\nIf-Range: \"v1\"\r\n") != std::string::npos);
  const std::string whole =
      "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nETag: \"v2\"\r\nContent-Length: "
      "3\r\n\r\nnew";
  SECTION("it comes") {
    origin.say(Part{5, 9, "56789"}.response());
    world.run_until(origin, [&] { return reader.is_done(); });
    CHECK(reader.body == "0123456789");
    CHECK(reader.head.starts_with("HTTP/1.1 200 OK\r\n"));
    CHECK(reader.head.find("Content-Range") == std::string::npos);
    CHECK(stored_in(world) == Stored{200, "", "10", "0123456789"});
  }
  SECTION("it is another by now") {
    origin.say(whole);
    world.run_until(origin, [&] { return reader.is_done(); });
    CHECK(reader.body == "new");
    CHECK(stored_in(world) == Stored{200, "", "3", "new"});
  }
  SECTION("what comes is not that rest") {
    const Part wrong = GENERATE(values<Part>({{4, 9, "456789"},
                                              {6, 9, "6789"},
                                              {5, 8, "5678"},
                                              {5, 9, "56789", "\"v2\""},
                                              {5, 10, "56789a", "\"v1\"", 11}}));
    CAPTURE(wrong.range(), wrong.etag);
    world.wastes_bytes = true;
    origin.say(wrong.response());
    // It is asked again, for all of it.
    world.run_until(origin, [&] {
      return reader.is_done() || origin.asked.find("\r\n\r\n") != std::string::npos;
    });
    REQUIRE_FALSE(reader.is_done());
    CHECK(origin.asked.find("Range") == std::string::npos);
    origin.say(whole);
    world.run_until(origin, [&] { return reader.is_done(); });
    CHECK(reader.body == "new");
  }
  CHECK(world.kernel->statistics().reserved_bytes == 0);
}

}  // namespace
}  // namespace encore::server
