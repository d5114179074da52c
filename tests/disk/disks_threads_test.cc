#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "base/units.h"
#include "cache/disk_parts.h"
#include "proxy/disk/disks.h"
#include "tests/catch.h"
#include "tests/disk/model/made_record.h"
#include "tests/disk/model/served.h"
#include "tests/temporary_directory.h"

namespace encore::disk {
namespace {

using namespace std::chrono_literals;

constexpr filter::Seed kSeed{21, 22};
constexpr std::size_t kKeys = 60;
constexpr std::size_t kTags = 5;

class OnDisk final : public cache::Selector {
 public:
  bool matches(cache::Payload /*payload*/) override { return false; }
  bool matches_disk(const cache::DiskView& view) override {
    place = view.place;
    return true;
  }
  std::optional<cache::DiskPlace> place;
};

void raise(std::atomic<std::uint64_t>& floor, std::uint64_t value) {
  for (std::uint64_t seen = floor; seen < value && !floor.compare_exchange_weak(seen, value);) {
  }
}

// Kernel, disks in real files, and threads that use them as workers do. A body is a function of its
// key and the number of its commit, so a reader knows whether it is whole.
class Workers {
 public:
  explicit Workers(const std::string& directory) : directory_(directory) {
    for (std::size_t i = 0; i < kKeys; ++i) {
      texts_.push_back("https://h" + std::to_string(i % 4) + ".example/" + std::to_string(i));
    }
  }

  void start() {
    DisksOptions options;
    options.identity_seed = kSeed;
    options.engine.read_threads = 3;
    options.matches_rule = matches_meta;
    for (int disk = 0; disk < 2; ++disk) {
      options.disks.push_back({directory_ + "/" + std::to_string(disk), 4 * kMiB, 256 * kKiB});
    }
    auto opened = Disks::open(options);
    REQUIRE(opened);
    disks_ = std::move(*opened);
    cache::KernelOptions kernel_options;
    kernel_options.capacity_bytes = kMiB;
    kernel_options.shards = 4;
    kernel_options.admission.policy = cache::AdmissionPolicy::kAlways;
    kernel_options.identity_seed = kSeed;
    kernel_options.disks = disks_->kernel_disks();
    auto kernel = cache::Kernel::create(kernel_options, {}, monotonic_now());
    REQUIRE(kernel);
    kernel_ = std::move(*kernel);
    disks_->start(*kernel_);
  }
  void wait_until_loaded() {
    const auto is_loading = [](const DiskReport& disk) {
      return disk.condition == DiskCondition::kLoading;
    };
    while (std::ranges::any_of(disks_->statistics().disks, is_loading)) std::this_thread::yield();
  }
  bool stop() {
    const bool is_clean = disks_->stop(60s);
    disks_.reset();
    kernel_.reset();
    return is_clean;
  }

