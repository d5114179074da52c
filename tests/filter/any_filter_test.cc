#include "filter/any_filter.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <vector>

#include "filter/rotating_bloom_filter.h"
#include "filter/theory.h"
#include "tests/catch.h"
#include "tests/filter/judge.h"

namespace encore::filter {
namespace {

using testing::ask_in_batch;
using testing::Key;

constexpr std::array kKinds{FilterKind::kPlain, FilterKind::kScalable, FilterKind::kGrowable,
                            FilterKind::kCounting};

AnyFilter make_any(const AnyFilterOptions& options) {
  auto filter = AnyFilter::create(options);
  REQUIRE(filter);
  return std::move(*filter);
}

AnyFilterOptions plain(std::uint64_t capacity, double fpr) {
  AnyFilterOptions options;
  options.parameters.hashes = 0;
  options.parameters.capacity = capacity;
  options.fpr = fpr;
  return options;
}

std::string refusal(const AnyFilterOptions& options) {
  const auto filter = AnyFilter::create(options);
  REQUIRE_FALSE(filter);
  return filter.error().message;
}

}  // namespace

TEST_CASE("kinds have names, and other names are refused with those that are taken", "[filter]") {
  for (const FilterKind kind : kKinds) {
    CHECK(parse_kind(to_string(kind)) == kind);
  }
  CHECK(parse_kind("plane").error().message.starts_with(
      "unknown kind of filter \"plane\", accepted: plain"));
}

TEST_CASE("a filter takes its size from capacity and rate, or from what is given", "[filter]") {
  const AnyFilterInfo sized = make_any(plain(5000, 0.01)).info();
  CHECK(sized.parameters.bits == size_for(Layout::kSplit, {5000, 0.01}).bits);
  CHECK(sized.fpr_capacity <= 0.01);
  CHECK(sized.capacity == 5000);
  AnyFilterOptions options = plain(0, 0);
  options.parameters.layout = Layout::kClassic;
  options.parameters.bits = 1000;
  options.parameters.hashes = 7;
  CHECK(make_any(options).info().capacity == 99);
  options.parameters.hashes = 0;
  options.parameters.capacity = 100;
  CHECK(make_any(options).info().parameters.hashes == 7);
}

TEST_CASE("options that give no size are refused", "[filter]") {
  CHECK(refusal(plain(0, 0.01)).starts_with("a filter for 0 keys at a rate of 0.01"));
  CHECK(refusal(plain(10, 0)).starts_with("a filter for 10 keys at a rate of 0.0"));
  CHECK(refusal(plain(10, 1)).starts_with("a filter for 10 keys at a rate of 1.0"));
  CHECK(refusal(plain(UINT64_MAX, 0.01)).starts_with("no filter of up to"));
  AnyFilterOptions options = plain(0, 0);
  options.parameters.bits = 1000;
  CHECK(refusal(options).starts_with("a filter of 1000 bits with neither hashes nor a capacity"));
  options.parameters.hashes = 7;
  CHECK(refusal(options).starts_with("split filter with 7 hashes"));
}

TEST_CASE("a batch of keys is answered as they are one by one", "[filter]") {
  AnyFilter filter = make_any(plain(1000, 0.1));
  for (std::uint32_t i = 0; i < 1000; ++i) {
    filter.add(Key(0, i).bytes());
  }
  const auto batch = ask_in_batch(filter, 500, 1801, 1000);
  CHECK(batch.wrong == 0);
  CHECK(batch.there < 1301);
}

TEST_CASE("what a filter knows of itself is near the truth", "[filter][theory]") {
  for (const Layout layout :
       {Layout::kClassic, Layout::kPartitioned, Layout::kBlocked, Layout::kSplit}) {
    CAPTURE(to_string(layout));
    AnyFilterOptions options = plain(50'000, 0.01);
    options.parameters.layout = layout;
    AnyFilter filter = make_any(options);
    for (std::uint32_t i = 0; i < 50'000; ++i) {
      filter.add(Key(0, i).bytes());
    }
    const AnyFilterInfo info = filter.info();
    CHECK(info.keys_estimated == Approx(50'000).epsilon(0.01));
    CHECK(info.fpr_now == Approx(info.fpr_capacity).epsilon(0.05));
    CHECK(info.fill ==
          Approx(static_cast<double>(info.set_bits) / static_cast<double>(info.parameters.bits)));
  }
}

TEST_CASE("a filter that cannot remove says so", "[filter]") {
  const auto removed = make_any(plain(10, 0.1)).remove("a");
  REQUIRE_FALSE(removed);
  CHECK(removed.error().message.starts_with("a plain filter forgets no single key"));
}

TEST_CASE("a counting filter forgets, and counts what it could not count", "[filter]") {
  AnyFilterOptions options = plain(100, 0.01);
  options.kind = FilterKind::kCounting;
  AnyFilter filter = make_any(options);
  CHECK(filter.add("a"));
  CHECK_FALSE(filter.add("a"));
  CHECK(filter.remove("a") == true);
  CHECK(filter.test("a"));
  CHECK(filter.to_plain()->test("a"));
  CHECK(filter.remove("a") == true);
  CHECK_FALSE(filter.test("a"));
  CHECK(filter.remove("a") == false);
  CHECK(filter.info().overflows == 0);
  for (int i = 0; i < 16; ++i) {
    filter.add("a");
  }
  CHECK(filter.info().overflows == 8);
}

TEST_CASE("a growing filter says how it stands, and what it will keep to", "[filter]") {
  AnyFilterOptions options = plain(100, 0.01);
  options.kind = FilterKind::kScalable;
  options.parameters.layout = Layout::kClassic;
  AnyFilter filter = make_any(options);
  CHECK(filter.info().slices == 1);
  CHECK(filter.to_plain());
  for (std::uint32_t i = 0; i < 1000; ++i) {
    filter.add(Key(0, i).bytes());
  }
  AnyFilterInfo info = filter.info();
  CHECK(info.kind == FilterKind::kScalable);
  CHECK(info.slices == 4);
  CHECK(info.capacity == 1500);
  CHECK(info.keys_estimated == Approx(1000).epsilon(0.05));
  CHECK(info.fpr_capacity == 0.01);
  CHECK(info.fpr_now < 0.01);
  CHECK(filter.to_plain().error().message ==
        "a filter of 4 slices cannot be made one plain filter");
  CHECK(filter.remove("a").error().message.starts_with("a scalable filter forgets no single key"));

  options.kind = FilterKind::kGrowable;
  AnyFilter list = make_any(options);
  for (std::uint32_t i = 0; i < 1000; ++i) {
    list.add(Key(0, i).bytes());
  }
  info = list.info();
  CHECK(info.kind == FilterKind::kGrowable);
  CHECK(info.slices == 10);
  CHECK(info.fpr_capacity == Approx(1 - std::pow(0.99, 10)));
  CHECK(list.remove("a").error().message.starts_with("a growable filter forgets no single key"));

  options.parameters.bits = 1000;
  CHECK(refusal(options).starts_with("a growable filter of 1000 bits"));
  options.parameters.bits = 0;
  options.parameters.hashes = 5;
  CHECK(refusal(options).starts_with("a growable filter with 5 hashes"));
  options.parameters.hashes = 0;
  options.kind = FilterKind::kScalable;
  options.tightening = 1;
  CHECK(refusal(options).starts_with("a scalable filter whose rates do not tighten"));
}

TEST_CASE("filters of one kind are united and intersected, others refused", "[filter]") {
  for (const FilterKind kind : kKinds) {
    CAPTURE(to_string(kind));
    AnyFilterOptions options = plain(100, 0.01);
    options.kind = kind;
    AnyFilter a = make_any(options);
    AnyFilter b = make_any(options);
    a.add("a");
    b.add("b");
    REQUIRE(a.unite(b));
    CHECK(a.test("a"));
    CHECK(a.test("b"));
    const bool grows = kind == FilterKind::kScalable || kind == FilterKind::kGrowable;
    CHECK(a.intersect(b).has_value() == !grows);
    CHECK(a.test("a") == grows);
    CHECK(a.test("b"));
    options.parameters.seed = {1, 2};
    CHECK(a.unite(make_any(options)).error().message.starts_with("filters with different seeds"));
    CHECK(a.to_plain()->test("b"));
  }
  AnyFilterOptions counting = plain(100, 0.01);
  counting.kind = FilterKind::kCounting;
  AnyFilter filter = make_any(plain(100, 0.01));
  CHECK(filter.unite(make_any(counting)).error().message ==
        "a plain and a counting filter cannot be united");
  CHECK(filter.intersect(make_any(counting)).error().message ==
        "a plain and a counting filter cannot be intersected");
}

TEST_CASE("a saved filter of any kind loads, a ring is refused", "[filter]") {
  for (const FilterKind kind : kKinds) {
    AnyFilterOptions options = plain(100, 0.01);
    options.kind = kind;
    AnyFilter filter = make_any(options);
    filter.add("a");
    const auto loaded = AnyFilter::load(filter.save());
    REQUIRE(loaded);
    CHECK(loaded->kind() == kind);
    CHECK(loaded->test("a"));
    CHECK(loaded->save() == filter.save());
  }
  RotatingOptions ring;
  ring.parameters = {.bits = 512, .capacity = 10, .seed = {}};
  const std::string saved = RotatingBloomFilter::create(ring, {})->save({});
  const auto refused = AnyFilter::load(saved);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().message ==
        "saved filter refused: a rotating one, accepted: a single filter");
  for (const std::size_t size : {0U, 8U, 71U}) {
    CHECK_FALSE(AnyFilter::load(std::string_view(saved).substr(0, size)));
  }
  std::string unknown = saved;
  unknown[12] = 99;
  CHECK(AnyFilter::load(unknown).error().message == "saved filter refused: unknown kind 99");
}

}  // namespace encore::filter
