#include "proxy/disk/disk_service.h"

#include <algorithm>
#include <utility>

namespace encore::disk {

Result<std::shared_ptr<DiskService>> DiskService::open(std::unique_ptr<File> file,
                                                       const OpenOptions& options, Setup setup,
                                                       std::shared_ptr<DiskCommon> common) {
  auto counted = std::make_unique<CountedFile>(std::move(file));
  auto superblock = open_disk(*counted, options);
  if (!superblock) return std::unexpected(superblock.error());
  auto found = std::make_unique<DiskStart>(*counted, *superblock, options.now, setup.is_held);
  if (auto begun = found->begin(); !begun) return std::unexpected(begun.error());
  const bool is_older = setup.position_min && found->purges().position() < *setup.position_min;
  if (is_older && setup.is_held) {
    return fail("disk " + counted->path() + " lacks purges that it had; it is not taken over");
  }
  if (is_older) {
    setup.emptied_for = "an older copy of it is in its place, without its latest purges";
    OpenOptions anew = options;
    anew.clear = true;
    superblock = open_disk(*counted, anew);
    if (!superblock) return std::unexpected(superblock.error());
    found = std::make_unique<DiskStart>(*counted, *superblock, options.now);
    if (auto begun = found->begin(); !begun) return std::unexpected(begun.error());
  }
  // It has become smaller, and nothing is left beyond its end.
  const auto wanted = static_cast<std::uint32_t>(
      std::min<std::uint64_t>(segments_in(*superblock, options.disk_bytes), superblock->segments));
  if (!setup.is_held && wanted >= cache::kDiskSegmentsMin && wanted < superblock->segments &&
      found->is_blank_from(wanted)) {
    superblock = resize(*counted, *superblock, wanted);
    if (!superblock) return std::unexpected(superblock.error());
    found = std::make_unique<DiskStart>(*counted, *superblock, options.now);
    if (auto begun = found->begin(); !begun) return std::unexpected(begun.error());
  }
  counted->data_from(superblock->data_offset);
  return std::make_shared<DiskService>(std::move(counted), *superblock, std::move(found), setup,
                                       std::move(common));
}

DiskService::DiskService(std::unique_ptr<CountedFile> file, const Superblock& superblock,
                         std::unique_ptr<DiskStart> found, const Setup& setup,
                         std::shared_ptr<DiskCommon> common)
    : setup_(setup),
      file_(std::move(file)),
      state_(setup.number, std::move(common), *file_, superblock, setup.matches_rule),
      start_(std::move(found)),
      log_(state_, start_->take_purges()),
      queue_(setup.engine.write_bytes_max,
             std::min<std::uint64_t>(setup.engine.write_batch_bytes, superblock.segment_bytes / 8)),
      loads_(state_) {}

DiskWitness::Disk DiskService::witnessed() const {
  return {file_->path(), state_.superblock.uuid, log_.position()};
}

cache::DiskOptions DiskService::kernel_disk() const {
  const std::uint64_t wanted = segments_in(state_.superblock, setup_.bytes);
  const auto least = std::uint64_t{cache::kDiskSegmentsMin};
  return {.segments = static_cast<std::uint32_t>(std::clamp<std::uint64_t>(
              wanted, least, std::max<std::uint64_t>(least, state_.superblock.segments))),
          .segment_bytes = state_.superblock.segment_bytes};
}

cache::DiskVersion DiskService::attach() {
  start_->attach(state_);
  SegmentWriter::FoundState found = start_->found();
  const cache::DiskVersion newest = found.version_max;
  writer_ = std::make_unique<DiskWriter>(state_, log_, queue_, std::move(found),
                                         setup_.engine.write_bytes_max);
  if (setup_.is_held) writer_->begin_held();
  return newest;
}

void DiskService::load_next() {
  // Once it has stopped, no result is needed.
  (void)engine_->submit(DiskLane::kRead, 0, [self = shared_from_this()](DiskRun run) {
    if (run == DiskRun::kCancelled || self->is_stopping_) return;
    // A task for each segment, so that reads of requests go in between.
    if (self->start_->step([&self] { self->read_ahead(); })) return self->load_next();
    self->state_.is_loading = false;
    // Segments may be reclaimed from here on.
    self->work(&DiskWriter::work);
  });
}

void DiskService::read_ahead() {
  // If it is refused, the next step reads.
  (void)engine_->submit(DiskLane::kRead, 0, [self = shared_from_this()](DiskRun run) {
    if (run == DiskRun::kRun) self->start_->read_ahead();
  });
}

void DiskService::work(bool (DiskWriter::*part)()) {
  (void)engine_->submit(DiskLane::kWrite, 0, [self = shared_from_this(), part](DiskRun run) {
    if (part == &DiskWriter::tick) self->is_ticking_ = false;
    if (run == DiskRun::kCancelled) return;
    // One part at a time, for somebody may wait for a purge.
    if (((*self->writer_).*part)()) self->work(&DiskWriter::work);
  });
}

void DiskService::put(std::uint64_t order, PendingWrite wanted) {
  if (is_stopping_) return;
  if (queue_.put(order, std::move(wanted))) work(&DiskWriter::work);
}

void DiskService::load(const filter::Hash128& key, const cache::DiskPlace& place,
                       std::unique_ptr<DiskLoad> load) {
  loads_.load(*engine_, key, place, std::move(load), shared_from_this());
}

void DiskService::add_tombstone(const filter::Hash128& key, cache::DiskTombstone tombstone) {
  Purge purge;
  purge.version = tombstone.version;
  purge.key = key;
  // A record of the key may be loaded yet: the rule hides it.
  if (late_ticks_ > 0) {
    purge.sequence = state_.common->kernel.use(
        [&](cache::Kernel& kernel) { return kernel.disk_sequence(state_.number); });
    state_.rules.add(purge);
  }
  if (log_.add_tombstone(purge)) work(&DiskWriter::tick);
}

void DiskService::purge(std::vector<Purge> purges, std::function<void(Result<void>)> done) {
  const bool is_said = !log_.has_buried() && log_.has_purge() && !state_.is_offline();
  if (purges.empty() && is_said) return done({});
  const std::uint64_t sequence = state_.common->kernel.use(
      [&](cache::Kernel& kernel) { return kernel.disk_sequence(state_.number); });
  std::uint64_t bytes = 0;
  for (Purge& purge : purges) {
    purge.sequence = sequence;
    bytes += purge.pattern.size();
    if (purge.kind != PurgeKind::kKey || late_ticks_ > 0) state_.rules.add(purge);
  }
  // The process that has the disk remembers it; here the rules hide what is read meanwhile.
  if (state_.common->is_held) return done({});
  const auto shared = std::make_shared<std::function<void(Result<void>)>>(std::move(done));
  auto task = [self = shared_from_this(), purges = std::move(purges), shared](DiskRun run) {
    (*shared)(run == DiskRun::kRun ? self->append(purges)
                                   : fail("disk " + self->file_->path() + " has stopped"));
  };
  switch (engine_->submit(DiskLane::kUrgentWrite, bytes, std::move(task))) {
    case Submitted::kAccepted:
      return;
    case Submitted::kFull:
      return (*shared)(fail("disk " + file_->path() + ": too many purges wait to be written"));
    case Submitted::kStopped:
      return (*shared)(fail("disk " + file_->path() + " has stopped"));
  }
}

Result<void> DiskService::append(std::span<const Purge> purges) {
  // Records that were replaced unwritten a moment ago are gone for the kernel, and would be found
  // again.
  if (auto buried = log_.append_tombstones(); !buried) return buried;
  return purges.empty() ? log_.note_purge() : log_.append(purges);
}

void DiskService::tick() {
  if (!state_.is_loading && late_ticks_ > 0) --late_ticks_;
  // By then the other process can no longer get the disk back, whose open segment they are of.
  if (setup_.is_held && !state_.common->is_held && late_ticks_ > 0 &&
      late_ticks_ < kLateTicks / 2) {
    on_write_lane([this](DiskRun run) {
      if (run == DiskRun::kRun) start_->write_footers();
    });
  }
  if (!is_ticking_.exchange(true)) work(&DiskWriter::tick);
}

void DiskService::on_write_lane(std::function<void(DiskRun)> task) {
  auto shared = std::make_shared<std::function<void(DiskRun)>>(std::move(task));
  const auto submitted = engine_->submit(
      DiskLane::kWrite, 0, [self = shared_from_this(), shared](DiskRun run) { (*shared)(run); });
  if (submitted != Submitted::kAccepted) (*shared)(DiskRun::kCancelled);
}

void DiskService::hold(OnDone done) {
  on_write_lane([this, done = std::move(done)](DiskRun run) {
    if (run == DiskRun::kRun) start_->write_footers();
    done(run == DiskRun::kRun && writer_->hold());
  });
}

void DiskService::resume(OnDone done) {
  on_write_lane([this, done = std::move(done)](DiskRun run) {
    if (run != DiskRun::kRun) return done(false);
    const bool is_resumed = state_.is_offline() || log_.resume_run().has_value();
    writer_->release();
    work(&DiskWriter::work);
    done(is_resumed);
  });
}

void DiskService::take_over(const RunHistory& runs, OnDone done) {
  on_write_lane([this, runs, done = std::move(done)](DiskRun run) {
    if (run != DiskRun::kRun) return done(false);
    log_.begin_run(runs);
    writer_->release();
    work(&DiskWriter::work);
    done(true);
  });
}

void DiskService::take_unwritten(std::function<void(std::vector<Purge>)> done) {
  on_write_lane([this, done = std::move(done)](DiskRun run) {
    done(run == DiskRun::kRun ? writer_->take_unwritten() : std::vector<Purge>());
  });
}

void DiskService::finish() {
  is_stopping_ = true;
  (void)engine_->submit(DiskLane::kWrite, 0, [self = shared_from_this()](DiskRun run) {
    if (run != DiskRun::kRun) return;
    if (!self->state_.common->is_held) self->start_->write_footers();
    self->is_finished_ = self->writer_->finish();
  });
}

bool DiskService::stop(Nanoseconds patience) {
  const bool has_ended = engine_ == nullptr || engine_->stop(patience);
  return has_ended && (engine_ == nullptr || is_finished_);
}

DiskReport DiskService::report() const {
  const CountedFile::Count& writes = file_->writes();
  const CountedFile::Count& reads = file_->reads();
  DiskReport report;
  report.path = file_->path();
  report.emptied_for = setup_.emptied_for;
  report.condition = state_.is_offline() ? DiskCondition::kOffline
                     : state_.is_loading ? DiskCondition::kLoading
                     : state_.is_paused  ? DiskCondition::kWritesPaused
                                         : DiskCondition::kInService;
  report.admit_bytes = state_.admit_bytes;
  report.move_bytes = state_.move_bytes;
  const std::uint64_t records = report.admit_bytes + report.move_bytes;
  // Unused space behind a record is not written.
  report.format_bytes = std::max<std::uint64_t>(writes.bytes, records) - records;
  report.read_bytes = reads.bytes;
  report.reads = reads.done;
  report.read_errors = reads.failed;
  report.write_errors = writes.failed;
  report.write_pauses = state_.pauses;
  report.failed_records = state_.failed_records;
  report.damaged_records = state_.damaged;
  report.waiting_bytes = queue_.bytes();
  report.segments = start_->segments();
  report.segments_loaded = start_->loaded();
  report.purge_log_entries = log_.entries();
  report.purge_log_overflows = log_.overflows();
  return report;
}

}  // namespace encore::disk
