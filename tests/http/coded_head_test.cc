#include "proxy/http/coded_head.h"

#include "proxy/http/conditional.h"
#include "proxy/http/stored_head.h"
#include "tests/catch.h"

namespace encore::http {
namespace {

std::string coded(const std::string& head, std::optional<std::uint64_t> length = {}) {
  ResponseHead read;
  read_stored_head(head, read);
  StoredMeta meta;
  meta.flags = StoredMeta::kStrongEtag | StoredMeta::kHasEtag;
  std::string out;
  build_coded_head(read, "br", length, out, meta);
  CHECK(meta.head_bytes == out.size());
  CHECK_FALSE(meta.is(StoredMeta::kStrongEtag));
  CHECK(meta.is(StoredMeta::kHasEtag));
  ResponseHead again;
  read_stored_head(out, again);
  CHECK(stored_validators(meta, out).etag == again.fields.value(FieldId::kEtag));
  return out;
}

TEST_CASE("the head of a coded form says so, and nothing of the bytes that it was made from",
          "[http][rfc9110][8.4]") {
  CHECK(coded("HTTP/1.1 200 OK\r\nDate: x\r\nContent-Type: text/css\r\nContent-Length: 70\r\n"
              "Accept-Ranges: bytes\r\nETag: \"a\"\r\nContent-MD5: x\r\ndigest: sha-256=x\r\n"
              "Repr-Digest: sha-256=:x:\r\nContent-Digest: sha-256=:x:\r\nX: y\r\n") ==
        "HTTP/1.1 200 OK\r\nDate: x\r\nContent-Type: text/css\r\nETag: W/\"a\"\r\nX: y\r\n"
        "Vary: Accept-Encoding\r\nContent-Encoding: br\r\n");
  CHECK(coded("HTTP/1.1 200 OK\r\nContent-Length: 70\r\nETag: W/\"a\"\r\n", 12) ==
        "HTTP/1.1 200 OK\r\nETag: W/\"a\"\r\nVary: Accept-Encoding\r\nContent-Encoding: br\r\n"
        "Content-Length: 12\r\n");
}

TEST_CASE("Vary is added to what a response varies by", "[http][rfc9110][12.5.5]") {
  CHECK(coded("HTTP/1.1 200 OK\r\nVary: Cookie\r\nVary: Foo\r\n") ==
        "HTTP/1.1 200 OK\r\nVary: Cookie, Accept-Encoding\r\nVary: Foo\r\n"
        "Content-Encoding: br\r\n");
  CHECK(coded("HTTP/1.1 200 OK\r\nVary: Foo\r\nVary: ACCEPT-encoding\r\n") ==
        "HTTP/1.1 200 OK\r\nVary: Foo\r\nVary: ACCEPT-encoding\r\nContent-Encoding: br\r\n");
  CHECK(coded("HTTP/1.1 200 OK\r\nVary: *\r\n") ==
        "HTTP/1.1 200 OK\r\nVary: *\r\nContent-Encoding: br\r\n");
}

TEST_CASE("a tag that is strong is written weak, in place", "[http][rfc9110][8.8.1]") {
  std::string head = "HTTP/1.1 304 Not Modified\r\nDate: x\r\netag:  \"a\"\r\nVary: Foo\r\n";
  weaken_etag(head);
  CHECK(head == "HTTP/1.1 304 Not Modified\r\nDate: x\r\netag:  W/\"a\"\r\nVary: Foo\r\n");
  const std::string before = head;
  weaken_etag(head);
  CHECK(head == before);
  head = "HTTP/1.1 304 Not Modified\r\nX-ETag: \"a\"\r\n";
  weaken_etag(head);
  CHECK(head == "HTTP/1.1 304 Not Modified\r\nX-ETag: \"a\"\r\n");
}

}  // namespace
}  // namespace encore::http
