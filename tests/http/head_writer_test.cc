#include "proxy/http/head_writer.h"

#include <cstring>
#include <string>

#include "proxy/http/parser.h"
#include "tests/catch.h"

namespace encore::http {
namespace {

Fields parsed(std::string_view lines) {
  Fields fields;
  ParseError error;
  REQUIRE(parse_fields(lines, {}, fields, error));
  return fields;
}

// As they are written one by one, and as they are copied, but for those that have "Drop" as name.
std::string written(const Fields& fields) {
  std::string text;
  for (const Field& field : fields) {
    if (field.name != "Drop") HeadWriter(text, 0).field(field.name, field.value);
  }
  return text;
}
std::string copied(const Fields& fields) {
  std::string text;
  {
    HeadWriter out(text, 0);
    FieldCopier copier(out);
    for (const Field& field : fields) {
      if (field.name != "Drop") copier.add(field);
    }
  }
  return text;
}

TEST_CASE("texts of nothing stand nowhere, and are written as such", "[http][head]") {
  std::string text;
  {
    HeadWriter out(text, 0);
    out.text({});
    out.status_line(200, {});
    out.field("A", std::string_view());
  }
  CHECK(text == "HTTP/1.1 200 \r\nA: \r\n");
}

TEST_CASE("a head is as long as what was written, whatever was expected", "[http][head]") {
  for (const std::size_t expected : {0UZ, 1UZ, 40UZ, 500UZ}) {
    CAPTURE(expected);
    std::string text = "before";
    {
      HeadWriter out(text, expected);
      out.status_line(404, "Not Found");
      out.field("Age", 70);
      out.field("A", "b");
      out.text("Via: x\r\n");
    }
    CHECK(text == "beforeHTTP/1.1 404 Not Found\r\nAge: 70\r\nA: b\r\nVia: x\r\n");
  }
}

TEST_CASE("numbers are written in full", "[http][head]") {
  std::string text;
  HeadWriter(text, 0).number(UINT64_MAX);
  CHECK(text == "18446744073709551615");
}

TEST_CASE("who writes by itself keeps what it says", "[http][head]") {
  std::string text;
  {
    HeadWriter out(text, 0);
    std::memcpy(out.room(8), "abcdefgh", 8);
    out.written(3);
    out.text(".");
  }
  CHECK(text == "abc.");
}

TEST_CASE("lines are copied as they are written one by one", "[http][head]") {
  const std::string_view table[] = {
      "",
      "A: 1\r\n",
      "A: 1\r\nB: 2\r\nC: 3\r\n",
      "Drop: 0\r\nA: 1\r\nDrop: 2\r\nB: 3\r\nDrop: 4\r\n",
      "Drop: 0\r\n",
      "A:1\r\nB:\t2\r\nC:  3\r\nD: 4\r\n",
      "A: 1\t\r\nB: 2 \r\nC: 3\r\n",
      "A:\r\nB: \r\nC:  \r\nD: 1\r\n",
      "A: \r\nB: 2\r\n",
  };
  for (const std::string_view lines : table) {
    CAPTURE(lines);
    const Fields fields = parsed(lines);
    CHECK(copied(fields) == written(fields));
  }
}

TEST_CASE("what stands between two lines but their end is not copied", "[http][head]") {
  const std::string_view bytes = "A: 1--B: 2";
  Fields fields;
  fields.add(bytes.substr(0, 1), bytes.substr(3, 1));
  fields.add(bytes.substr(6, 1), bytes.substr(9, 1));
  CHECK(copied(fields) == "A: 1\r\nB: 2\r\n");
}

TEST_CASE("a line that is written otherwise stands in its place", "[http][head]") {
  const Fields fields = parsed("A: 1\r\nB: 2\r\nC: 3\r\n");
  std::string text;
  {
    HeadWriter out(text, 0);
    FieldCopier copier(out);
    for (const Field& field : fields) {
      if (field.name == "B") {
        copier.add("B", "two");
      } else {
        copier.add(field);
      }
    }
  }
  CHECK(text == "A: 1\r\nB: two\r\nC: 3\r\n");
}

TEST_CASE("a copier counts the lines that are still to be written", "[http][head]") {
  const Fields fields = parsed("A: 1\r\nB: 2\r\nC:3\r\nD: 4\r\n");
  std::string text = "before";
  {
    HeadWriter out(text, 0);
    FieldCopier copier(out);
    std::size_t expected = 6;
    CHECK(copier.size() == expected);
    for (const Field& field : fields) {
      copier.add(field);
      CHECK(copier.size() == (expected += 6));
    }
    copier.add("Length", 70);
    CHECK(copier.size() == expected + 12);
  }
  CHECK(text == "beforeA: 1\r\nB: 2\r\nC: 3\r\nD: 4\r\nLength: 70\r\n");
}

}  // namespace
}  // namespace encore::http
