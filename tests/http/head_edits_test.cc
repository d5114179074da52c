#include "proxy/http/head_edits.h"

#include "proxy/http/digest_path.h"
#include "tests/catch.h"

namespace encore::http {

TEST_CASE("fields are set, added and removed, and the first line is none", "[http][head_edits]") {
  HeadEdits edits;
  CHECK(edits.empty());
  edits.set("X-A", "new");
  edits.add("X-B", "more");
  edits.remove("X-C");
  CHECK_FALSE(edits.only_adds());
  std::string head =
      "HTTP/1.1 200 X-A: no field\r\nx-a: 1\r\nX-B: 1\r\nX-C: 1\r\nX-A: 2\r\nX-CC: 1\r\n";
  edits.apply(head);
  CHECK(head == "HTTP/1.1 200 X-A: no field\r\nX-B: 1\r\nX-CC: 1\r\nX-A: new\r\nX-B: more\r\n");
}

TEST_CASE("the digest in a path is found as registries and mirrors write it", "[http][digest]") {
  const std::string hex(64, 'a');
  CHECK(sha256_in_path("/v2/x/blobs/sha256:" + hex) == hex);
  CHECK(sha256_in_path("/by-hash/SHA256/" + std::string(64, 'A')) == hex);
  CHECK(sha256_in_path("/x-sha256_" + hex + ".tar") == hex);
  CHECK(sha256_in_path("/sha256/sha256:" + hex + "/data") == hex);
  CHECK_FALSE(sha256_in_path("/sha256:" + hex + "0"));
  CHECK_FALSE(sha256_in_path("/sha256:" + hex.substr(1)));
  CHECK_FALSE(sha256_in_path("/sha256" + hex));
  CHECK_FALSE(sha256_in_path("/sha512:" + hex));
}

}  // namespace encore::http
