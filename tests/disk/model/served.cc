#include "tests/disk/model/served.h"

#include <algorithm>

#include "base/check.h"
#include "proxy/disk/open.h"
#include "proxy/disk/record_reader.h"
#include "tests/disk/model/made_record.h"

namespace encore::disk {
namespace {

constexpr filter::Seed kSeed{11, 12};
constexpr std::uint64_t kServedTags = 12;
constexpr auto kStart = std::chrono::seconds(1'700'000'000);

class CommittedSource final : public RecordSource {
 public:
  explicit CommittedSource(std::shared_ptr<const Committed> object)
      : object_(std::move(object)),
        piece_{const_cast<char*>(object_->body.data()), object_->body.size()} {}

  Record record() const override {
    return {.fields = object_->fields,
            .text = {.key = object_->key,
                     .names = object_->names,
                     .meta = object_->meta,
                     .head = object_->head},
            .body = {&piece_, object_->fields.kind == RecordKind::kHead ? 0U : 1U}};
  }

 private:
  std::shared_ptr<const Committed> object_;
  iovec piece_;
};

cache::KernelOptions kernel_options(const Disks& disks, const ServedOptions& served) {
  cache::KernelOptions options;
  options.capacity_bytes = served.memory_bytes;
  options.shards = 4;
  options.admission.policy =
      served.on_probation ? cache::AdmissionPolicy::kProbation : cache::AdmissionPolicy::kAlways;
  options.admission.filter = {.bits = 4096, .hashes = 8, .capacity = 100, .seed = kSeed};
  options.identity_seed = kSeed;
  options.disks = disks.kernel_disks();
  options.disk_rules.reinsert_percent = 70;
  return options;
}

// Selects objects on disk, whatever is in memory.
class OnDisk final : public cache::Selector {
 public:
  explicit OnDisk(std::uint32_t variant) : variant_(variant) {}
  bool matches(cache::Payload /*payload*/) override { return false; }
  bool matches_disk(const cache::DiskView& view) override {
    if (view.variant != variant_) return false;
    place = view.place;
    return true;
  }
  std::optional<cache::DiskPlace> place;

 private:
  std::uint32_t variant_;
};

}  // namespace

std::unique_ptr<RecordSource> source_of(std::shared_ptr<const Committed> object) {
  return std::make_unique<CommittedSource>(std::move(object));
}

bool matches_meta(const Purge& rule, const RecordFront& front) {
  return rule.kind == PurgeKind::kTag ? front.text.meta.find(rule.pattern) != std::string_view::npos
                                      : front.text.key.starts_with(rule.pattern);
}

Served::Served(const ServedOptions& options, std::uint64_t seed)
    : options_(options), random_(seed) {
  for (std::uint64_t key = 0; key < options.keys; ++key) {
    texts_.push_back("https://h" + std::to_string(key % 5) + ".example/" + std::to_string(key));
  }
  for (std::size_t disk = 0; disk < options.disks; ++disk) {
    files_.push_back(std::make_unique<MemoryFile>());
  }
}

Served::~Served() {
  if (disks_) kill();
}

cache::Key Served::key(std::uint64_t number) const {
  return filter::identify(kSeed, texts_[number]);
}

std::string Served::start() {
  Process first;
  if (std::string why = open(first, false); !why.empty()) return why;
  swap(first);
  return "";
}

std::string Served::open(Process& process, bool is_handed_over) {
  DisksOptions options;
  options.identity_seed = kSeed;
  options.engine = options_.threads;
  options.is_inline = options_.engine == ServedEngine::kInline;
  options.matches_rule = matches_meta;
  options.clocks.monotonic = [this] { return now_; };
  options.clocks.wall = [this] { return WallTime(kStart + now_.time_since_epoch()); };
  options.witness = {.path = "witness",
                     .read = [this](const std::string&) { return witness_; },
                     .write = [this, devices = process.devices.get()](
                                  const std::string&, std::string_view text) -> Result<void> {
                       if (devices->front().writes_fail) return fail("told to fail");
                       witness_ = text;
                       return {};
                     }};
  if (is_handed_over) options.handed_over.emplace();
  options.open_file = [this, &process](const std::string& path) -> Result<std::unique_ptr<File>> {
    const auto disk = static_cast<std::size_t>(std::stoul(path));
    return std::make_unique<SwitchedFile>(*files_[disk], (*process.devices)[disk]);
  };
  std::size_t engines = 0;
  if (options_.engine == ServedEngine::kSteps) {
    options.make_engine = [&process, &engines](const EngineOptions&) {
      return std::make_unique<StepEngine>((*process.tasks)[engines++]);
    };
  }
  for (std::size_t disk = 0; disk < options_.disks; ++disk) {
    options.disks.push_back({std::to_string(disk), options_.disk_bytes, options_.segment_bytes});
  }
  auto opened = Disks::open(options);
  if (!opened) return opened.error().message;
  process.disks = std::move(*opened);
  auto kernel = cache::Kernel::create(kernel_options(*process.disks, options_), {}, now_);
  if (!kernel) return kernel.error().message;
  process.kernel = std::move(*kernel);
  process.disks->start(*process.kernel);
  for (const DiskReport& disk : process.disks->statistics().disks) {
    if (!disk.emptied_for.empty()) return disk.emptied_for;
  }
  return "";
}

void Served::swap(Process& other) {
  devices_.swap(other.devices);
  tasks_.swap(other.tasks);
  disks_.swap(other.disks);
  kernel_.swap(other.kernel);
}

void Served::run() {
  for (bool found = true; found;) {
    found = false;
    for (StepTasks& tasks : *tasks_) found |= tasks.run_one(random_);
  }
}

void Served::run_reads() {
  // A head that is read on one disk asks for its parts on another.
  for (bool found = true; found;) {
    found = false;
    for (StepTasks& tasks : *tasks_) found |= tasks.run_read();
  }
}

void Served::run_read() {
  std::ranges::any_of(*tasks_, [](StepTasks& tasks) { return tasks.run_read(); });
}

void Served::run_writes() {
  for (StepTasks& tasks : *tasks_) {
    while (tasks.run_write()) {
    }
  }
}

void Served::tick() {
  now_ += std::chrono::seconds(1);
  disks_->tick();
  kernel_->end_waits(now_);
}

void Served::settle() {
  deliver();
  // The first second flushes waiting records, the second one those moved then.
  for (int second = 0; second < 3; ++second) {
    run();
    tick();
  }
  run();
  kept_ = shown_;
}

bool Served::stop() {
  end_predecessor();
  deliver();
  run();
  resident_.clear();
  for (std::uint64_t number = 0; number < options_.keys; ++number) {
    for (std::uint32_t variant = 0; variant < 2; ++variant) {
      const Name name{number, variant};
      const std::uint64_t done = counts.done;
      if (!load(name)) continue;
      // Nothing is reclaimed meanwhile.
      run_reads();
      if (counts.done != done) resident_[name] = last_version_;
    }
  }
  uploads_.clear();
  const bool is_clean = disks_->stop(std::chrono::seconds(10));
  for (const DiskReport& disk : disks_->statistics().disks) counts.moved_bytes += disk.move_bytes;
  disks_.reset();
  kernel_.reset();
  if (is_clean) kept_ = shown_;
  return is_clean;
}

void Served::kill() {
  end_predecessor();
  for (std::size_t disk = 0; disk < options_.disks; ++disk) {
    (*devices_)[disk].from = 0;
    (*devices_)[disk].writes_fail = true;
  }
  undelivered_.clear();
  uploads_.clear();
  // A purge that is answered from here on is not meant.
  const std::vector<Purge> answered = answered_;
  for (const DiskReport& disk : disks_->statistics().disks) counts.moved_bytes += disk.move_bytes;
  disks_.reset();
  kernel_.reset();
  answered_ = answered;
  resident_.clear();
  shown_ = kept_;
}

Served::Name Served::some_name() {
  const std::uint64_t number = random_() % options_.keys;
  return {number, has_variants(number) ? static_cast<std::uint32_t>(random_() % 2) : 0};
}

void Served::step() {
  if (predecessor_ && random_() % 16 == 0) return step_predecessor();
  if (random_() % 4 == 0) return step_parts();
  const auto what = random_() % 100;
  if (what < 25) {
    const std::size_t body = random_() % 10 == 0 ? 65'536 + random_() % 40'000 : random_() % 20'000;
    commit(some_name(), body);
  } else if (what < 45) {
    load(some_name());
  } else if (what < 55) {
    deliver_one();
  } else if (what < 58) {
    invalidate(random_() % options_.keys, random_() % 2 == 0);
  } else if (what == 58) {
    purge(PurgeKind::kTag, tag(random_() % kServedTags));
  } else if (what == 59 && random_() % 4 == 0) {
    purge(PurgeKind::kPrefix, texts_[random_() % options_.keys].substr(0, 20));
  } else if (what < 65) {
    tick();
  } else if (what == 65) {
    settle();
  } else {
    (*tasks_)[random_() % options_.disks].run_one(random_);
  }
}

cache::DiskDecision Served::commit(const Name& name, std::size_t body_bytes) {
  return commit_object(name, made_object(name, body_bytes), false);
}

std::shared_ptr<Committed> Served::made_object(const Name& name, std::size_t body_bytes) {
  auto object = std::make_shared<Committed>();
  object->key = texts_[name.first];
  object->names = name.second == 0 ? "" : "accept-encoding";
  object->meta = tag(random_() % kServedTags) + random_text(random_, 40);
  object->head = "HTTP/1.1 200 OK\r\n\r\n";
  object->body = random_text(random_, body_bytes);
  object->fields = {.kind = RecordKind::kObject,
                    .part = 0,
                    .key = key(name.first).hash,
                    .variant = name.second,
                    .version = 0,
                    .fresh_until = 4'000'000'000U,
                    .keep_until = 4'000'000'000U,
                    .stored_at = 1'700'000'000U,
                    .body_bytes = body_bytes};
  return object;
}

cache::DiskDecision Served::commit_object(const Name& name, std::shared_ptr<Committed> object,
                                          bool disk_only) {
  const RecordShape shape = shape_of(source_of(object)->record());
  cache::Stored stored{.variant = name.second,
                       .charge_bytes = disk_only ? 0 : object->body.size() + 100};
  stored.disk_bytes = record_bytes(shape);
  stored.disk_names = kernel_->intern(object->names, now_).value();
  stored.disk_queue_full = disks_->is_queue_full();
  stored.disk_only = disk_only;
  stored.fresh_until = stored.keep_until = now_ + std::chrono::hours(100'000);
  if (options_.on_probation && !disk_only) {
    const cache::AdmitReason reason = kernel_->admit(
        key(name.first), {.variant = name.second, .size_bytes = object->body.size()}, now_);
    if (!cache::is_stored(reason)) return {};
    stored.waits = cache::is_on_probation(reason);
    if (reason == cache::AdmitReason::kWaits) stored.disk_bytes = 0;
  }
  std::uint64_t charge = 0;
  if (!disk_only) {
    charge = stored.charge_bytes + kernel_->charge_of_entry() + kernel_->charge_of_disk_entry();
    if (kernel_->reserve(key(name.first), charge, now_) != cache::ReserveOutcome::kReserved) {
      return {};
    }
  }
  cache::DiskDecision decision;
  kernel_->commit(key(name.first), stored, charge, now_, &decision);
  ++counts.commits;
  object->fields.version = decision.version;
  if (decision.outcome == cache::DiskOutcome::kPlaced) {
    ++counts.placed;
    history_.committed(object);
  }
  cache::DiskVersion version = std::max(decision.version, decision.tombstone.version);
  if (version == 0) version = kernel_->purge_rule(now_);
  remember(version, name.first, name.second);
  if (decision.tombstone) buried_[name.first] = decision.tombstone.version;
  if (decision.outcome == cache::DiskOutcome::kPlaced) {
    undelivered_.push_back({key(name.first), decision, std::move(object)});
  } else {
    // Others may take their time with it, but it is then that it holds.
    disks_->decided(key(name.first), decision, nullptr);
  }
  return decision;
}

void Served::remember(cache::DiskVersion version, std::uint64_t key,
                      std::optional<std::uint32_t> variant) {
  for (std::uint32_t each = 0; each < 2; ++each) {
    cache::DiskVersion& shown = shown_[{key, each}];
    if (!variant || *variant == each) shown = std::max(shown, version);
  }
}

void Served::deliver_one() {
  if (undelivered_.empty()) return;
  const auto which = static_cast<std::ptrdiff_t>(random_() % undelivered_.size());
  const Undelivered next = undelivered_[static_cast<std::size_t>(which)];
  undelivered_.erase(undelivered_.begin() + which);
  disks_->decided(next.key, next.decision, source_of(next.object));
}

void Served::deliver() {
  while (!undelivered_.empty()) deliver_one();
}

std::optional<cache::DiskPlace> Served::find(const Name& name) {
  OnDisk selector(name.second);
  const auto result = kernel_->lookup(key(name.first), now_, selector);
  return result.on_disk() ? selector.place : std::nullopt;
}

void Served::loaded(const Name& name, const Committed& found, cache::DiskVersion shown,
                    std::size_t purges) {
  const std::string what = "version " + std::to_string(found.fields.version) + " of " + found.key;
  last_version_ = found.fields.version;
  const auto object = history_.find(found.fields.version);
  const bool is_equal = object != nullptr && object->fields == found.fields &&
                        object->key == found.key && object->names == found.names &&
                        object->meta == found.meta && object->head == found.head &&
                        object->body == found.body;
  if (!is_equal) return note(what + " is not what was committed");
  if (found.key != texts_[name.first] || found.fields.variant != name.second) {
    return note(what + " is not what was asked for");
  }
  if (found.fields.version < shown) {
    return note(what + " is older than version " + std::to_string(shown) + " that was shown");
  }
  for (std::size_t i = 0; i < purges; ++i) {
    if (is_purged_by(answered_[i], found.fields, found.key, found.meta)) {
      return note(what + " was purged at version " + std::to_string(answered_[i].version));
    }
  }
}

void Served::note(const std::string& what) {
  if (fault_.empty()) fault_ = what;
}

void Served::invalidate(std::uint64_t number, bool with_reply) {
  cache::DiskTombstone tombstone;
  kernel_->invalidate(key(number), now_, &tombstone);
  Purge purge;
  purge.key = key(number).hash;
  if (!tombstone) {
    // Nothing more is to be remembered.
    purge.version = kernel_->purge_rule(now_);
    remember(purge.version, number, std::nullopt);
    if (with_reply) purge_in_predecessor(purge, number);
    if (with_reply) purged({}, {purge});
    return;
  }
  remember(tombstone.version, number, std::nullopt);
  buried_[number] = tombstone.version;
  if (!with_reply) return disks_->add_tombstone(key(number).hash, tombstone);
  purge.version = tombstone.version;
  purge_in_predecessor(purge, number);
  purged({purge}, {purge});
}

void Served::purge(PurgeKind kind, std::string pattern) {
  Purge purge;
  purge.kind = kind;
  purge.version = kernel_->purge_rule(now_);
  purge.pattern = std::move(pattern);
  asked_.push_back(purge);
  purge_in_predecessor(purge, std::nullopt);
  purged({purge}, {purge});
}

void Served::purged(const std::vector<Purge>& purges, std::vector<Purge> meant) {
  const std::uint64_t count = purges.empty() ? 0 : 1;
  disks_->purge(purges, [this, count, meant = std::move(meant)](Result<void> result) {
    if (!result) {
      counts.purges_failed += count;
      return;
    }
    counts.purges += count;
    answered_.insert(answered_.end(), meant.begin(), meant.end());
  });
}

std::string Served::missing() {
  for (const auto& [name, version] : resident_) {
    const auto object = history_.find(version);
    ENCORE_CHECK(object != nullptr, "what was resident was committed");
    // Those of a key are of all its variants; so is what comes of a record that a rule is of.
    const bool has_tombstone = buried_.contains(name.first) && buried_[name.first] > version;
    const bool has_rule = std::ranges::any_of(asked_, [&](const Purge& rule) {
      return has_variants(name.first) ||
             is_purged_by(rule, object->fields, object->key, object->meta);
    });
    if (has_tombstone || has_rule) continue;
    const std::uint64_t done = counts.done;
    const bool is_found = load(name);
    // A reclaim left by the stop goes on with the first write, and drops objects without requests.
    run_reads();
    if (!is_found || counts.done != done + 1 || last_version_ != version) {
      return "version " + std::to_string(version) + " of " + object->key +
             (is_found ? " cannot be loaded" : " is not found");
    }
    ++counts.checked;
  }
  return "";
}

void Served::fail_records(std::size_t disk, bool fails) {
  // A file whose disk was abandoned no longer has a superblock.
  if (const auto superblock = read_superblock(*files_[disk])) {
    (*devices_)[disk].from = superblock->data_offset;
  }
  (*devices_)[disk].writes_fail = fails;
}

std::uint64_t Served::damaged() const {
  std::uint64_t damaged = 0;
  for (const DiskReport& disk : disks_->statistics().disks) damaged += disk.damaged_records;
  return damaged;
}

}  // namespace encore::disk
