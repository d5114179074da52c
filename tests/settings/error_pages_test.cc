// Pages of the proxy's own, from a folder.
#include "proxy/settings/error_pages.h"

#include <filesystem>
#include <fstream>
#include <set>
#include <string>

#include "tests/catch.h"
#include "tests/temporary_directory.h"

namespace encore::server {
namespace {

struct Folder {
  void put(const std::string& name, const std::string& text) const {
    std::ofstream(directory / name, std::ios::binary) << text;
  }
  Result<ErrorPages> read() const { return ErrorPages::read(directory.path()); }
  TemporaryDirectory directory;
};

std::string body_of(const ErrorPages& pages, int status) {
  const http::OwnPage* page = pages.find(status);
  return page == nullptr ? "none" : page->content_type + " " + page->body;
}

TEST_CASE("a status has its own page, or that of its class", "[settings][error_pages]") {
  const Folder folder;
  folder.put("404.html", "lost");
  folder.put("4xx.txt", "yours");
  folder.put("503.json", "{}");
  for (const char* other : {"200.html", "404.php", "40.html", "style.css", "5xxx.html", "x.html"}) {
    folder.put(other, "not this");
  }
  std::filesystem::create_directory(folder.directory / "pictures");
  const auto pages = folder.read();
  REQUIRE(pages);
  CHECK(body_of(*pages, 404) == "text/html; charset=utf-8 lost");
  CHECK(body_of(*pages, 403) == "text/plain; charset=utf-8 yours");
  CHECK(body_of(*pages, 503) == "application/json {}");
  CHECK(body_of(*pages, 502) == "none");
  CHECK(body_of(*pages, 204) == "none");
  // Names that look like pages are reported, a style sheet is not.
  CHECK(pages->misnamed() == std::set<std::string>{"200.html", "40.html", "404.php", "5xxx.html"});
}

TEST_CASE("without a folder there are none", "[settings][error_pages]") {
  const auto pages = ErrorPages::read("");
  REQUIRE(pages);
  CHECK(pages->find(404) == nullptr);
}

TEST_CASE("what cannot be a page is a fault that names it", "[settings][error_pages]") {
  const Folder folder;
  SECTION("no such folder") {
    const auto pages = ErrorPages::read(folder.directory / "none");
    REQUIRE_FALSE(pages);
    CHECK(pages.error().message.ends_with("none: No such file or directory"));
  }
  SECTION("at the limit of its size and one past it") {
    folder.put("404.html", std::string(kErrorPageBytesMax, 'x'));
    CHECK(folder.read());
    folder.put("404.html", std::string(kErrorPageBytesMax + 1, 'x'));
    const auto pages = folder.read();
    REQUIRE_FALSE(pages);
    CHECK(pages.error().message.find("404.html: is larger than") != std::string::npos);
  }
  SECTION("at the limit of all together and one past it") {
    for (int i = 0; i < 16; ++i) {
      folder.put(std::to_string(400 + i) + ".txt", std::string(kErrorPageBytesMax, 'x'));
    }
    CHECK(folder.read());
    folder.put("500.txt", "x");
    CHECK_FALSE(folder.read());
  }
  SECTION("two for one status") {
    folder.put("404.html", "a");
    folder.put("404.json", "b");
    CHECK_FALSE(folder.read());
  }
  SECTION("a folder") {
    std::filesystem::create_directory(folder.directory / "404.html");
    CHECK_FALSE(folder.read());
  }
}

}  // namespace
}  // namespace encore::server
