#include "proxy/publish/resources.h"

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "filter/published/form.h"
#include "tests/catch.h"
#include "tests/publish/noon.h"

namespace encore::publish {
namespace {

using namespace std::chrono_literals;
using FieldList = std::vector<std::pair<std::string, std::string>>;

constexpr std::uint32_t kChangesCapacity = 1000;

ChangedKeys few_keys(std::uint32_t keep = 48) {
  auto options = filter::FilterParameters{};
  options.layout = filter::Layout::kClassic;
  options.bits = 9'600;
  options.hashes = 7;
  options.capacity = kChangesCapacity;
  auto hours = HourlyFilters::create({.keep = keep, .filter = options}, kStart);
  REQUIRE(hours);
  return ChangedKeys(std::move(*hours));
}

std::string path_of(Hour hour) { return "/filters/changed/" + to_path(hour); }

class Published {
 public:
  Answer ask(const std::string& path, WallTime now = kStart, const FieldList& fields = {},
             http::Method method = http::Method::kGet) {
    http::RequestHead head;
    head.method = method;
    for (const auto& [name, value] : fields) head.fields.add(name, value);
    return resources.answer(head, "/filters", path, now);
  }

  ChangedKeys changed = few_keys();
  Resources resources{{.changed = &changed}};
};

std::string field(const Answer& answer, std::string_view name) {
  std::string found;
  for (const auto& [key, value] : answer.fields) {
    if (key == name) found += (found.empty() ? "" : " | ") + value;
  }
  return found;
}

filter::AnyFilter read(const std::string& bytes, filter::Form form) {
  auto filter = filter::read_form(bytes, form, {});
  REQUIRE(filter);
  return std::move(*filter);
}

}  // namespace

TEST_CASE("Each form of an hour has its keys, by suffix and by Accept", "[publish][resources]") {
  Published it;
  it.changed.note("http://h/a", kStart);
  struct Row {
    const char* suffix;
    const char* type;
    filter::Form form;
  };
  for (const Row& row : {Row{".enc", "application/vnd.encore.filter", filter::Form::kEncore},
                         Row{".json", "application/json", filter::Form::kBloomnamesJson},
                         Row{".digest", "application/cache-digest", filter::Form::kSquidDigest}}) {
    for (const bool by_suffix : {true, false}) {
      const Answer answer = it.ask(path_of(kNoon) + (by_suffix ? row.suffix : ""), kStart,
                                   by_suffix ? FieldList{} : FieldList{{"Accept", row.type}});
      INFO(row.type);
      REQUIRE(answer.status == 200);
      CHECK(answer.content_type == row.type);
      const filter::AnyFilter filter = read(answer.body, row.form);
      CHECK(filter.test("http://h/a"));
      CHECK_FALSE(filter.test("http://h/b"));
      CHECK(field(answer, "Vary") == (by_suffix ? "Accept-Encoding" : "Accept, Accept-Encoding"));
      CHECK(field(answer, "Content-Location") == (by_suffix ? "" : path_of(kNoon) + row.suffix));
    }
  }
  CHECK(it.ask(path_of(kNoon)).content_type == "application/vnd.encore.filter");
  CHECK(it.ask(path_of(kNoon), kStart, {{"Accept", "image/png"}}).status == 406);
  CHECK(it.ask(path_of(kNoon) + ".png").status == 404);
}

TEST_CASE("A digest says its own rate, and that of an hour without changes is empty",
          "[publish][resources]") {
  Published it;
  const Answer empty = it.ask(path_of(kNoon) + ".digest");
  CHECK(read(empty.body, filter::Form::kSquidDigest).info().set_bits == 0);
  CHECK(empty.body.size() == 128 + kChangesCapacity * 5 / 8);
  for (int i = 0; i < 500; ++i) it.changed.note("http://h/" + std::to_string(i), kStart);
  const Answer digest = it.ask(path_of(kNoon) + ".digest");
  const double rate = read(digest.body, filter::Form::kSquidDigest).info().fpr_now;
  CHECK(field(digest, "Encore-Filter").find("fpr_now=\"" + json_number(rate)) != std::string::npos);
  CHECK(field(digest, "Encore-Filter").find("events=500") != std::string::npos);
  CHECK(field(digest, "Encore-Filter") != field(it.ask(path_of(kNoon)), "Encore-Filter"));
  CHECK_THAT(it.ask("/filters/links.json").body, Catch::Matchers::Contains(".digest"));
}

TEST_CASE("What is no hour that is known is not found", "[publish][resources]") {
  Published it;
  for (const std::string& path :
       {path_of(after(kNoon)), path_of(after(kNoon, -1)), std::string("/filters"),
        std::string("/filters/"), std::string("/filters/changed"), std::string("/filters/changed/"),
        std::string("/filters/changed/2026/13/01/00"), path_of(kNoon) + "/", path_of(kNoon) + "/x",
        path_of(kNoon).substr(1), std::string("/filters/resident"), std::string("/other/links"),
        std::string()}) {
    INFO(path);
    CHECK(it.ask(path).status == 404);
  }
  Resources nothing{{}};
  http::RequestHead head;
  head.method = http::Method::kGet;
  CHECK(nothing.answer(head, "/filters", path_of(kNoon), kStart).status == 404);
}

TEST_CASE("The current hour is kept for a short time, a past one for ever",
          "[publish][resources]") {
  Published it;
  it.changed.note("http://h/a", kStart);
  const Answer current = it.ask(path_of(kNoon));
  CHECK(field(current, "Cache-Control") == "max-age=10");
  CHECK(current.body == it.ask(path_of(kNoon)).body);
  it.changed.note("http://h/b", kStart);
  const Answer more = it.ask(path_of(kNoon));
  CHECK(field(more, "ETag") != field(current, "ETag"));
  const WallTime later = start_of(after(kNoon)) + 10min;
  const Answer past = it.ask(path_of(kNoon), later);
  CHECK(field(past, "Cache-Control") == "max-age=172200, immutable");
  // The same after any later events.
  it.changed.note("http://h/c", later);
  it.changed.note("http://h/d", later - 30min);
  const Answer again = it.ask(path_of(kNoon), later + 47h);
  CHECK(again.body == past.body);
  CHECK(field(again, "ETag") == field(past, "ETag"));
  CHECK(field(again, "Cache-Control") == "max-age=3000, immutable");
  CHECK(it.ask(path_of(kNoon), later + 48h).status == 404);
  const Answer empty = it.ask(path_of(after(kNoon, 5)), later + 10h);
  CHECK(empty.status == 200);
  CHECK(read(empty.body, filter::Form::kEncore).info().set_bits == 0);
}

TEST_CASE("Each hour leads to those beside it", "[publish][resources]") {
  Published it;
  const WallTime later = kStart + 2h;
  CHECK(field(it.ask(path_of(after(kNoon)), later), "Link") ==
        "<" + path_of(kNoon) + ">; rel=\"prev\", <" + path_of(after(kNoon, 2)) +
            ">; rel=\"next\", <" + path_of(after(kNoon, 2)) + ">; rel=\"current\"");
  const Answer links = it.ask("/filters/links", later);
  CHECK(links.content_type == "text/plain");
  CHECK(links.body == path_of(kNoon) + "  0 events, not complete\n" + path_of(after(kNoon)) +
                          "  0 events\n" + path_of(after(kNoon, 2)) + "  0 events, current\n");
  const Answer json = it.ask("/filters/links.json", later);
  CHECK(json.content_type == "application/linkset+json");
  CHECK(json.body.find("\"href\": \"" + path_of(kNoon) + ".json\"") != std::string::npos);
}

TEST_CASE("A condition is answered for the representation that it names", "[publish][resources]") {
  Published it;
  for (int i = 0; i < 20; ++i) it.changed.note("http://h/" + std::to_string(i), kStart);
  const std::string path = path_of(kNoon) + ".enc";
  const Answer plain = it.ask(path);
  const std::string etag = field(plain, "ETag");
  const Answer zipped = it.ask(path, kStart, {{"Accept-Encoding", "gzip"}});
  CHECK(field(zipped, "Content-Encoding") == "gzip");
  CHECK(field(zipped, "ETag") == etag.substr(0, etag.size() - 1) + "-gzip\"");
  CHECK(zipped.body.size() < plain.body.size());
  const Answer same = it.ask(path, kStart, {{"If-None-Match", "\"x\", " + etag}});
  CHECK(same.status == 304);
  CHECK(same.body.empty());
  CHECK(same.content_type.empty());
  CHECK(field(same, "ETag") == etag);
  CHECK(field(same, "Cache-Control") == "max-age=10");
  CHECK(it.ask(path, kStart, {{"If-None-Match", etag}, {"Accept-Encoding", "gzip"}}).status == 200);
  CHECK(it.ask(path, kStart, {{"If-None-Match", "*"}}).status == 304);
  CHECK(it.ask(path_of(kNoon) + ".json", kStart, {{"If-None-Match", etag}}).status == 200);
  CHECK(it.ask(path, kStart, {{"If-Match", etag}}).status == 200);
  CHECK(it.ask(path, kStart, {{"If-Match", "\"x\""}}).status == 412);
  it.changed.note("http://h/new", kStart);
  CHECK(it.ask(path, kStart, {{"If-None-Match", etag}}).status == 200);
  CHECK(it.ask(path, kStart, {{"If-Match", etag}}).status == 412);
}

TEST_CASE("A range of a filter is that of its bytes", "[publish][resources]") {
  Published it;
  it.changed.note("http://h/a", kStart);
  const std::string path = path_of(kNoon) + ".enc";
  const Answer whole = it.ask(path);
  const std::string size = std::to_string(whole.body.size());
  const Answer part = it.ask(path, kStart, {{"Range", "bytes=8-15"}});
  CHECK(part.status == 206);
  CHECK(part.body == whole.body.substr(8, 8));
  CHECK(field(part, "Content-Range") == "bytes 8-15/" + size);
  const Answer rest = it.ask(path, kStart, {{"Range", "bytes=-4"}});
  CHECK(rest.body == whole.body.substr(whole.body.size() - 4));
  const Answer none = it.ask(path, kStart, {{"Range", "bytes=" + size + "-"}});
  CHECK(none.status == 416);
  CHECK(field(none, "Content-Range") == "bytes */" + size);
  CHECK(it.ask(path, kStart, {{"Range", "bytes=0-0,9-9"}}).body == whole.body);
  CHECK(it.ask(path, kStart, {{"Range", "lines=1-2"}}).status == 200);
  const FieldList stale = {{"Range", "bytes=8-15"}, {"If-Range", "\"x\""}};
  CHECK(it.ask(path, kStart, stale).status == 200);
  const FieldList same = {{"Range", "bytes=8-15"}, {"If-Range", field(whole, "ETag")}};
  CHECK(it.ask(path, kStart, same).status == 206);
  CHECK(it.ask(path, kStart, {{"Range", "bytes=8-15"}}, http::Method::kHead).status == 200);
}

TEST_CASE("A filter is read, and nothing else", "[publish][resources]") {
  Published it;
  const Answer head = it.ask(path_of(kNoon), kStart, {}, http::Method::kHead);
  CHECK(head.status == 200);
  CHECK(head.body.size() == it.ask(path_of(kNoon)).body.size());
  for (const auto method : {http::Method::kPost, http::Method::kPut, http::Method::kDelete}) {
    const Answer refused = it.ask(path_of(kNoon), kStart, {}, method);
    CHECK(refused.status == 405);
    CHECK(field(refused, "Allow") == "GET, HEAD");
  }
}

TEST_CASE("An hour says how far it is to be trusted", "[publish][resources]") {
  Published it;
  for (std::uint32_t i = 0; i < 3 * kChangesCapacity; ++i) {
    it.changed.note("http://h/" + std::to_string(i), kStart);
  }
  const Answer answer = it.ask(path_of(kNoon) + ".json");
  const auto info = read(answer.body, filter::Form::kBloomnamesJson).info();
  CHECK(info.fpr_now > 0.2);
  CHECK(answer.body.find("\"fpr_now\": " + json_number(info.fpr_now)) != std::string::npos);
  CHECK(answer.body.find("\"overfull\": true") != std::string::npos);
  CHECK(answer.body.find("\"complete\": false") != std::string::npos);
  CHECK(answer.body.find("\"events\": 3000") != std::string::npos);
  CHECK(field(answer, "Encore-Filter").find("overfull=?1") != std::string::npos);
  CHECK(field(answer, "Encore-Filter").find("complete=?0") != std::string::npos);
}

}  // namespace encore::publish
