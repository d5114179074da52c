#include "filter/mapped_filter.h"

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "filter/any_filter.h"
#include "tests/catch.h"
#include "tests/filter/judge.h"
#include "tests/filter/saved_bytes.h"
#include "tests/temporary_directory.h"

namespace encore::filter {
namespace {

using server::TemporaryDirectory;
using testing::Key;
using testing::kSeed;
using Access = MappedFilter::Access;

FilterParameters mapped_parameters(Layout layout, std::uint64_t bits) {
  return {.layout = layout, .bits = bits, .hashes = 8, .capacity = bits / 12, .seed = kSeed};
}

std::string read(const std::string& path) { return server::read_text(path); }
void write(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

MappedFilter opened(const std::string& path, Access access) {
  auto mapped = MappedFilter::open(path, access);
  REQUIRE(mapped);
  return std::move(*mapped);
}

std::string open_refusal(const std::string& path, Access access = Access::kRead) {
  const auto mapped = MappedFilter::open(path, access);
  return mapped ? "none" : mapped.error().message;
}

}  // namespace

TEST_CASE("a mapped filter of every layout is the filter that it was saved as", "[filter]") {
  const TemporaryDirectory directory;
  for (const Layout layout :
       {Layout::kClassic, Layout::kPartitioned, Layout::kBlocked, Layout::kSplit}) {
    CAPTURE(to_string(layout));
    const std::string path = directory / std::string(to_string(layout));
    auto plain = BloomFilter::create(mapped_parameters(layout, 10'000));
    REQUIRE(plain);
    {
      auto mapped = MappedFilter::create(path, mapped_parameters(layout, 10'000));
      REQUIRE(mapped);
      for (std::uint32_t i = 0; i < 800; ++i) {
        REQUIRE(mapped->add(Key(0, i % 700).bytes()) == plain->add(Key(0, i % 700).bytes()));
      }
      REQUIRE(mapped->sync());
      CHECK(read(path) == plain->save());
      CHECK(mapped->verify());
    }
    CHECK(read(path) == plain->save());
    const MappedFilter mapped = opened(path, Access::kRead);
    CHECK(mapped.filter().parameters() == plain->parameters());
    CHECK(mapped.filter().set_bits() == plain->set_bits());
    CHECK(mapped.filter().insertions() == plain->insertions());
    CHECK(mapped.filter().fpr_from_bits() == plain->fpr_from_bits());
    CHECK(mapped.filter().copy()->save() == plain->save());
    CHECK(mapped.verify());
    for (std::uint32_t i = 0; i < 5000; ++i) {
      REQUIRE(mapped.filter().test(Key(0, i).bytes()) == plain->test(Key(0, i).bytes()));
    }
    CHECK(AnyFilter::load(read(path)));
  }
}

TEST_CASE("a mapped filter meets theory, and goes on where it was left", "[filter][theory]") {
  const TemporaryDirectory directory;
  const std::string path = directory / "filter";
  REQUIRE(MappedFilter::create(path, mapped_parameters(Layout::kSplit, 102'400))->sync());
  std::uint32_t next = 0;
  for (const std::uint32_t keys : {4000U, 8000U, 16'000U}) {
    CAPTURE(keys);
    MappedFilter mapped = opened(path, Access::kWrite);
    for (; next < keys; ++next) {
      mapped.add(Key(0, next).bytes());
    }
    for (std::uint32_t i = 0; i < keys; ++i) {
      REQUIRE(mapped.filter().test(Key(0, i).bytes()));
    }
    const double deviation = testing::false_positive_deviation(
        60'000, mapped.filter().fpr_from_bits(),
        [&](std::string_view key) { return mapped.filter().test(key); });
    CHECK(std::abs(deviation) < testing::kSigmas);
    REQUIRE(mapped.sync());
  }
}

TEST_CASE("one process writes a mapped filter, another sees it", "[filter]") {
  const TemporaryDirectory directory;
  const std::string path = directory / "filter";
  auto writer = MappedFilter::create(path, mapped_parameters(Layout::kSplit, 10'240));
  REQUIRE(writer);
  const MappedFilter reader = opened(path, Access::kRead);
  CHECK_FALSE(reader.filter().test("a key"));
  const pid_t child = fork();
  if (child == 0) {
    // The mapping is shared; only one process has it open for writing, by its lock.
    writer->add("a key");
    std::_Exit(open_refusal(path, Access::kWrite) == path + " is open for writing elsewhere" ? 0
                                                                                             : 1);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  CHECK(reader.filter().test("a key"));
  CHECK(open_refusal(path, Access::kWrite) == path + " is open for writing elsewhere");
}

TEST_CASE("a file that was left half written is refused, also by whoever reads it whole",
          "[filter]") {
  const TemporaryDirectory directory;
  const std::string path = directory / "filter";
  const std::string torn = directory / "torn";
  auto writer = MappedFilter::create(path, mapped_parameters(Layout::kSplit, 10'240));
  REQUIRE(writer);
  const auto left_behind = [&] {
    write(torn, read(path));
    return open_refusal(torn) != "none" && open_refusal(torn, Access::kWrite) != "none" &&
           !BloomFilter::load(read(torn));
  };
  // From its creation on, after each write, and not after what was written is all there.
  CHECK(left_behind());
  CHECK(open_refusal(torn).find("it was being written") != std::string::npos);
  REQUIRE(writer->sync());
  CHECK_FALSE(left_behind());
  writer->add("a key");
  CHECK(left_behind());
  REQUIRE(writer->sync());
  CHECK_FALSE(left_behind());
  CHECK_FALSE(writer->add("a key"));
  CHECK_FALSE(left_behind());
  REQUIRE(writer->merge(*writer->filter().copy()));
  CHECK(left_behind());
}

TEST_CASE("foreign files and headers that cannot be are refused on opening", "[filter]") {
  const TemporaryDirectory directory;
  const std::string path = directory / "filter";
  CHECK(open_refusal(path).starts_with("cannot open " + path + ": "));
  CHECK(open_refusal(directory.path()) != "none");
  {
    auto mapped = MappedFilter::create(path, mapped_parameters(Layout::kClassic, 500));
    REQUIRE(mapped);
    for (std::uint32_t i = 0; i < 30; ++i) mapped->add(Key(0, i).bytes());
    REQUIRE(mapped->sync());
  }
  CHECK_FALSE(MappedFilter::create(path, mapped_parameters(Layout::kClassic, 500)));
  CHECK(open_refusal(path) == "none");
  const std::string good = read(path);
  const std::string other = directory / "other";
  for (std::size_t size = 0; size < good.size(); ++size) {
    write(other, good.substr(0, size));
    REQUIRE(open_refusal(other).find("refused: ") != std::string::npos);
  }
  write(other, good + '\0');
  CHECK(open_refusal(other).find("bytes, expected ") != std::string::npos);
  for (const std::uint64_t bits :
       {std::uint64_t{0}, std::uint64_t{513}, kBitsMax, std::uint64_t{1} << 63U, UINT64_MAX}) {
    write(other, testing::with_number(good, testing::kBitsAt, bits));
    CHECK(open_refusal(other).find("refused: ") != std::string::npos);
  }
  auto counting = CountingFilter::create(mapped_parameters(Layout::kClassic, 500));
  write(other, counting->save());
  CHECK(open_refusal(other).find("kind 4, expected 1") != std::string::npos);
  // Damage that opening does not check is found by verify(); likewise the flipped bit of a header
  // that remains one.
  for (const std::size_t at : {testing::kLinesAt, good.size() - 1, testing::kBitsAt + 16}) {
    CAPTURE(at);
    std::string damaged = good;
    damaged[at] = static_cast<char>(damaged[at] ^ 1);
    write(other, damaged);
    CHECK(open_refusal(other) == "none");
    CHECK_FALSE(opened(other, Access::kRead).verify());
  }
  // With the checksum made right, bits beyond the end and a wrong count.
  std::string beyond = good;
  beyond[testing::kLinesAt + 63] = 1;
  write(other, testing::resealed(beyond));
  CHECK(opened(other, Access::kRead).verify().error().message.find("bits beyond the end") !=
        std::string::npos);
  std::string miscounted = good;
  miscounted[testing::kLinesAt] = static_cast<char>(~miscounted[testing::kLinesAt]);
  miscounted[testing::kLinesAt + 1] = static_cast<char>(0xff);
  write(other, testing::resealed(miscounted));
  CHECK(opened(other, Access::kRead).verify().error().message.find("stated") != std::string::npos);
}

TEST_CASE("a mapped filter of many gigabytes is there at once, and takes what is written",
          "[filter]") {
  const TemporaryDirectory directory;
  const std::string path = directory / "large";
  const FilterParameters large = mapped_parameters(Layout::kSplit, std::uint64_t{1} << 36U);
  auto mapped = MappedFilter::create(path, large);
  REQUIRE(mapped);
  CHECK(std::filesystem::file_size(path) == (std::uint64_t{1} << 33U) + 128 + 8);
  CHECK(mapped->add("a key"));
  CHECK(mapped->filter().test("a key"));
  CHECK_FALSE(mapped->filter().test("another"));
  struct stat status{};
  REQUIRE(stat(path.c_str(), &status) == 0);
  CHECK(status.st_blocks < 1024);  // blocks of 512 bytes
}

}  // namespace encore::filter
