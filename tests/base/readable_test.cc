#include "base/readable.h"

#include "tests/catch.h"

namespace encore {
namespace {

using std::chrono::hours;
using std::chrono::seconds;

TEST_CASE("durations for people have their two largest units", "[base]") {
  CHECK(about_duration(seconds(0)) == "0s");
  CHECK(about_duration(seconds(119)) == "119s");
  CHECK(about_duration(seconds(120)) == "2m");
  CHECK(about_duration(seconds(121)) == "2m 1s");
  CHECK(about_duration(hours(2) + seconds(59)) == "2h");
  CHECK(about_duration(hours(2) + seconds(61)) == "2h 1m");
  CHECK(about_duration(hours(158) + seconds(1)) == "6d 14h");
  CHECK(about_duration(hours(24 * 365)) == "365d");
  CHECK(about_duration(seconds(-5)) == "-5s");
}

TEST_CASE("numbers for people have no exponent", "[base]") {
  CHECK(plain_number(0, 4) == "0");
  CHECK(plain_number(1, 4) == "1");
  CHECK(plain_number(0.5, 4) == "0.5");
  CHECK(plain_number(3.14159, 4) == "3.142");
  CHECK(plain_number(100000, 4) == "100000");
  CHECK(plain_number(123456.7, 4) == "123457");
  CHECK(plain_number(1e-5, 4) == "0.00001");
  CHECK(plain_number(1.2345678e-7, 4) == "0.0000001235");
  CHECK(plain_number(-2.5, 4) == "-2.5");
}

}  // namespace
}  // namespace encore