  // Each key is committed by one thread, so that it knows what it has shown. Some in parts.
  void commit(std::size_t number, std::mt19937_64& random) {
    auto object = std::make_shared<Committed>();
    const std::uint64_t count = ++commits;
    object->key = texts_[number];
    object->meta = tag(random() % kTags) + std::to_string(count);
    object->head = "head";
    object->body = body_of(number, count);
    object->fields.key = key(number).hash;
    object->fields.fresh_until = object->fields.keep_until = 4'000'000'000U;
    object->fields.body_bytes = object->body.size();
    if (random() % 8 == 0 && !write_parts(*object)) return;
    auto source = source_of(object);
    const auto now = monotonic_now();
    cache::Stored stored{.charge_bytes = object->body.size()};
    stored.disk_bytes = record_bytes(shape_of(source->record()));
    stored.disk_queue_full = disks_->is_queue_full();
    stored.fresh_until = stored.keep_until = now + 10'000h;
    const std::uint64_t charge =
        stored.charge_bytes + kernel_->charge_of_entry() + kernel_->charge_of_disk_entry();
    if (kernel_->reserve(key(number), charge, now) != cache::ReserveOutcome::kReserved) return;
    cache::DiskDecision decision;
    kernel_->commit(key(number), stored, charge, now, &decision);
    const bool is_placed = decision.outcome == cache::DiskOutcome::kPlaced;
    placed += is_placed ? 1U : 0U;
    disks_->decided(key(number), decision, is_placed ? std::move(source) : nullptr);
    raise(floors_[number], std::max(decision.version, decision.tombstone.version));
  }
  bool write_parts(Committed& object) {
    object.fields.kind = RecordKind::kHead;
    object.fields.body = disks_->new_body_number();
    for (std::uint64_t i = 0; i < model_parts(object.body.size()); ++i) {
      auto part = std::make_shared<Committed>();
      part->body = object.body.substr(i * kModelPartBytes, kModelPartBytes);
      const cache::Key part_key = cache::part_key(object.fields.key, object.fields.body, i);
      part->fields.kind = RecordKind::kPart;
      part->fields.part = static_cast<std::uint32_t>(i);
      part->fields.key = part_key.hash;
      part->fields.body = object.fields.body;
      part->fields.body_bytes = part->body.size();
      auto source = source_of(std::move(part));
      const cache::DiskDecision decision =
          kernel_->place_part(part_key,
                              {.bytes = record_bytes(shape_of(source->record())),
                               .queue_full = disks_->is_queue_full()},
                              monotonic_now());
      if (decision.outcome != cache::DiskOutcome::kPlaced) return false;
      disks_->decided(part_key, decision, std::move(source));
    }
    return true;
  }
  void load(std::size_t number);
  void purge_key(std::size_t number) {
    cache::DiskTombstone tombstone;
    kernel_->invalidate(key(number), monotonic_now(), &tombstone);
    if (!tombstone) return;
    Purge purge;
    purge.version = tombstone.version;
    purge.key = key(number).hash;
    disks_->purge({purge}, [this, number, tombstone](Result<void> result) {
      wrong += result ? 0U : 1U;
      raise(floors_[number], tombstone.version);
      ++purges;
    });
  }
  void purge_tag(std::size_t number) {
    Purge purge;
    purge.kind = PurgeKind::kTag;
    purge.version = kernel_->purge_rule(monotonic_now());
    purge.pattern = tag(number);
    disks_->purge({purge}, [this, number, purge](Result<void> result) {
      wrong += result ? 0U : 1U;
      raise(tag_floors_[number], purge.version);
      ++purges;
    });
  }
  Disks& disks() { return *disks_; }
  // Faster than the disks nothing would be placed, and nothing to be seen.
  void wait_for_room() {
    while (is_crowded()) {
      disks_->tick();
      std::this_thread::yield();
    }
  }
  bool is_crowded() {
    const cache::DiskStatistics disk = kernel_->statistics().disk;
    const std::vector<DiskReport> reports = disks_->statistics().disks;
    return std::ranges::any_of(reports,
                               [](const auto& each) { return each.waiting_bytes > 512 * kKiB; }) ||
           std::ranges::any_of(disk.disks, [](const auto& each) { return each.free_segments < 2; });
  }
  bool is_on_disk(std::size_t number) { return find(number).has_value(); }

  std::atomic<std::uint64_t> commits = 0;
  std::atomic<std::uint64_t> placed = 0;
  std::atomic<std::uint64_t> asked = 0;
  std::atomic<std::uint64_t> ended = 0;
  std::atomic<std::uint64_t> done = 0;
  std::atomic<std::uint64_t> purges = 0;
  std::atomic<std::uint64_t> wrong = 0;
  std::atomic<std::uint64_t> heads = 0;  // those done, in parts

 private:
  class Load;
  static std::string tag(std::size_t number) { return "#" + std::to_string(number) + "#"; }
  cache::Key key(std::size_t number) const { return filter::identify(kSeed, texts_[number]); }
  static std::string body_of(std::size_t number, std::uint64_t count) {
    std::mt19937_64 random(number * 1'000'003 + count);
    const std::size_t bytes = random() % 16 == 0 ? 70'000 : random() % 16'000;
    return random_text(random, bytes);
  }
  std::optional<cache::DiskPlace> find(std::size_t number) {
    OnDisk selector;
    const auto result = kernel_->lookup(key(number), monotonic_now(), selector);
    return result.on_disk() ? selector.place : std::nullopt;
  }

