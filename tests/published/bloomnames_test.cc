#include "filter/published/bloomnames.h"

#include <zlib.h>

#include "filter/published/bit_number.h"
#include "filter/theory.h"
#include "tests/catch.h"

namespace encore::filter {
namespace {

BloomFilter published() {
  auto filter = BloomFilter::create(bloomnames_parameters());
  REQUIRE(filter.has_value());
  CHECK(filter->add("jcgregorio"));
  CHECK(filter->add("barney"));
  return std::move(*filter);
}

std::string valid_json() {
  return R"({"m": 16, "k": 3, "hash": "sha1-fields20", "filter": "0x9e64L"})";
}

// The text with the first `from` replaced.
std::string with(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

}  // namespace

TEST_CASE("bloomnames has the published digits", "[published]") {
  const BloomFilter filter = published();
  std::uint64_t highest = 0;
  for (std::uint64_t i = 0; i < 30'000; ++i) {
    highest = filter.bit(i) ? i : highest;
  }
  CHECK(highest == 28'739);

  std::string hex = write_bloomnames(filter).value();
  REQUIRE(hex.ends_with("L\n"));
  hex.pop_back();
  CHECK(hex.size() == 7188);
  CHECK(hex.starts_with("0x8000"));
  CHECK(hex.size() - std::string("0xL").size() == 7185);

  uLongf size = compressBound(static_cast<uLong>(hex.size()));
  std::vector<Bytef> compressed(size);
  REQUIRE(compress2(compressed.data(), &size, reinterpret_cast<const Bytef*>(hex.data()),
                    static_cast<uLong>(hex.size()), Z_DEFAULT_COMPRESSION) == Z_OK);
  CHECK(size == 87);

  const std::string decimal = write_bloomnames_decimal(filter).value();
  CHECK(decimal.starts_with("20000708816"));
  CHECK(decimal.ends_with("675924992\n"));
}

TEST_CASE("a bloomnames line that is cut short anywhere is refused", "[published]") {
  const std::string whole = write_bloomnames(published()).value();
  REQUIRE(read_bloomnames(whole).has_value());
  for (std::size_t size = 0; size + 1 < whole.size(); ++size) {
    REQUIRE_FALSE(read_bloomnames(whole.substr(0, size)).has_value());
  }
  const auto refused = read_bloomnames(whole.substr(0, 3000));
  CHECK(refused.error().message ==
        "a bloomnames filter of 2998 digits without an L behind them, accepted: the L, or all 7500 "
        "digits; it may be cut short");
}

TEST_CASE("a long string of digits in JSON is read wherever it stands", "[published]") {
  const BloomFilter filter = published();
  const std::string json = write_bloomnames_json(filter);
  const std::string digits = json.substr(json.find("0x"), json.find("L\"") + 1 - json.find("0x"));
  const std::string rest = R"("m": 30000, "k": 7, "hash": "sha1-fields20")";
  const auto reads = [&](const std::string& text) {
    CAPTURE(text.substr(0, 80));
    const auto read = read_bloomnames_json(text);
    REQUIRE(read.has_value());
    CHECK(read->raw_bits() == filter.raw_bits());
  };
  reads("{" + rest + ", \"filter\": \"" + digits + "\"}");
  reads("{\"filter\":\"" + digits + "\", " + rest + "}");
  reads("{\"filter\":\"" + digits + "\", \"note\": \"digits elsewhere\", " + rest + "}");
  reads("{\"note\": \"filter\", \"filter\" \n:\t\"" + digits + "\", " + rest + "}");
  reads("{\"filter\": 1, \"x\": \"0x1\", \"filter\": \"" + digits + "\", " + rest + "}");
  reads("{\"filt\\u0065r\": \"" + digits + "\", " + rest + "}");
  reads("{\"filter\": \"\\u0030x" + digits.substr(2) + "\", " + rest + "}");
  for (const std::string& text : {"{\"filter\": \"digits elsewhere\", " + rest + "}",
                                  "{\"filter\": \"" + digits + ", " + rest + "}",
                                  "{\"filter\": \"1\", \"x\": \"" + digits + "\", " + rest + "}",
                                  "{\"x\": {\"filter\": \"" + digits + "\"}, " + rest + "}"}) {
    CAPTURE(text.substr(0, 80));
    CHECK_FALSE(read_bloomnames_json(text).has_value());
  }
}

TEST_CASE("bloomnames is sized as in the published place", "[published]") {
  const ClassicSizing sizing = size_classic({3000, 0.01});
  CHECK(sizing.bits == 28'756);
  CHECK(sizing.hashes == 7);
}

TEST_CASE("What is written as bloomnames is read again", "[published]") {
  const BloomFilter filter = published();
  const std::string hex = write_bloomnames(filter).value();
  for (const std::string& text : {hex, "0x" + std::string(7500 - 7185, '0') + hex.substr(2, 7185),
                                  "\n " + hex + "\r\n", with(hex, "0x", "0X")}) {
    const auto again = read_bloomnames(text);
    REQUIRE(again.has_value());
    CHECK(again->test("jcgregorio"));
    CHECK(again->test("barney"));
    CHECK_FALSE(again->test("fred"));
    CHECK(again->insertions() == 2);
    CHECK(write_bloomnames(*again).value() == hex);
  }
  const auto json = read_bloomnames_json(write_bloomnames_json(filter));
  REQUIRE(json.has_value());
  CHECK(write_bloomnames(*json).value() == hex);
}

TEST_CASE("An empty filter is the number nothing", "[published]") {
  const auto empty = BloomFilter::create(bloomnames_parameters());
  CHECK(write_bloomnames(*empty).value() == "0x0L\n");
  CHECK(write_bloomnames_decimal(*empty).value() == "0\n");
  CHECK(read_bloomnames("0x0L\n")->set_bits() == 0);
}

TEST_CASE("Any plain filter has a JSON form", "[published]") {
  for (const Layout layout :
       {Layout::kClassic, Layout::kPartitioned, Layout::kBlocked, Layout::kSplit}) {
    CAPTURE(to_string(layout));
    const FilterParameters parameters{.layout = layout,
                                      .hash = HashFamily::kMurmur3,
                                      .bits = 5000,
                                      .hashes = 8,
                                      .capacity = 321,
                                      .seed = {7, 9}};
    auto filter = BloomFilter::create(parameters);
    REQUIRE(filter.has_value());
    for (int i = 0; i < 200; ++i) {
      filter->add("key " + std::to_string(i));
    }
    const auto again = read_bloomnames_json(write_bloomnames_json(*filter));
    REQUIRE(again.has_value());
    CHECK(again->parameters() == filter->parameters());
    CHECK(again->raw_bits() == filter->raw_bits());
    CHECK(again->test("key 17"));
  }
}

TEST_CASE("A large filter keeps its digits in JSON, and needs them", "[published]") {
  const FilterParameters parameters{.layout = Layout::kClassic,
                                    .hash = HashFamily::kXxh3,
                                    .bits = (std::uint64_t{1} << 20U) + 2,
                                    .hashes = 1,
                                    .capacity = 10,
                                    .seed = {}};
  const auto filter = BloomFilter::create(parameters);
  const std::string json = write_bloomnames_json(*filter);
  CHECK(json.size() > (std::size_t{1} << 18U));
  CHECK(read_bloomnames_json(json).has_value());
  const auto refused = read_bloomnames_json(with(json, "0x0000000", "0x"));
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().message.find("digits") != std::string::npos);
}

TEST_CASE("Bits beyond the filter's and other digits are refused", "[published]") {
  CHECK(read_hex_number("0x7L", 3).value() == "\x07");
  CHECK(read_hex_number("0x0008L", 4).value() == "\x08");
  CHECK_FALSE(read_hex_number("0x8L", 3).has_value());
  CHECK_FALSE(read_hex_number("0x10L", 4).has_value());
  CHECK_FALSE(read_hex_number("0x100L", 8).has_value());
  CHECK(read_hex_number("0xffL", 8).value() == "\xff");
  for (const char* text :
       {"", "0", "0x", "0xL", "x1", "12", "0xg", "0x1LL", "0x1 2", "0x-1", "L"}) {
    CAPTURE(text);
    CHECK_FALSE(read_hex_number(text, 64).has_value());
    CHECK_FALSE(read_bloomnames(text).has_value());
  }
  // Bit 30000 is the first beyond.
  CHECK(read_bloomnames("0x8" + std::string(7499, '0') + "L").has_value());
  CHECK_FALSE(read_bloomnames("0x1" + std::string(7500, '0') + "L").has_value());
  CHECK_FALSE(read_bloomnames("0x1" + std::string(1'000'000, '0') + "L").has_value());
}

TEST_CASE("JSON that is no filter is refused", "[published]") {
  const auto read = read_bloomnames_json(valid_json());
  REQUIRE(read.has_value());
  CHECK(read->set_bits() == 8);
  CHECK(read->parameters().layout == Layout::kClassic);
  const std::pair<const char*, const char*> defects[] = {{"16", "0"},
                                                         {"16", "-16"},
                                                         {"16", "16.5"},
                                                         {"16", "\"16\""},
                                                         {"16", "9223372036854775808"},
                                                         {"16", "18446744073709551615"},
                                                         {"16", "4398046511104"},
                                                         {"16", "1048577"},
                                                         {"16", "15"},
                                                         {"3,", "0,"},
                                                         {"3,", "9,"},
                                                         {"3,", "4294967299,"},
                                                         {"\"k\"", "\"l\""},
                                                         {"\"m\"", "\"n\""},
                                                         {"\"hash\"", "\"hush\""},
                                                         {"\"filter\"", "\"falter\""},
                                                         {"sha1-fields20", "rot13"},
                                                         {"\"sha1-fields20\"", "20"},
                                                         {"\"0x9e64L\"", "40548"},
                                                         {"0x9e64L", "0x19e64L"},
                                                         {"0x9e64L", "0x9g64L"},
                                                         {"{", "[{"},
                                                         {"{", R"({"layout": "split", )"},
                                                         {"{", R"({"layout": 7, )"},
                                                         {"{", R"({"capacity": 0, )"},
                                                         {"{", R"({"seed": "xyz", )"},
                                                         {"{", R"({"seed": "01", )"}};
  for (const auto& [from, to] : defects) {
    const std::string text = with(valid_json(), from, to);
    CAPTURE(text);
    const auto refused = read_bloomnames_json(text);
    REQUIRE_FALSE(refused.has_value());
    CHECK(refused.error().message.starts_with("bloomnames JSON refused: "));
  }
  for (std::size_t size = 0; size < valid_json().size(); ++size) {
    CAPTURE(size);
    CHECK_FALSE(read_bloomnames_json(valid_json().substr(0, size)).has_value());
  }
  CHECK_FALSE(read_bloomnames_json(std::string(100'000, '[')).has_value());
}

TEST_CASE("Other filters are no bloomnames", "[published]") {
  FilterParameters parameters = bloomnames_parameters();
  parameters.hashes = 6;
  CHECK_FALSE(write_bloomnames(*BloomFilter::create(parameters)).has_value());
  parameters = bloomnames_parameters();
  parameters.bits = 29'999;
  CHECK_FALSE(write_bloomnames(*BloomFilter::create(parameters)).has_value());
  parameters = bloomnames_parameters();
  parameters.hash = HashFamily::kXxh3;
  const auto refused = write_bloomnames(*BloomFilter::create(parameters));
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().message.find("7 hashes xxh3 is no bloomnames filter") != std::string::npos);
}

}  // namespace encore::filter
