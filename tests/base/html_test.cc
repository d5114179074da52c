#include "base/html.h"

#include "tests/catch.h"

namespace encore {

TEST_CASE("What would end a tag, an attribute or a reference is escaped", "[base]") {
  CHECK(html_escaped("").empty());
  CHECK(html_escaped("a b'c") == "a b'c");
  CHECK(html_escaped("\"><script>&amp;") == "&quot;&gt;&lt;script&gt;&amp;amp;");
}

}  // namespace encore
