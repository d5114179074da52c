#include "config/log_format.h"

#include <algorithm>
#include <set>
#include <string>

#include "tests/catch.h"

namespace encore::config {
namespace {

TEST_CASE("a format is a name, or a line with directives", "[config][log]") {
  CHECK(parse_log_format("json")->style == LogFormat::Style::kJson);
  CHECK(parse_log_format("squid")->style == LogFormat::Style::kSquid);
  CHECK(parse_log_format("combined")->style == LogFormat::Style::kCombined);
  const auto line = parse_log_format("%h [%{User-Agent}i] \"%r\" %>s%%%{outcome}x");
  REQUIRE(line.has_value());
  CHECK(line->style == LogFormat::Style::kLine);
  const auto& parts = line->parts;
  REQUIRE(parts.size() == 9);
  CHECK(parts[0].field == LogField::kClient);
  CHECK(parts[1].text == " [");
  CHECK((parts[2].field == LogField::kRequestField && parts[2].text == "user-agent"));
  CHECK_FALSE(parts[2].quoted);
  CHECK((parts[4].field == LogField::kRequestLine && parts[4].quoted));
  CHECK((parts[6].field == LogField::kStatus && !parts[6].quoted));
  CHECK(parts[7].text == "%");
  CHECK(parts[8].field == LogField::kOutcome);
}

TEST_CASE("what is no format says where", "[config][log]") {
  const auto fault = [](std::string_view text) {
    const auto parsed = parse_log_format(text);
    REQUIRE_FALSE(parsed.has_value());
    return parsed.error().message;
  };
  CHECK(fault("") == "is not a format");
  CHECK(fault("xml") == "is not a format");
  CHECK(fault("%%") == "has no directive");
  CHECK(fault("%h %Z %u").ends_with("at \"%Z %u\""));
  CHECK(fault("%h %").ends_with("at \"%\""));
  CHECK(fault("%>h").ends_with("at \"%>h\""));
  CHECK(fault("%{Host}").ends_with("at \"%{Host}\""));
  CHECK(fault("%{}i").ends_with("at \"%{}i\""));
  CHECK(fault("%{Ho st}i").ends_with("at \"%{Ho st}i\""));
  CHECK(fault("%{clients}x").ends_with("at \"%{clients}x\""));
  CHECK(fault("%{ns}T").ends_with("at \"%{ns}T\""));
  CHECK(fault("%h\n%u") == "has a control character");
  CHECK(fault("%h" + std::string(kLogLineBytesMax, 'x')) == "has more than 4096 bytes");
  CHECK(parse_log_format("%h" + std::string(kLogLineBytesMax - 2, 'x')).has_value());
}

TEST_CASE("a field is asked for by the formats that have it", "[config][log]") {
  CHECK(parse_log_format("json")->has(LogField::kRequestId));
  CHECK_FALSE(parse_log_format("json")->has(LogField::kResponseField));
  CHECK_FALSE(parse_log_format("squid")->has(LogField::kRequestId));
  CHECK_FALSE(parse_log_format("combined")->has(LogField::kRequestId));
  CHECK(parse_log_format("%{request_id}x")->has(LogField::kRequestId));
  CHECK(parse_log_format("%{Via}o")->has(LogField::kResponseField));
  CHECK_FALSE(parse_log_format("%h")->has(LogField::kResponseField));
}

TEST_CASE("every field has a directive of its name", "[config][log]") {
  std::set<std::string_view> names;
  for (const auto& each : kLogFields) {
    CHECK(names.insert(each.name).second);
    const auto parsed = parse_log_format("%{" + std::string(each.name) + "}x");
    REQUIRE(parsed.has_value());
    CHECK(parsed->parts.front().field == each.field);
  }
  for (const auto& each : kLogForms) CHECK(names.insert(each.name).second);
}

}  // namespace
}  // namespace encore::config
