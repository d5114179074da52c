#include "proxy/disk/runs.h"

#include <map>
#include <string>
#include <vector>

#include "base/units.h"
#include "cache/kernel.h"
#include "proxy/disk/aligned_buffer.h"
#include "proxy/disk/disk_witness.h"
#include "proxy/disk/disks.h"
#include "proxy/disk/open.h"
#include "tests/catch.h"
#include "tests/disk/model/memory_file.h"

namespace encore::disk {
namespace {

RunHistory history(std::initializer_list<RunId> runs, bool has_purge = false) {
  RunHistory made;
  for (const RunId run : runs) made.begin(run);
  if (has_purge) made.note_purge();
  return made;
}

}  // namespace

TEST_CASE("a run with a purge makes all earlier ones invalid", "[disk]") {
  RunHistory none;
  CHECK_FALSE(none.note_purge());
  CHECK(none == RunHistory{});
  RunHistory runs = history({5, 6, 7});
  // A disk that remembers no run is of the time before the first.
  for (const RunId run : {0U, 5U, 6U, 7U}) CHECK(runs.is_valid(run));
  CHECK_FALSE(runs.is_valid(8));
  CHECK(runs.note_purge());
  CHECK_FALSE(runs.note_purge());
  for (const RunId run : {0U, 5U, 6U}) CHECK_FALSE(runs.is_valid(run));
  CHECK(runs.is_valid(7));
  runs.begin(8);
  CHECK(runs.is_valid(7));
  CHECK(runs.is_valid(8));
  CHECK_FALSE(runs.is_valid(6));
}

TEST_CASE("a history keeps as many runs as a superblock takes, and what is valid of them",
          "[disk]") {
  RunHistory runs = history({1000}, true);
  for (RunId run = 1; run < RunHistory::kRunsMax; ++run) {
    runs.begin(run);
    CHECK(runs.is_valid(1000));
  }
  CHECK(runs.runs().size() == RunHistory::kRunsMax);
  CHECK_FALSE(runs.is_valid(0));
  runs.begin(RunHistory::kRunsMax);
  CHECK_FALSE(runs.has(1000));
  CHECK(runs.is_valid(1));
  CHECK(runs.newest() == RunHistory::kRunsMax);
  CHECK(runs.number() == RunHistory::kRunsMax + 1);
  CHECK(runs.oldest_number() == 2);
}

TEST_CASE("what was not saved by encore is no history", "[disk]") {
  const std::vector<RunId> two = {0, 9};
  CHECK(RunHistory::restore(1, 1, two) == history({9}, true));
  CHECK_FALSE(RunHistory::restore(1, 2, two));
  CHECK_FALSE(RunHistory::restore(0, 0, two));
  CHECK_FALSE(RunHistory::restore(1, 0, std::vector<RunId>{9, 0}));
  CHECK_FALSE(RunHistory::restore(1, 0, {}));
  CHECK(RunHistory::restore(0, 0, {})->empty());
  CHECK_FALSE(RunHistory::restore(90, 0, std::vector<RunId>(RunHistory::kRunsMax + 1, 1)));
}

TEST_CASE("of histories of one cache the newest counts, with the purges of all", "[disk]") {
  const RunHistory before = history({5});
  const RunHistory after = history({5, 6}, true);
  for (const auto& disks : {std::vector{before, after}, std::vector{after, before}}) {
    const KnownRuns known = known_runs({}, disks);
    CHECK(known.history == after);
    CHECK_FALSE(known.is_forked);
  }
  // A purge is known to one of two that took part in the run.
  const std::vector both = {history({5, 6}), after, history({5, 6})};
  CHECK(known_runs({}, both).history == after);
  // The next run began with a disk that had not received it.
  const std::vector later = {history({5, 6, 7})};
  CHECK_FALSE(known_runs(after, later).history.is_valid(5));
  CHECK(known_runs(after, later).history.is_valid(6));
  CHECK(known_runs(history({5, 6, 7}), std::vector{before}).history == history({5, 6, 7}));
}

TEST_CASE("a witness is believed against a disk that does not know its run", "[disk]") {
  const RunHistory witness = history({5, 6}, true);
  const KnownRuns known = known_runs(witness, std::vector{history({5, 8, 9, 10})});
  CHECK(known.history == witness);
  CHECK_FALSE(known.is_forked);
  CHECK_FALSE(known.history.is_valid(10));
}

TEST_CASE("without a witness copies that went on apart are known as such", "[disk]") {
  const std::vector apart = {history({5, 6}), history({5, 8, 9})};
  CHECK(known_runs({}, apart).is_forked);
  // One that was away for longer than a history is none.
  RunHistory old = history({5});
  RunHistory now = history({5});
  for (RunId run = 100; run < 100 + RunHistory::kRunsMax; ++run) now.begin(run);
  for (const auto& disks : {std::vector{old, now}, std::vector{now, old}}) {
    const KnownRuns known = known_runs({}, disks);
    CHECK_FALSE(known.is_forked);
    CHECK(known.history == now);
    CHECK_FALSE(known.history.is_valid(5));
  }
}

TEST_CASE("a superblock keeps its runs, and one of an earlier version has none", "[disk]") {
  MemoryFile file;
  const auto made = open_disk(file, {.disk_bytes = 4 * kMiB,
                                     .segment_bytes = 256 * kKiB,
                                     .identity_seed = {1, 2},
                                     .uuid = {3, 4},
                                     .now = 5});
  REQUIRE(made);
  CHECK(made->runs.empty());
  RunHistory runs = history({5, 6}, true);
  for (RunId run = 7; run < 60; ++run) runs.begin(run);
  const auto remembered = remember_runs(file, *made, runs);
  REQUIRE(remembered);
  CHECK(file.unsynced().empty());
  CHECK(read_superblock(file) == *remembered);
  CHECK(read_superblock(file)->runs == runs);
  // A crash between its two copies leaves one of both.
  AlignedBuffer page(kPageBytes);
  encode(*made, 0, Page(page.first(kPageBytes)));
  REQUIRE(file.write(page.first(kPageBytes), 0));
  CHECK(read_superblock(file) == *remembered);
}

TEST_CASE("a testimony is read as it was written, and nothing else is", "[disk]") {
  const WitnessRecord witness_record{
      .runs = history({5, UINT64_MAX}, true),
      .disks = {{{1, UINT64_MAX}, {3, 4096}}, {{0, 2}, {1, 1U << 20U}}},
  };
  const std::string text = to_text(witness_record);
  CHECK(parse_witness_record(text).value() == witness_record);
  CHECK(witness_record.position_of({0, 2}) == LogPosition{1, 1U << 20U});
  CHECK_FALSE(witness_record.position_of({2, 0}));
  for (std::size_t bytes = 0; bytes < text.size(); ++bytes) {
    const auto part = parse_witness_record(text.substr(0, bytes));
    // A whole line fewer is a disk fewer.
    if (part) CHECK(part->runs == witness_record.runs);
    if (bytes != 0 && text[bytes - 1] != '\n') {
      REQUIRE_FALSE(part);
      CHECK(part.error().message == "its last line is not whole");
    }
  }
  for (const char* wrong :
       {"", "runs 1 0 0 5\n", "encore-disks 1\n", "encore-disks 2\nruns 1 0 0 5\n",
        "encore-disks 1\nruns 1 0 0 5\nruns 1 0 0 5\n", "encore-disks 1\nruns 1 0 0 5 \n",
        "encore-disks 1\nruns 1 0 0 x\n", "encore-disks 1\nruns 1 0 0 5\ndisk 1 2 3\n",
        "encore-disks 1\nruns 1 0 0 10000000000000000\n"}) {
    CAPTURE(wrong);
    CHECK_FALSE(parse_witness_record(wrong));
  }
}

namespace {

// A cache of disks in memory, some of which may be away in a run.
class Cabinet {
 public:
  std::string start(const std::vector<std::string>& paths) {
    DisksOptions options;
    options.identity_seed = {21, 22};
    options.is_inline = true;
    options.open_file = [this](const std::string& path) -> Result<std::unique_ptr<File>> {
      return std::make_unique<FaultFile>(files[path], UINT64_MAX, Fault::kEio, false);
    };
    options.witness.path = "witness";
    options.witness.read = [this](const std::string&) -> Result<std::optional<std::string>> {
      return saved;
    };
    options.witness.write = [this](const std::string&, std::string_view text) -> Result<void> {
      if (fails) return fail("no room");
      ++writes;
      saved = text;
      return {};
    };
    for (const std::string& path : paths) options.disks.push_back({path, 4 * kMiB, 256 * kKiB});
    auto opened = Disks::open(options);
    if (!opened) return opened.error().message;
    disks = std::move(*opened);
    cache::KernelOptions kernel_options;
    kernel_options.capacity_bytes = kMiB;
    kernel_options.admission.policy = cache::AdmissionPolicy::kAlways;
    kernel_options.identity_seed = options.identity_seed;
    kernel_options.disks = disks->kernel_disks();
    auto made = cache::Kernel::create(kernel_options, {}, monotonic_now());
    REQUIRE(made);
    kernel = std::move(*made);
    disks->start(*kernel);
    return "";
  }
  void end() {
    disks.reset();
    kernel.reset();
  }
  void purge() {
    Purge purge;
    purge.kind = PurgeKind::kTag;
    purge.pattern = "tag";
    disks->purge({purge}, [](const Result<void>& how) { CHECK(how); });
  }
  // The numbers of those that were made anew.
  std::vector<std::size_t> emptied() const {
    std::vector<std::size_t> found;
    const auto reports = disks->statistics().disks;
    for (std::size_t i = 0; i < reports.size(); ++i) {
      if (!reports[i].emptied_for.empty()) found.push_back(i);
    }
    return found;
  }

