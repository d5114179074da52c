#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "cache/journal.h"
#include "cache/kernel.h"
#include "tests/catch.h"
#include "tests/sim/directory.h"
#include "tests/sim/run.h"
#include "tests/sim/trace_bytes.h"

namespace encore::sim {
namespace {

// The journal of a small cache under a small workload, with evictions, expiries and rotations.
std::string make_journal() {
  cache::KernelOptions options;
  options.capacity_bytes = 20000;
  options.shards = 2;
  options.max_object_share = 1;
  options.admission.filter.bits = 1U << 12U;
  options.admission.filter.capacity = 100;
  options.admission.filter.seed = {3, 3};
  options.identity_seed = {3, 3};
  cache::JournalRecorder recorder(cache::journal_head(options, MonotonicTime{}));
  auto kernel = cache::Kernel::create(options, {.observer = &recorder}, MonotonicTime{});
  REQUIRE(kernel);
  for (std::uint64_t i = 0; i < 5000; ++i) {
    const MonotonicTime now{std::chrono::seconds(i)};
    const std::string text = std::to_string(i * i % 701);
    const cache::Key key = filter::identify(options.identity_seed, text);
    if ((*kernel)->lookup(key, now).state == cache::LookupState::kMiss &&
        is_stored((*kernel)->admit(key, {}, now)) &&
        (*kernel)->reserve(key, 500, now) == cache::ReserveOutcome::kReserved) {
      (*kernel)->commit(key,
                        {.charge_bytes = 400,
                         .fresh_until = now + std::chrono::seconds(500),
                         .keep_until = now + std::chrono::seconds(600)},
                        500, now);
    }
  }
  return recorder.take();
}

}  // namespace

TEST_CASE("The output of verify is checked", "[sim][verify]") {
  const Directory directory;
  check_output_is_checked("verify --no-timing " + directory.write("journal", make_journal()));
}

TEST_CASE("A journal is verified, and one changed decision is found", "[sim][verify]") {
  const auto path =
      (std::filesystem::temp_directory_path() / ("encore_verify_" + std::to_string(::getpid())))
          .string();
  const std::string journal = make_journal();
  std::ofstream(path, std::ios::binary) << journal;
  const Ran good = run("verify " + path + " --no-timing");
  CHECK(good.exit_code == 0);
  CHECK(good.out.find(" 0 differences.") != std::string::npos);
  CHECK(good.out.find("rotations") != std::string::npos);

  // Somewhere in the second half a byte is another: the journal is refused or a decision differs.
  std::size_t found = 0;
  for (std::size_t at = journal.size() / 2; at < journal.size() / 2 + 40; ++at) {
    std::string changed = journal;
    changed[at] = static_cast<char>(changed[at] ^ 1);
    std::ofstream(path, std::ios::binary | std::ios::trunc) << changed;
    const Ran bad = run("verify " + path + " --no-timing");
    found += bad.exit_code != 0 ? 1U : 0U;
  }
  // A changed time, or the key of a miss, may leave every decision as it was.
  CHECK(found >= 10);

  std::ofstream(path, std::ios::binary | std::ios::trunc) << journal.substr(0, journal.size() - 1);
  CHECK(run("verify " + path).exit_code == 2);
  std::ofstream(path, std::ios::binary | std::ios::trunc) << "no journal";
  CHECK(run("verify " + path).exit_code == 2);
  CHECK(run("verify /nonexistent").exit_code == 2);
  std::filesystem::remove(path);
}

TEST_CASE("A journal whose archive is cut off is not verified, wherever its records end",
          "[sim][verify]") {
  const Directory directory;
  const std::string path = directory.write("journal.gz", gzip(make_journal()));
  CHECK(run("verify " + path).exit_code == 0);
  // The checksum behind the last byte is damaged: all records are there.
  std::string archive = gzip(make_journal());
  archive[archive.size() - 6] = static_cast<char>(archive[archive.size() - 6] ^ 1);
  const Ran bad = run("verify " + directory.write("damaged.gz", archive));
  CHECK(bad.exit_code == 2);
  CHECK(bad.err.find("damaged.gz") != std::string::npos);
}

}  // namespace encore::sim
