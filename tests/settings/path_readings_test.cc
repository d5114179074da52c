#include "proxy/settings/path_readings.h"

#include <string>

#include "tests/catch.h"

namespace encore::server {
namespace {

using Lines = std::vector<std::string>;

}  // namespace

TEST_CASE("a plain path has one reading", "[settings][paths]") {
  for (const char* path : {"", "/", "*", "/a/b.c", "/a/", "/a;b=c/d@e", "/a.b/..c/d..", "/~x"}) {
    CAPTURE(path);
    CHECK(other_readings(path).empty());
  }
}

TEST_CASE("slashes are read as one, escapes undone once, and dot segments go",
          "[settings][paths]") {
  CHECK(other_readings("//a") == Lines{"/a"});
  CHECK(other_readings("/a///b//") == Lines{"/a/b/"});
  CHECK(other_readings("/a\\b") == Lines{"/a/b"});
  CHECK(other_readings("/a%2Fb") == Lines{"/a/b"});
  CHECK(other_readings("/a%5Cb") == Lines{"/a\\b", "/a/b"});
  CHECK(other_readings("/%40a%20b") == Lines{"/@a b"});
  CHECK(other_readings("/a%252Fb") == Lines{"/a%2Fb"});
  CHECK(other_readings("/a%2F..%2Fb") == Lines{"/b"});
  CHECK(other_readings("/a%2F..") == Lines{"/"});
  CHECK(other_readings("/..%2F..%2Fb") == Lines{"/b"});
  CHECK(other_readings("/a/..%2F") == Lines{"/"});
  CHECK(other_readings("/a/.%2Fb") == Lines{"/a/b"});
  // Who keeps the slashes goes one up from none, who takes them for one from the segment before.
  CHECK(other_readings("/x//..%2Fb") == Lines{"/x/..%2Fb", "/x/b", "/b"});
}

TEST_CASE("what is no escape stays", "[settings][paths]") {
  CHECK(other_readings("/%") == Lines{"/%"});
  CHECK(other_readings("/a%2") == Lines{"/a%2"});
  CHECK(other_readings("/%zz%+1%2f") == Lines{"/%zz%+1/"});
  CHECK(other_readings("/%00%ff") == Lines{std::string("/\0\xff", 3)});
}

TEST_CASE("readings are no longer than the path, whatever that is made of", "[settings][paths]") {
  for (const char* piece : {"%2F", "//", "/..%2f", "%2e%2e%2f", "%5C..", "\\"}) {
    std::string path = "/";
    while (path.size() < 16'384) path += piece;
    for (const std::string& reading : other_readings(path)) {
      CHECK(reading.size() <= path.size());
      CHECK(reading.starts_with('/'));
    }
    CHECK(other_readings(path).size() <= 3);
  }
}

}  // namespace encore::server