  std::map<std::string, MemoryFile> files;
  std::optional<std::string> saved;
  bool fails = false;
  int writes = 0;
  std::unique_ptr<cache::Kernel> kernel;
  std::unique_ptr<Disks> disks;  // ends before it
};

using Numbers = std::vector<std::size_t>;

}  // namespace

TEST_CASE("a disk that was away at a purge is made anew, and no other is", "[disk]") {
  const bool has_witness = GENERATE(true, false);
  Cabinet cabinet;
  REQUIRE(cabinet.start({"a", "b", "c"}).empty());
  cabinet.purge();
  cabinet.end();
  // A run without a purge is none that anybody misses.
  REQUIRE(cabinet.start({"a"}).empty());
  CHECK(cabinet.emptied().empty());
  cabinet.end();
  REQUIRE(cabinet.start({"a", "b"}).empty());
  CHECK(cabinet.emptied().empty());
  cabinet.purge();
  cabinet.end();
  if (!has_witness) cabinet.saved.reset();
  REQUIRE(cabinet.start({"a", "b", "c"}).empty());
  CHECK(cabinet.emptied() == Numbers{2});
  cabinet.end();
  REQUIRE(cabinet.start({"c", "b", "a"}).empty());
  CHECK(cabinet.emptied().empty());
  cabinet.end();
}

TEST_CASE("a purge of what no disk knows is missed by an absent one", "[disk]") {
  Cabinet cabinet;
  REQUIRE(cabinet.start({"a", "b"}).empty());
  cabinet.end();
  REQUIRE(cabinet.start({"a"}).empty());
  const bool is_asked_for = GENERATE(true, false);
  if (is_asked_for) {
    cabinet.disks->purge({}, [](const Result<void>& how) { CHECK(how); });
  } else {
    cabinet.disks->note_purge();
    cabinet.disks->tick();
  }
  cabinet.end();
  REQUIRE(cabinet.start({"a", "b"}).empty());
  CHECK(cabinet.emptied() == Numbers{1});
  cabinet.end();
}

TEST_CASE("an older copy in the place of a disk is made anew", "[disk]") {
  Cabinet cabinet;
  REQUIRE(cabinet.start({"a"}).empty());
  cabinet.purge();
  const bool is_of_same_run = GENERATE(true, false);
  if (!is_of_same_run) {
    cabinet.end();
    cabinet.files["copy"] = cabinet.files["a"];
    REQUIRE(cabinet.start({"a"}).empty());
  } else {
    cabinet.files["copy"] = cabinet.files["a"];
  }
  cabinet.purge();
  cabinet.end();
  const MemoryFile newest = cabinet.files["a"];
  cabinet.files["a"] = cabinet.files["copy"];
  REQUIRE(cabinet.start({"a"}).empty());
  CHECK(cabinet.emptied() == Numbers{0});
  cabinet.end();
  // Its place has been taken.
  cabinet.files["a"] = newest;
  cabinet.saved.reset();
  REQUIRE(cabinet.start({"a"}).empty());
  CHECK(cabinet.emptied().empty());
}

TEST_CASE("two of one number are not both believed", "[disk]") {
  Cabinet cabinet;
  REQUIRE(cabinet.start({"a"}).empty());
  cabinet.end();
  cabinet.files["copy"] = cabinet.files["a"];
  REQUIRE(cabinet.start({"a", "copy"}).empty());
  CHECK(cabinet.emptied() == Numbers{1});
}

TEST_CASE("a disk of an earlier version is taken until it has missed a purge", "[disk]") {
  Cabinet cabinet;
  const auto make_old = [&](const std::string& path) {
    REQUIRE(open_disk(cabinet.files[path], {.disk_bytes = 4 * kMiB,
                                            .segment_bytes = 256 * kKiB,
                                            .identity_seed = {21, 22},
                                            .uuid = {path.size(), 7}}));
  };
  for (const char* path : {"a", "bb", "ccc"}) make_old(path);
  // An upgrade that ended before it had told all disks.
  REQUIRE(cabinet.start({"a", "bb"}).empty());
  CHECK(cabinet.emptied().empty());
  cabinet.end();
  make_old("bb");
  REQUIRE(cabinet.start({"a", "bb"}).empty());
  CHECK(cabinet.emptied().empty());
  cabinet.purge();
  cabinet.end();
  REQUIRE(cabinet.start({"a", "bb", "ccc"}).empty());
  CHECK(cabinet.emptied() == Numbers{2});
}

TEST_CASE("a purge writes its witness once a run, and later ones with the next second", "[disk]") {
  Cabinet cabinet;
  REQUIRE(cabinet.start({"a", "b"}).empty());
  CHECK(cabinet.writes == 1);
  cabinet.purge();
  CHECK(cabinet.writes == 2);
  for (int i = 0; i < 10; ++i) cabinet.purge();
  CHECK(cabinet.writes == 2);
  cabinet.disks->tick();
  CHECK(cabinet.writes == 3);
  cabinet.disks->tick();
  CHECK(cabinet.writes == 3);
  cabinet.fails = true;
  cabinet.purge();
  cabinet.disks->tick();
  CHECK(cabinet.disks->statistics().witness_error == "no room");
  cabinet.fails = false;
  cabinet.end();
  CHECK(cabinet.writes == 4);
}

TEST_CASE("a damaged witness is refused with a remedy, and another seed's disk is not emptied",
          "[disk]") {
  Cabinet cabinet;
  REQUIRE(cabinet.start({"a"}).empty());
  cabinet.end();
  const auto good = std::exchange(cabinet.saved, "encore-disks 1\n");
  CHECK(cabinet.start({"a"}).find("witness is damaged") != std::string::npos);
  cabinet.saved = good;
  cabinet.files["other"] = MemoryFile();
  REQUIRE(open_disk(cabinet.files["other"], {.disk_bytes = 4 * kMiB,
                                             .segment_bytes = 256 * kKiB,
                                             .identity_seed = {8, 8},
                                             .uuid = {9, 9}}));
  const Image before = cabinet.files["other"].image();
  CHECK(cabinet.start({"a", "other"}).find("filled with another seed") != std::string::npos);
  CHECK(cabinet.files["other"].image() == before);
}

}  // namespace encore::disk
