// Forms of stored objects in other codings, and their heads.
#include "proxy/transfer/coded_form.h"

#include <span>
#include <string>
#include <utility>

#include "proxy/store/memory_store.h"
#include "tests/catch.h"
#include "tests/transfer/made_form.h"
#include "tests/transfer/made_object.h"

namespace encore::server {
namespace {

constexpr std::string_view kKey = "http://a.example/";

TEST_CASE("a form has the trailers of the identity but for digests of its bytes, and no tags",
          "[transfer][coding]") {
  struct Row {
    std::string trailers;
    std::string kept;
  };
  const Row row =
      GENERATE(values<Row>({{"", ""},
                            {"X-A: 1\r\n", "X-A: 1\r\n"},
                            {"Digest: d\r\n", ""},
                            {"Content-MD5: d\r\nX-A: 1\r\n", "X-A: 1\r\n"},
                            {"X-A: 1\r\nRepr-Digest: d\r\nX-B: 2\r\n", "X-A: 1\r\nX-B: 2\r\n"}}));
  CAPTURE(row.trailers);
  CHECK(without_body_digests(row.trailers) == row.kept);
  const std::string stored =
      "HTTP/1.1 200 OK\r\nContent-Type: text/css\r\nContent-Length: 9000\r\n";
  const std::string tags = "one\ntwo\n";
  const std::string large = write_large_body({.number = 5, .length = 9000});
  ObjectMeta meta;
  meta.http.head_bytes = static_cast<std::uint32_t>(stored.size());
  meta.tag_bytes = static_cast<std::uint32_t>(tags.size());
  meta.large_bytes = kLargeBodyBytes;
  meta.variant = 12;
  const std::string head = stored + row.trailers + large + tags;
  const CodedForm form =
      coded_form(HeadParts{.meta = meta, .head = head}, coding::Coding::kGzip, 700);
  const HeadParts parts{.meta = form.meta, .head = form.head};
  CHECK(form.meta.tag_bytes == 0);
  CHECK(form.meta.large_bytes == 0);
  CHECK(form.meta.variant == 12);
  CHECK(form.meta.plain == (row.kept.empty() ? 1 : 0));
  CHECK(parts.trailers() == row.kept);
  CHECK(parts.tags().empty());
  CHECK_FALSE(parts.large_body());
  CHECK(parts.content_type() == "text/css");
  CHECK(form.head.find("Content-Length: 700\r\n") != std::string::npos);
  CHECK(form.head.find("Content-Length: 9000") == std::string::npos);
}

TEST_CASE("an object with another head keeps the forms that there are, under heads made of it",
          "[transfer][coding]") {
  auto store = store::make_memory_store({.limit_bytes = 8 << 20});
  REQUIRE(store);
  const auto old = make_object(**store, {.key = kKey, .fields = "ETag: \"one\"\r\n"});
  const auto made = make_object(**store, {.key = kKey, .fields = "ETag: \"two\"\r\n"});
  const std::size_t gzip = coding::number_of(coding::Coding::kGzip);
  const std::size_t zstd = coding::number_of(coding::Coding::kZstd);
  SECTION("one of them") {
    const std::string body(5000, 'g');
    REQUIRE(old->add_form(gzip, made_form(**store, *old, coding::Coding::kGzip, body)));
    carry_forms(**store, *old, *made);
    REQUIRE(made->form(gzip) != nullptr);
    CHECK(made->form(zstd) == nullptr);
    CHECK(made->form(gzip)->body_size() == body.size());
    const std::string head(stored_head_of(*made->form(gzip)));
    CHECK_THAT(head, Catch::Contains("Content-Encoding: gzip\r\n"));
    CHECK_THAT(head, Catch::Contains("Content-Length: 5000\r\n"));
    CHECK_THAT(head, Catch::Contains("two"));
    CHECK_THAT(head, !Catch::Contains("one"));
    CHECK(old->form(gzip) != nullptr);
  }
  SECTION("all of them") {
    for (const auto coding :
         {coding::Coding::kZstd, coding::Coding::kBrotli, coding::Coding::kGzip}) {
      const std::string body(1000 + coding::number_of(coding), 'b');
      REQUIRE(old->add_form(coding::number_of(coding), made_form(**store, *old, coding, body)));
    }
    carry_forms(**store, *old, *made);
    for (const auto coding :
         {coding::Coding::kZstd, coding::Coding::kBrotli, coding::Coding::kGzip}) {
      const store::Object* const form = made->form(coding::number_of(coding));
      REQUIRE(form != nullptr);
      CHECK(form->body_size() == 1000 + coding::number_of(coding));
    }
  }
  SECTION("none") {
    carry_forms(**store, *old, *made);
    CHECK(made->form(gzip) == nullptr);
  }
}

}  // namespace
}  // namespace encore::server
