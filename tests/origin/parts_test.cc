// Parts of a whole: which are joined, and how the rest of one is asked for.
#include "proxy/origin/parts.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

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

// For the rest of the stored part, which makes the whole.
FetchPlan completing(World& world, const RequestContext& request) {
  FetchPlan plan;
  plan.whole = true;
  plan.completes = world.stored(request);
  REQUIRE(plan.completes);
  return plan;
}

TEST_CASE("the rest of a stored beginning is asked for, and makes the whole", "[origin][parts]") {
  Origin origin;
  World world({origin.url()});
  bring(world, origin, {0, 4, "01234"});
  const auto request = world.request(kAskWhole);
  FetchPlan plan = completing(world, *request);
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

TEST_CASE("a redirection of a rest leads to a whole, and not to a rest of something else",
          "[origin][parts]") {
  Origin origin;
  World world({origin.url()}, [](config::Config& config) {
    config::Rule& rule = config.rule.emplace_back();
    rule.path = {"/*"};
    rule.follow_redirects = true;
  });
  bring(world, origin, {0, 4, "01234"});
  const auto request = world.request(kAskWhole);
  FetchReader reader(world, request, completing(world, *request));
  world.run_until_asked(origin);
  CHECK(origin.asked.contains("Range: bytes=5-\r\n"));
  origin.say("HTTP/1.1 302 Found\r\nLocation: /b\r\nContent-Length: 0\r\n\r\n");
  world.run_until(origin, [&] {
    return reader.is_done() || origin.asked.find("\r\n\r\n") != std::string::npos;
  });
  REQUIRE_FALSE(reader.is_done());
  CHECK(origin.asked.starts_with("GET /b HTTP/1.1\r\n"));
  CHECK_FALSE(origin.asked.contains("Range: "));
  origin.say("HTTP/1.1 200 OK\r\nETag: \"v1\"\r\nContent-Length: 10\r\n\r\nabcdefghij");
  world.run_until(origin, [&] { return reader.is_done(); });
  CHECK(reader.body == "abcdefghij");
}

std::string body_of(const store::Object& object) {
  if (object.is_inline()) return std::string(object.inline_body());
  std::string text;
  auto cursor = object.body()->open(0);
  REQUIRE(cursor.has_value());
  std::array<iovec, 8> room;
  while (!cursor->at_end()) {
    const auto peeked = cursor->peek(room, 1U << 20U);
    for (std::size_t i = 0; i < peeked.parts; ++i) {
      text.append(static_cast<const char*>(room[i].iov_base), room[i].iov_len);
    }
    cursor->advance(peeked.bytes);
  }
  return text;
}

// A response of bytes `begin` to `end` of `whole`, without the end.
std::string part_of(const std::string& whole, std::size_t begin, std::size_t end,
                    const std::string& fields) {
  return "HTTP/1.1 206 Partial Content\r\nETag: \"v1\"\r\nContent-Range: bytes " +
         std::to_string(begin) + "-" + std::to_string(end - 1) + "/" +
         std::to_string(whole.size()) + "\r\nContent-Length: " + std::to_string(end - begin) +
         "\r\n" + fields + "\r\n" + whole.substr(begin, end - begin);
}
void bring(World& world, Origin& origin, const std::string& whole, std::size_t begin,
           std::size_t end, const std::string& asked, const std::string& fields) {
  const auto request = world.request("GET /a HTTP/1.1\r\nHost: h\r\n" + asked +
                                     "Range: bytes=" + std::to_string(begin) + "-" +
                                     std::to_string(end - 1) + "\r\n\r\n");
  FetchReader reader(world, request, FetchPlan{});
  world.run_until_asked(origin);
  origin.say(part_of(whole, begin, end, fields));
  world.run_until(origin, [&] { return reader.is_done(); });
  REQUIRE((reader.body == whole.substr(begin, end - begin)));
}

TEST_CASE("parts of any size are joined to the byte, whichever comes first", "[origin][parts]") {
  std::string whole;
  for (std::size_t i = 0; i < 200'000; ++i) whole += static_cast<char>('a' + i * 7 % 26);
  struct Row {
    std::size_t first_begin;
    std::size_t first_end;
    std::size_t second_begin;
    std::size_t second_end;
  };
  const Row row = GENERATE(values<Row>({{0, 100'000, 100'000, 200'000},
                                        {100'000, 200'000, 0, 100'000},
                                        {0, 150'000, 50'000, 200'000},
                                        {50'000, 150'000, 100'000, 120'000},
                                        {100'000, 120'000, 50'000, 150'000},
                                        {0, 3, 3, 200'000},
                                        {3, 200'000, 0, 3}}));
  const bool keeps_tags = GENERATE(true, false);
  CAPTURE(row.first_begin, row.first_end, row.second_begin, row.second_end);
  Origin origin;
  World world({origin.url()});
  const std::string lives = "Cache-Control: max-age=60\r\n";
  bring(world, origin, whole, row.first_begin, row.first_end, "",
        lives + "Surrogate-Key: old\r\nX-A: 1\r\n");
  bring(world, origin, whole, row.second_begin, row.second_end, "",
        lives + (keeps_tags ? "" : "Surrogate-Key: new\r\n") + "X-A: 2\r\n");
  const std::size_t begin = std::min(row.first_begin, row.second_begin);
  const std::size_t end = std::max(row.first_end, row.second_end);
  const store::ObjectRef stored = world.stored(*world.request(kAskWhole));
  REQUIRE(stored);
  CHECK((body_of(*stored) == whole.substr(begin, end - begin)));
  const bool is_whole = end - begin == whole.size();
  CHECK(meta_of(*stored).http.status == (is_whole ? 200 : 206));
  CHECK(field_of(stored_head_of(*stored), "X-A") == "2");
  CHECK(tags_of(*stored) == (keeps_tags ? "old\n" : "new\n"));
  const http::StoredMeta& meta = meta_of(*stored).http;
  CHECK(stored_head_of(*stored).substr(meta.etag_offset, meta.etag_bytes) == "\"v1\"");
  CHECK(world.stats.stored.get() == 2);
  CHECK(world.kernel->statistics().objects == 1);
}

TEST_CASE("a joined body of which a part came with a Cookie is given no guessed freshness",
          "[origin][parts]") {
  using http::StoredMeta;
  const std::string first = GENERATE(as<std::string>(), "", "Cookie: a=1\r\n");
  const std::string second = GENERATE(as<std::string>(), "", "Cookie: a=1\r\n");
  const bool is_stated = GENERATE(true, false);
  CAPTURE(first, second, is_stated);
  const std::string fields = is_stated ? "Cache-Control: max-age=60\r\n"
                                       : "Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT\r\n";
  const std::string whole = "0123456789";
  Origin origin;
  World world({origin.url()});
  bring(world, origin, whole, 0, 5, first, fields);
  bring(world, origin, whole, 5, 10, second, fields);
  const store::ObjectRef stored = world.stored(*world.request(kAskWhole));
  REQUIRE(stored);
  const StoredMeta& meta = meta_of(*stored).http;
  const bool with_cookie = !first.empty() || !second.empty();
  CHECK(meta.status == 200);
  CHECK(meta.is(StoredMeta::kWithCookie) == with_cookie);
  CHECK(meta.is(StoredMeta::kNeverFresh) == (with_cookie && !is_stated));
  if (meta.is(StoredMeta::kNeverFresh)) {
    CHECK(meta.swr_seconds == 0);
    CHECK(meta.sie_seconds == 0);
  }
}

TEST_CASE("the tags of a beginning stay, also if a reload reads them from another field",
          "[origin][parts]") {
  const bool completes = GENERATE(true, false);
  const bool has_new = GENERATE(true, false);
  CAPTURE(completes, has_new);
  const std::string whole = "0123456789";
  Origin origin;
  World world({origin.url()});
  bring(world, origin, whole, 0, 5, "", "Cache-Control: max-age=60\r\nSurrogate-Key: old\r\n");
  config::Config config = world.runtime->config;
  config.cache.tag_fields = {"cache-tag"};
  auto run = Runtime::create(config, {}, "test");
  REQUIRE(run.has_value());
  world.runtime = *run;
  const std::string fields =
      std::string("Cache-Control: max-age=60\r\n") + (has_new ? "Cache-Tag: new\r\n" : "");
  const auto request = world.request(kAskWhole);
  if (completes) {
    FetchPlan plan;
    plan.whole = true;
    plan.completes = world.stored(*request);
    FetchReader reader(world, request, std::move(plan));
    world.run_until_asked(origin);
    origin.say(part_of(whole, 5, 10, fields));
    world.run_until(origin, [&] { return reader.is_done(); });
    CHECK(reader.body == whole);
  } else {
    bring(world, origin, whole, 5, 10, "", fields);
  }
  const store::ObjectRef stored = world.stored(*request);
  REQUIRE(stored);
  CHECK((body_of(*stored) == whole));
  CHECK(tags_of(*stored) == (has_new ? "new\n" : "old\n"));
}

TEST_CASE("the rest of a beginning brings what is for the one who asked, and its age",
          "[origin][parts]") {
  const std::size_t size = GENERATE(as<std::size_t>(), 10, 200'000);
  const std::string age = GENERATE(as<std::string>(), "", "Age: 30\r\n");
  const std::string cookie = GENERATE(as<std::string>(), "", "Cookie: a=1\r\n");
  CAPTURE(size, age, cookie);
  std::string whole;
  for (std::size_t i = 0; i < size; ++i) whole += static_cast<char>('a' + i * 7 % 26);
  Origin origin;
  World world({origin.url()});
  bring(world, origin, whole, 0, size / 2, cookie,
        "Cache-Control: max-age=60\r\nSurrogate-Key: old\r\n");
  const auto request = world.request(kAskWhole);
  FetchReader reader(world, request, completing(world, *request));
  world.run_until_asked(origin);
  origin.say(part_of(whole, size / 2, size,
                     "Cache-Control: max-age=60\r\nSet-Cookie: b=2\r\nX-A: 1\r\n" + age +
                         (age.empty() ? "" : "Surrogate-Key: new\r\n")));
  world.run_until(origin, [&] { return reader.is_done(); });
  CHECK((reader.body == whole));
  CHECK(reader.whole);
  CHECK((reader.head.find("Age: 30\r\n") != std::string::npos) == !age.empty());
  CHECK(reader.head.find("Set-Cookie: b=2\r\n") >= reader.response->common_bytes);
  CHECK(reader.head.find("Set-Cookie: b=2\r\n") != std::string::npos);
  CHECK(reader.head.find("X-A: 1\r\n") < reader.response->common_bytes);
  CHECK(reader.response->length == size);
  const store::ObjectRef stored = world.stored(*request);
  REQUIRE(stored);
  CHECK((body_of(*stored) == whole));
  CHECK(stored_head_of(*stored).find("Set-Cookie") == std::string_view::npos);
  CHECK(meta_of(*stored).http.status == 200);
  CHECK(meta_of(*stored).http.is(http::StoredMeta::kWithCookie) == !cookie.empty());
  const Nanoseconds old = world.loop->now() - meta_of(*stored).http.age_zero;
  CHECK((old >= std::chrono::seconds(30)) == !age.empty());
  // Without tags of its own the rest leaves those of the beginning.
  CHECK(tags_of(*stored) == (age.empty() ? "old\n" : "new\n"));
  CHECK(world.pool.size() == 1);
}

}  // namespace
}  // namespace encore::server
