// Filters in files: what is read of them, and what is refused before it is.
#include "filter/cli/filter_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "tests/catch.h"
#include "tests/filter_cli/run.h"
#include "tests/temporary_directory.h"

namespace encore::filter {
namespace {

AnyFilter filled(FilterKind kind, std::uint32_t keys, Layout layout = Layout::kSplit) {
  AnyFilterOptions options;
  options.kind = kind;
  options.fpr = 0.01;
  options.parameters.layout = layout;
  options.parameters.capacity = kind == FilterKind::kScalable ? 100 : 1000;
  auto filter = AnyFilter::create(options);
  REQUIRE(filter.has_value());
  for (std::uint32_t i = 0; i < keys; ++i) {
    filter->add("key" + std::to_string(i));
  }
  return std::move(*filter);
}

// A file, and ways to read it.
struct File {
  server::TemporaryDirectory directory;
  std::string path = directory / "filter";
  void write(const std::string& bytes) const {
    std::ofstream(path, std::ios::binary)
        .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  }
  Result<FilterFile> load(const InputFormat& as = {}) const { return load_filter(path, -1, as); }
  // Through a pipe, which knows no size.
  Result<FilterFile> load_piped(const std::string& bytes, const InputFormat& as = {}) const {
    int ends[2] = {};
    REQUIRE(::pipe(ends) == 0);
    REQUIRE(::fcntl(ends[1], F_SETPIPE_SZ, 1 << 20) > 0);
    REQUIRE(::write(ends[1], bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()));
    ::close(ends[1]);
    auto loaded = load_filter("-", ends[0], as);
    ::close(ends[0]);
    return loaded;
  }
};

}  // namespace

TEST_CASE("A filter is the same by whatever way it is read", "[filter-cli]") {
  const File file;
  for (const FilterKind kind :
       {FilterKind::kPlain, FilterKind::kScalable, FilterKind::kGrowable, FilterKind::kCounting}) {
    for (const std::uint32_t keys : {0U, 1U, 999U}) {
      CAPTURE(to_string(kind), keys);
      const std::string bytes = filled(kind, keys).save();
      file.write(bytes);
      const auto from_file = file.load();
      const auto from_pipe = file.load_piped(bytes);
      REQUIRE(from_file.has_value());
      REQUIRE(from_pipe.has_value());
      CHECK(from_file->filter.save() == bytes);
      CHECK(from_pipe->filter.save() == bytes);
    }
  }
  for (const Form form : {Form::kBloomnamesJson, Form::kRaw}) {
    const AnyFilter filter = filled(FilterKind::kPlain, 500);
    const std::string bytes = write_form(filter, form).value();
    const InputFormat as{.form = form, .of_raw = filter.plain()->parameters()};
    file.write(bytes);
    CHECK(file.load(as)->filter.plain()->raw_bits() == filter.plain()->raw_bits());
    CHECK(file.load_piped(bytes, as)->filter.plain()->raw_bits() == filter.plain()->raw_bits());
  }
}

TEST_CASE("Whatever is changed in a file of a filter, it is refused", "[filter-cli]") {
  const File file;
  for (const FilterKind kind : {FilterKind::kPlain, FilterKind::kScalable, FilterKind::kCounting}) {
    const std::string bytes = filled(kind, 300).save();
    std::mt19937 random(20260101);
    std::vector<std::string> hostile = {bytes + "x", bytes.substr(0, bytes.size() - 1)};
    for (std::size_t at = 0; at < 200; ++at) {
      const std::size_t place = at < 128 ? at : random() % bytes.size();
      hostile.push_back(bytes);
      hostile.back()[place] =
          static_cast<char>(hostile.back()[place] ^ static_cast<char>(1U << (random() % 8)));
      hostile.push_back(bytes.substr(0, random() % bytes.size()));
    }
    for (const std::string& changed : hostile) {
      file.write(changed);
      REQUIRE_FALSE(file.load().has_value());
      REQUIRE_FALSE(file.load_piped(changed).has_value());
    }
  }
}

TEST_CASE("A file of a size that its head does not state is not read", "[filter-cli]") {
  const File file;
  const auto refuses = [&](const std::string& bytes, const std::string& because,
                           const InputFormat& as = {}) {
    file.write(bytes);
    // Sparse: it would take what no machine has.
    std::filesystem::resize_file(file.path, std::uint64_t{1} << 42U);
    const auto loaded = file.load(as);
    REQUIRE_FALSE(loaded.has_value());
    CHECK(loaded.error().message == file.path + ": refused: 4398046511104 bytes, " + because);
  };
  for (const FilterKind kind : {FilterKind::kPlain, FilterKind::kScalable, FilterKind::kCounting}) {
    const std::string bytes = filled(kind, 300).save();
    refuses(bytes, "expected " + std::to_string(bytes.size()));
  }
  refuses("0x1L", "accepted: up to 65536");
  const InputFormat raw{.form = Form::kRaw,
                        .of_raw = filled(FilterKind::kPlain, 0).plain()->parameters()};
  refuses("abc", "expected " + std::to_string(raw.of_raw.bits / 8), raw);
  AnyFilterOptions digest;
  digest.kind = FilterKind::kPlain;
  digest.parameters = {.layout = Layout::kClassic,
                       .hash = HashFamily::kSquidMd5,
                       .bits = 800,
                       .hashes = 4,
                       .capacity = 160,
                       .seed = {}};
  refuses(write_form(AnyFilter::create(digest).value(), Form::kSquidDigest).value(),
          "expected 228");
}

TEST_CASE("What has no end is refused", "[filter-cli]") {
  check_refused(run("info /dev/zero"), "/dev/zero: these ");
  const File file;
  // As much as a pipe holds: more than any number has.
  const auto loaded = file.load_piped("0x" + std::string(300'000, '0'));
  REQUIRE_FALSE(loaded.has_value());
  CHECK(loaded.error().message == "-: refused: more than 65536 bytes, accepted: up to 65536");
}

}  // namespace encore::filter
