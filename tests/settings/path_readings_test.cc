#include "proxy/settings/path_readings.h"

#include <algorithm>
#include <string>

#include "tests/catch.h"

namespace encore::server {
namespace {

bool reads(std::string_view path, std::string_view reading, std::string_view as_sent = {}) {
  return std::ranges::count(other_readings(path, as_sent).others, reading) == 1;
}

}  // namespace

TEST_CASE("a plain path has one reading", "[settings][paths]") {
  for (const char* path :
       {"", "/", "*", "/a/b.c", "/a/", "/a=b,c/d@e", "/a.b/..c/.d", "/~x", "/+"}) {
    CAPTURE(path);
    CHECK(other_readings(path).others.empty());
    CHECK(other_readings(path).is_complete);
  }
}

TEST_CASE("an escape of what has no other form is no other reading", "[settings][paths]") {
  for (const char* path : {"/caf%C3%A9", "/%E4%B8%AD", "/a%20b", "/%22", "/%", "/a%2", "/%zz%+1"}) {
    CAPTURE(path);
    const auto others = other_readings(path).others;
    if (std::string_view(path) == "/%22") {
      CHECK(others == std::vector<std::string>{"/\""});
    } else {
      CHECK(others.empty());
    }
  }
}

TEST_CASE("each way to write a path that is known has its reading", "[settings][paths]") {
  struct Row {
    const char* path;
    const char* reading;
  };
  for (const Row& row : {
           Row{"//admin", "/admin"},
           Row{"/a///b//", "/a/b/"},
           Row{"/a\\admin", "/a/admin"},
           Row{"/public/..;/admin", "/admin"},
           Row{"/public/..;a=b;c/admin", "/admin"},
           Row{"/public;x/..;/admin", "/admin"},
           Row{"/admin;v=1", "/admin"},
           Row{"/public/..%2Fadmin", "/admin"},
           Row{"/public%2F..%2Fadmin", "/admin"},
           Row{"/public/..%5Cadmin", "/admin"},
           Row{"/public/..%3B/admin", "/admin"},
           Row{"/public/%252e%252e/admin", "/admin"},
           Row{"/public/.%252E/admin", "/admin"},
           Row{"/public/%25252e%25252e/admin", "/admin"},
           Row{"/public/..%252Fadmin", "/admin"},
           Row{"/public/%C0%AE%C0%AE/admin", "/admin"},
           Row{"/public/..%C0%AFadmin", "/admin"},
           Row{"/public/..%E0%80%AFadmin", "/admin"},
           Row{"/public/..%F0%80%80%AFadmin", "/admin"},
           Row{"/public/..%C1%9Cadmin", "/admin"},
           Row{"/public/..%EF%BC%8Fadmin", "/admin"},
           Row{"/public/%EF%BC%8E%EF%BC%8E/admin", "/admin"},
           Row{"/public/..%u002fadmin", "/admin"},
           Row{"/public/%u002e%u002e/admin", "/admin"},
           Row{"/public/..%uFF0Fadmin", "/admin"},
           Row{"/admin%00.css", "/admin"},
           Row{"/admin%2500.css", "/admin"},
           Row{"/admin%3Fx.css", "/admin"},
           Row{"/admin%23x.css", "/admin"},
           Row{"/public/..%00/admin", "/admin"},
           Row{"/public/..%09/admin", "/admin"},
           Row{"/ad%0Amin", "/admin"},
           Row{"/public/..%20/admin", "/admin"},
           Row{"/admin.", "/admin"},
           Row{"/admin%20", "/admin"},
           Row{"/admin..%20./x", "/admin/x"},
           Row{"/public/a%2Fb/..;/..%5C../admin", "/admin"},
           Row{"/%40a", "/@a"},
       }) {
    CAPTURE(row.path);
    CHECK(reads(row.path, row.reading));
  }
}

TEST_CASE("dots that were sent as escapes are names to some", "[settings][paths]") {
  CHECK(reads("/admin", "/public/%252e%252e/admin", "/public/%2e%2e/admin"));
  CHECK(reads("/admin", "/public/.%252E/admin", "/public/.%2E/admin"));
  CHECK(other_readings("/admin", "/public/../admin").others.empty());
  CHECK(other_readings("/a.b", "/a%2eb").others.empty());
  CHECK(has_readings_as_sent("/a/%2e/b"));
  CHECK(has_readings_as_sent("/%2E%2e"));
  CHECK_FALSE(has_readings_as_sent("/a%2e/..%2f/./x"));
}

TEST_CASE(
    "who keeps the slashes goes one up from none, who takes them for one from the segment before",
    "[settings][paths]") {
  CHECK(reads("/x//..%2Fb", "/x/b"));
  CHECK(reads("/x//..%2Fb", "/b"));
  CHECK(other_readings("/x//..%2Fb").reveals_dots);
  CHECK_FALSE(other_readings("/@a%2Fb").reveals_dots);
}

TEST_CASE("readings are bounded, and no longer than the path", "[settings][paths]") {
  for (const char* piece : {"%2F", "//", "/..%2f", "%2e%2e%2f", "%5C..", "\\", "%25", "%2525",
                            ";a/", "a;%2F//.%20", "%u002f"}) {
    CAPTURE(piece);
    std::string path = "/";
    while (path.size() < 16'384) path += piece;
    const PathReadings readings = other_readings(path);
    for (const std::string& reading : readings.others) CHECK(reading.size() <= path.size());
    CHECK(readings.others.size() <= 2 * PathReadings::kMax);
  }
  std::string deep = "/%";
  for (std::size_t i = 0; i < 2 * PathReadings::kMax; ++i) deep += "25";
  CHECK_FALSE(other_readings(deep + "2F").is_complete);
}

TEST_CASE("a path costs a bounded number of copied bytes, however long it is",
          "[settings][paths]") {
  // As long as a request's head may be.
  constexpr std::size_t kHeadBytes = 64 * 1024;
  const std::string begin = GENERATE("/", "/%", "/x%2F");
  for (const char* piece : {"25", "%25", "%2525", "%2F", "/..%2f", "%5C..", ";a/", "//", "\\",
                            "a;%2F//.%20", "%u002f", "%c0%af", "%2e%2e%2f", "a"}) {
    CAPTURE(begin, piece);
    std::string path = begin;
    while (path.size() < kHeadBytes) path += piece;
    const PathReadings readings = other_readings(path);
    std::size_t held = 0;
    for (const std::string& reading : readings.others) held += reading.size();
    CHECK(held <= 128 * 1024);
    CHECK(readings.copied_bytes <= PathReadings::kCopiedBytesMax + path.size());
    CHECK((readings.is_complete || readings.copied_bytes > PathReadings::kCopiedBytesMax ||
           readings.others.size() >= PathReadings::kMax));
  }
}

TEST_CASE("a long path with one kind of escape is known in all its readings", "[settings][paths]") {
  for (const char* piece : {"%C3%A9", "%20a", "/@scope%2Fname", "a//b", "/a;v=1"}) {
    CAPTURE(piece);
    std::string path = "/";
    while (path.size() < 16'384) path += piece;
    CHECK(other_readings(path).is_complete);
  }
}

TEST_CASE("globs are compared in the form that paths have", "[settings][paths]") {
  CHECK(normal_glob("/a*b") == "/a*b");
  CHECK(normal_glob("/@*%2f*") == "/@*%2F*");
  CHECK(normal_glob("/caf\xc3\xa9 *") == "/caf%C3%A9%20*");
  CHECK(normal_glob("/%zz%") == "/%zz%");
  for (const char* glob : {"/@*%2F*", "//x", "/a;*", "\\"}) CHECK(names_its_form(glob));
  for (const char* glob : {"/a/*", "*.css", "*"}) CHECK_FALSE(names_its_form(glob));
}

}  // namespace encore::server