  std::string directory_;
  std::vector<std::string> texts_;
  std::array<std::atomic<std::uint64_t>, kKeys> floors_{};  // versions; nothing older is shown
  std::array<std::atomic<std::uint64_t>, kTags> tag_floors_{};
  std::unique_ptr<Disks> disks_;
  std::unique_ptr<cache::Kernel> kernel_;
};

// A record, and then the parts of its body, one after the other: each is a load of its own.
class Workers::Load final : public DiskLoad {
 public:
  struct Wanted {
    std::size_t number = 0;
    cache::DiskPlace place{};  // place of the head
    std::uint64_t floor = 0;
    std::array<std::uint64_t, kTags> tag_floors{};
    RecordFields fields{};
    std::string key = {};
    std::string meta = {};
    std::string body = {};
    std::uint64_t parts = 0;
  };
  Load(Workers& workers, Wanted wanted) : workers_(workers), wanted_(std::move(wanted)) {}

  std::expected<void, Damage> read(const RecordFront& front, RecordReader& reader) override {
    if (front.fields.kind != RecordKind::kPart) {
      wanted_.fields = front.fields;
      wanted_.key = front.text.key;
      wanted_.meta = front.text.meta;
    } else {
      ++wanted_.parts;
    }
    for (std::uint64_t read_bytes = 0; read_bytes < front.shape.body_bytes;) {
      const auto piece = reader.read(read_bytes, front.shape.body_bytes);
      if (!piece) return std::unexpected(piece.error());
      wanted_.body.append(reinterpret_cast<const char*>(piece->data()), piece->size());
      read_bytes += piece->size();
    }
    return {};
  }
  void end(LoadEnd how) override {
    if (how == LoadEnd::kDone && load_next()) return;
    const bool is_whole = wanted_.body.size() == wanted_.fields.body_bytes;
    if (how == LoadEnd::kDone && is_whole) {
      ++workers_.done;
      workers_.heads += wanted_.parts == 0 ? 0U : 1U;
      workers_.wrong += is_right() ? 0U : 1U;
    }
    ++workers_.ended;
  }

 private:
  // False: that was all, or there is no more of it.
  bool load_next() {
    const RecordFields& fields = wanted_.fields;
    if (fields.kind != RecordKind::kHead || wanted_.parts == model_parts(fields.body_bytes)) {
      return false;
    }
    const cache::Key part = cache::part_key(fields.key, fields.body, wanted_.parts);
    const auto now = monotonic_now();
    const auto place = workers_.kernel_->find_part(part, now);
    if (!place && place.error() == cache::PartMissing::kNotWritten) return false;
    if (!place) {
      const cache::Key object = workers_.key(wanted_.number);
      workers_.disks_->add_tombstone(object.hash,
                                     workers_.kernel_->lost(object, wanted_.place, now));
      return false;
    }
    workers_.disks_->load(part, *place, std::make_unique<Load>(workers_, std::move(wanted_)));
    return true;
  }
  bool is_right() const {
    const auto tag_number = static_cast<std::size_t>(wanted_.meta[1] - '0');
    return wanted_.key == workers_.texts_[wanted_.number] &&
           wanted_.body == body_of(wanted_.number, std::stoull(wanted_.meta.substr(3))) &&
           wanted_.fields.version >= wanted_.floor &&
           wanted_.fields.version >= wanted_.tag_floors[tag_number];
  }

