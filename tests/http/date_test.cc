#include "proxy/http/date.h"

#include <array>
#include <string>

#include "tests/catch.h"

namespace encore::http {

TEST_CASE("the three formats of a date are read, names in any case", "[http][rfc9110][5.6.7]") {
  constexpr UnixSeconds kNow = 1'790'000'000;  // September 2026
  const std::pair<std::string, UnixSeconds> table[] = {
      {"Sun, 06 Nov 1994 08:49:37 GMT", 784111777},
      {"Sunday, 06-Nov-94 08:49:37 GMT", 784111777},
      {"Sun Nov  6 08:49:37 1994", 784111777},
      {"Sun Nov 06 08:49:37 1994", 784111777},
      {"sun, 06 nOV 1994 08:49:37 gmt", 784111777},
      {"SUNDAY, 06-NOV-94 08:49:37 Gmt", 784111777},
      {"Thu, 01 Jan 1970 00:00:00 GMT", 0},
      {"Wed, 31 Dec 1969 23:59:59 GMT", -1},
      {"Thu, 29 Feb 2024 23:59:59 GMT", 1709251199},
      {"Sat, 31 Dec 2016 23:59:60 GMT", 1483228800},
      {"Fri, 31 Dec 9999 23:59:59 GMT", 253402300799},
      {"Thursday, 01-Jan-76 00:00:00 GMT", 3345062400},
      {"Thursday, 01-Jan-77 00:00:00 GMT", 220924800},
  };
  for (const auto& [text, seconds] : table) {
    CAPTURE(text);
    CHECK(parse_date(text, kNow) == seconds);
  }
}

TEST_CASE("what is nearly a date is none", "[http][rfc9110][5.6.7]") {
  for (const char* text : {
           "",
           "0",
           "-1",
           "Sun, 06 Nov 1994 08:49:37 UTC",
           "Sun, 06 Nov 1994 08:49:37 AEST",
           "Sun 06 Nov 1994 08:49:37 GMT",
           "Sun, 06 Nov 1994 08:49:37",
           "Sun, 6 Nov 1994 08:49:37 GMT",
           "Sun, 06 Nov 94 08:49:37 GMT",
           "Sun, 06 Nov 1994 8:49:37 GMT",
           "Sun, 06-Nov-1994 08:49:37 GMT",
           "Sun,06 Nov 1994 08:49:37 GMT",
           "Sun, 06 Nov 1994 08:49:37 GMT ",
           "Sun, 06 Nov 1994 08.49.37 GMT",
           "Sun,  06 Nov 1994 08:49:37 GMT",
           "Sun, 31 Feb 1994 08:49:37 GMT",
           "Sun, 06 Nov 1994 24:00:00 GMT",
           "Sun, 06 Nov 1994 08:60:37 GMT",
           "Sun, 06 Nov 1994 08:49:61 GMT",
           "Foo, 06 Nov 1994 08:49:37 GMT",
           "Sun, 06 Foo 1994 08:49:37 GMT",
           "Sunday, 06 Nov 1994 08:49:37 GMT",
           "Sun Nov 6 08:49:37 1994",
           "Sun Nov  6 08:49:37 1994 GMT",
           "06 Nov 1994 08:49:37 GMT",
           "Thu, 18 Aug 2050 02:01:18 +0000",
           "Sun, 00 Nov 1994 08:49:37 GMT",
           "Sun, 0x Nov 1994 08:49:37 GMT",
           "Sun, 06 Nov 199: 08:49:37 GMT",
           "Sun, 06 Nov /994 08:49:37 GMT",
           "Sun, 06 Nov 1994 0a:49:37 GMT",
           "Sun, 06 Nov 1994 08: 9:37 GMT",
           "Sun, 06 Nov 1994 08:49:3  GMT",
           "Sun, 06 Nov 1994-08:49:37 GMT",
           "Sun, 06 Nov-1994 08:49:37 GMT",
           "Sun, 06 Nov 1994 08:49:37-GMT",
           "Sun, 06 Nov 1994 08:49.37 GMT",
           "Sun,.06 Nov 1994 08:49:37 GMT",
           "Sun, 06.Nov 1994 08:49:37 GMT",
           "3un, 06 Nov 1994 08:49:37 GMT",
           "Sun, 06 .ov 1994 08:49:37 GMT",
           "1994-11-06T08:49:37Z and some more",
           "Sun, 06 Nov 1994 08:49:37 GMT, and more",
       }) {
    CAPTURE(text);
    CHECK_FALSE(parse_date(text, 1'790'000'000));
  }
}

TEST_CASE("a date is written as IMF-fixdate, and read back the same", "[http][rfc9110][5.6.7]") {
  std::array<char, kDateBytes> text{};
  write_date(784111777, text);
  CHECK(std::string(text.data(), text.size()) == "Sun, 06 Nov 1994 08:49:37 GMT");
  for (int month = 0; month < 12; ++month) {
    const UnixSeconds time = (UnixSeconds{30} * month + 2) * 86400;
    write_date(time, text);
    CHECK(parse_date({text.data(), text.size()}, 0) == time);
  }
  for (UnixSeconds time = -100000; time < 5'000'000'000; time += 12'345'679) {
    write_date(time, text);
    CHECK(parse_date({text.data(), text.size()}, 0) == time);
  }
}

}  // namespace encore::http
