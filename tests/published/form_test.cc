#include "filter/published/form.h"

#include "filter/published/bloomnames.h"
#include "filter/published/raw_bits.h"
#include "filter/published/squid_digest.h"
#include "tests/catch.h"

namespace encore::filter {
namespace {

AnyFilter small(const FilterParameters& parameters) {
  auto filter = AnyFilter::create({.parameters = parameters});
  REQUIRE(filter.has_value());
  for (int i = 0; i < 300; ++i) {
    filter->add("key " + std::to_string(i));
  }
  return std::move(*filter);
}

FilterParameters usual(Layout layout) {
  return {.layout = layout,
          .hash = HashFamily::kXxh3,
          .bits = 5003,
          .hashes = 8,
          .capacity = 400,
          .seed = {3, 4}};
}

}  // namespace

TEST_CASE("Every form is recognised and read as it was written", "[published]") {
  const struct {
    FilterParameters parameters;
    std::vector<Form> forms;
  } cases[] = {{usual(Layout::kSplit), {Form::kEncore, Form::kBloomnamesJson, Form::kRaw}},
               {usual(Layout::kBlocked), {Form::kEncore, Form::kBloomnamesJson, Form::kRaw}},
               {usual(Layout::kPartitioned), {Form::kEncore, Form::kBloomnamesJson, Form::kRaw}},
               {usual(Layout::kClassic), {Form::kEncore, Form::kBloomnamesJson, Form::kRaw}},
               {bloomnames_parameters(),
                {Form::kEncore, Form::kBloomnames, Form::kBloomnamesJson, Form::kRaw}},
               {squid_digest_parameters(1001),
                {Form::kEncore, Form::kBloomnamesJson, Form::kSquidDigest, Form::kRaw}}};
  for (const auto& [parameters, forms] : cases) {
    const AnyFilter filter = small(parameters);
    for (const Form form : forms) {
      CAPTURE(to_string(form), to_string(parameters.hash), to_string(parameters.layout));
      const auto written = write_form(filter, form);
      REQUIRE(written.has_value());
      if (form != Form::kRaw) {
        REQUIRE(detect_form(*written).value() == form);
      }
      const auto again = read_form(*written, form, filter.info().parameters);
      REQUIRE(again.has_value());
      CHECK(again->plain()->raw_bits() == filter.plain()->raw_bits());
      CHECK(again->info().parameters == filter.info().parameters);
      for (int i = 0; i < 300; ++i) {
        REQUIRE(again->test("key " + std::to_string(i)));
      }
    }
  }
}

TEST_CASE("Forms have names", "[published]") {
  for (const Form form : {Form::kEncore, Form::kBloomnames, Form::kBloomnamesDecimal,
                          Form::kBloomnamesJson, Form::kSquidDigest, Form::kRaw}) {
    CHECK(parse_form(to_string(form)).value() == form);
  }
  CHECK(parse_form("zip").error().message.find("\"zip\", accepted: encore, bloomnames") !=
        std::string::npos);
}

TEST_CASE("What is no filter is not recognised", "[published]") {
  for (const std::string text : {"", " ", "ENCBLOO", "7", "[1]", "\x1f\x8b"}) {
    CHECK_FALSE(detect_form(text).has_value());
  }
  CHECK_FALSE(read_form("12\n", Form::kBloomnamesDecimal, {}).has_value());
}

TEST_CASE("Every cut of every form is refused", "[published]") {
  const AnyFilter filter = small(usual(Layout::kClassic));
  const AnyFilter digest = small(squid_digest_parameters(1000));
  const std::pair<Form, std::string> wholes[] = {
      {Form::kEncore, *write_form(filter, Form::kEncore)},
      {Form::kBloomnamesJson, *write_form(filter, Form::kBloomnamesJson)},
      {Form::kRaw, *write_form(filter, Form::kRaw)},
      {Form::kSquidDigest, *write_form(digest, Form::kSquidDigest)}};
  for (const auto& [form, whole] : wholes) {
    CAPTURE(to_string(form));
    // The newline at the end of JSON is no part of it.
    const std::size_t part = form == Form::kBloomnamesJson ? whole.size() - 1 : whole.size();
    for (std::size_t size = 0; size < part; ++size) {
      REQUIRE_FALSE(read_form(whole.substr(0, size), form, usual(Layout::kClassic)).has_value());
    }
  }
}

TEST_CASE("Raw bits must be those of the filter", "[published]") {
  FilterParameters parameters = usual(Layout::kClassic);
  parameters.bits = 12;
  CHECK(read_raw_bits(std::string("\xff\x0f"), parameters)->set_bits() == 12);
  CHECK(read_raw_bits(std::string("\xff\x0f"), parameters)->insertions() == 12);
  CHECK_FALSE(read_raw_bits(std::string("\xff\x1f"), parameters).has_value());
  CHECK_FALSE(read_raw_bits(std::string("\xff"), parameters).has_value());
  CHECK_FALSE(read_raw_bits(std::string("\xff\x0f\x00", 3), parameters).has_value());
  for (const std::uint64_t bits :
       {std::uint64_t{0}, kBitsMax, kBitsMax + 1, std::uint64_t{1} << 63U, ~std::uint64_t{0}}) {
    parameters.bits = bits;
    CHECK_FALSE(read_raw_bits(std::string("\xff\x0f"), parameters).has_value());
  }
}

}  // namespace encore::filter