  Workers& workers_;
  Wanted wanted_;
};

void Workers::load(std::size_t number) {
  // The oldest allowed version is known before the lookup.
  Load::Wanted wanted{.number = number, .floor = floors_[number]};
  for (std::size_t i = 0; i < kTags; ++i) wanted.tag_floors[i] = tag_floors_[i];
  const auto place = find(number);
  if (!place) return;
  wanted.place = *place;
  ++asked;
  disks_->load(key(number), *place, std::make_unique<Load>(*this, std::move(wanted)));
}

}  // namespace

TEST_CASE("threads commit, load and purge, and only what holds is shown", "[disk][threads]") {
  const server::TemporaryDirectory directory;
  Workers workers(directory.path());
  constexpr std::size_t kWriters = 3;
  for (std::uint64_t life = 0; life < 3; ++life) {
    CAPTURE(life);
    workers.start();
    if (life != 0) {
      workers.wait_until_loaded();
      const std::uint64_t done = workers.done;
      std::uint64_t asked = 0;
      for (std::size_t key = 0; key < kKeys; ++key) {
        asked += workers.is_on_disk(key) ? 1U : 0U;
        workers.load(key);
      }
      while (workers.ended != workers.asked) std::this_thread::yield();
      CHECK(asked > kKeys / 4);
      CHECK(workers.done == done + asked);
    }
    std::atomic<std::size_t> writing = kWriters;
    std::vector<std::thread> threads;
    for (std::size_t thread = 0; thread < kWriters; ++thread) {
      threads.emplace_back([&, thread] {
        std::mt19937_64 random(life * 10 + thread);
        for (int i = 0; i < 150; ++i) {
          workers.commit(random() % (kKeys / kWriters) * kWriters + thread, random);
          workers.wait_for_room();
        }
        --writing;
      });
    }
    for (std::size_t thread = 0; thread < 2; ++thread) {
      threads.emplace_back([&, thread] {
        std::mt19937_64 random(life * 10 + 5 + thread);
        while (writing != 0) {
          workers.load(random() % kKeys);
          if (random() % 16 == 0) workers.disks().tick();
        }
      });
    }
    threads.emplace_back([&] {
      std::mt19937_64 random(life * 10 + 8);
      for (int i = 0; i < 60 && writing != 0; ++i) {
        const std::uint64_t purges = workers.purges;
        if (random() % 4 == 0) {
          workers.purge_tag(random() % kTags);
        } else {
          workers.purge_key(random() % kKeys);
        }
        // At most one more than was answered: a log is not endless.
        while (writing != 0 && workers.purges == purges && random() % 64 != 0) {
          std::this_thread::yield();
        }
      }
    });
    for (std::thread& thread : threads) thread.join();
    // No purge is of what comes now: it is all there in the next life.
    std::mt19937_64 random(life);
    for (std::size_t key = 0; key < kKeys; ++key) {
      workers.commit(key, random);
      workers.wait_for_room();
    }
    std::uint64_t damaged = 0;
    for (const DiskReport& disk : workers.disks().statistics().disks) {
      damaged += disk.damaged_records;
      CHECK(disk.condition != DiskCondition::kOffline);
    }
    CHECK(damaged == 0);
    CHECK(workers.stop());
    CHECK(workers.ended == workers.asked);
    CHECK(workers.wrong == 0);
  }
  CHECK(workers.placed > 300);
  CHECK(workers.done > 100);
  CHECK(workers.heads > 10);
  CHECK(workers.purges > 10);
}

TEST_CASE("little that waits is written within seconds, though nobody comes", "[disk][threads]") {
  const server::TemporaryDirectory directory;
  Workers workers(directory.path());
  workers.start();
  workers.wait_until_loaded();
  std::mt19937_64 random(1);
  std::size_t key = 0;
  while (workers.placed == 0) workers.commit(key++, random);
  // Longer than that takes on any machine.
  const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (workers.done == 0 && std::chrono::steady_clock::now() < end) {
    workers.load(key - 1);
    while (workers.ended != workers.asked) std::this_thread::yield();
  }
  CHECK(workers.done > 0);
  CHECK(workers.wrong == 0);
  CHECK(workers.stop());
}

TEST_CASE("a disk in use is not opened twice, nor under two names", "[disk]") {
  const server::TemporaryDirectory directory;
  DisksOptions options;
  options.identity_seed = kSeed;
  options.disks = {{directory / "a", 4 * kMiB, 256 * kKiB}, {directory / "./a", 4 * kMiB, 0}};
  const auto twice = Disks::open(options);
  REQUIRE_FALSE(twice);
  CHECK(twice.error().message.find("is named twice") != std::string::npos);
  options.disks.pop_back();
  CHECK(seed_of_disk(directory / "a").value() == std::nullopt);
  const auto opened = Disks::open(options);
  REQUIRE(opened);
  CHECK(seed_of_disk(directory / "a").value() == kSeed);
  CHECK_FALSE(Disks::open(options));
}

TEST_CASE("a disk that has become smaller gives its end back when nothing is left there",
          "[disk]") {
  const server::TemporaryDirectory directory;
  DisksOptions options;
  options.identity_seed = kSeed;
  options.is_inline = true;
  options.disks = {{directory / "a", 8 * kMiB, 256 * kKiB}};
  const auto segments = [&] {
    const auto disks = Disks::open(options);
    REQUIRE(disks);
    return (*disks)->kernel_disks()[0].segments;
  };
  const std::uint32_t before = segments();
  options.disks[0].bytes = 4 * kMiB;
  const std::uint32_t after = segments();
  CHECK(after < before);
  CHECK(std::filesystem::file_size(directory / "a") <= 4 * kMiB);
  options.disks[0].bytes = 8 * kMiB;
  CHECK(segments() == before);
}

}  // namespace encore::disk
