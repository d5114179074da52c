#include "tests/disk/model/driver.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/check.h"
#include "cache/disk_parts.h"
#include "filter/hash.h"
#include "proxy/disk/open.h"
#include "tests/disk/model/made_record.h"

namespace encore::disk {
namespace {

constexpr std::size_t kKeys = 30;
constexpr std::size_t kTags = 6;

Record record_of(const Committed& object, std::span<const iovec> body) {
  return {
      .fields = object.fields,
      .text = {.key = object.key, .names = object.names, .meta = object.meta, .head = object.head},
      .body = body};
}

iovec piece_of(std::string_view text) { return {const_cast<char*>(text.data()), text.size()}; }

}  // namespace

Driver::Driver(File& file, const DriverOptions& options, History& history, std::uint64_t seed,
               const std::function<void()>& after_write)
    : file_(file), history_(history), random_(seed) {
  file_.on_write = after_write;
  auto opened = open_disk(file_, {.disk_bytes = options.disk_bytes,
                                  .segment_bytes = options.segment_bytes,
                                  .identity_seed = {1, 2},
                                  .uuid = {3, 4},
                                  .now = options.now,
                                  .clear = false});
  if (!opened) {
    refusal_ = opened.error().message;
    return;
  }
  superblock_ = *opened;
  Start start(file_, superblock_, {.now = options.now});
  refusal_ = start.refusal();
  if (refusal_.empty()) adopt(start);
}

void Driver::adopt(Start& start) {
  purges_ = start.take_purges();
  version_ = start.found().version_max;
  writer_ = std::make_unique<SegmentWriter>(file_, superblock_, start.found());
  log_ = std::make_unique<cache::SegmentLog>(cache::SegmentLog::Settings{
      .segments = superblock_.segments, .segment_bytes = superblock_.segment_bytes});
  log_->attach(start.found().sequences);
  std::set<std::pair<std::uint32_t, std::uint32_t>> live;
  for (const Start::Winner& winner : start.winners()) {
    const auto object = history_.find(winner.record.line.version);
    if (object == nullptr) continue;
    live.emplace(winner.record.segment, winner.record.line.unit);
    entries_[object->key] = {object, {winner.record.place(), winner.record.sequence}};
  }
  for (const std::size_t number : start.parts()) {
    const FoundRecord& part = start.records()[number];
    live.emplace(part.segment, part.line.unit);
    parts_[part.line.key] = {part.line.body, {part.place(), part.sequence}};
  }
  for (const FoundRecord& record : start.records()) {
    log_->found(record.place(), live.contains({record.segment, record.line.unit}));
  }
  file_.on_synced = [this] {
    collect();
    for (const SegmentWriter::Written& written : std::exchange(unsynced_, {})) {
      const auto key = keys_.find(written.version);
      if (key != keys_.end()) history_.durable(key->second, written.version);
    }
  };
}

std::string Driver::some_key() {
  const auto number = random_() % kKeys;
  return "https://h" + std::to_string(number % 3) + ".example/" + std::to_string(number);
}

void Driver::step() {
  const auto what = random_() % 100;
  if (what < 50) {
    write_object(false);
  } else if (what < 60) {
    write_object(true);
  } else if (what < 66) {
    freshen();
  } else if (what < 70) {
    leave_unwritten();
  } else if (what < 78) {
    purge();
  } else if (what < 80) {
    append_purges();
  } else if (what < 82) {
    reclaim();
  } else if (what < 85) {
    if (!purges_->prune(writer_->sequence_min())) ++counts_.failed;
  } else {
    // The records report a failure.
    (void)writer_->flush();
  }
  take_written();
}

std::shared_ptr<Committed> Driver::make_object(const std::string& key) {
  auto object = std::make_shared<Committed>();
  object->key = key;
  object->names = random_() % 3 == 0 ? "accept-encoding" : "";
  object->meta = tag(random_() % kTags) + random_text(random_, 40);
  object->head = "HTTP/1.1 200 OK\r\n\r\n";
  object->fields = {.kind = RecordKind::kObject,
                    .part = 0,
                    .key = filter::identify({1, 2}, key).hash,
                    .variant = 0,
                    .version = ++version_,
                    .fresh_until = static_cast<WallSeconds>(random_()),
                    .keep_until = static_cast<WallSeconds>(random_()),
                    .stored_at = 7,
                    .body_bytes = 0};
  return object;
}

std::optional<Driver::Lies> Driver::write(const Record& record, cache::WriteReason why) {
  const RecordShape shape = shape_of(record);
  const auto names = static_cast<std::uint32_t>(record.text.names.size());
  const cache::SegmentLog::Record wanted{.bytes = record_bytes(shape),
                                         .names = static_cast<std::uint16_t>(names == 0 ? 0 : 1),
                                         .names_bytes = names,
                                         .why = why};
  auto placed = log_->place(wanted);
  while (!placed && why == cache::WriteReason::kAdmit && reclaim()) placed = log_->place(wanted);
  if (!placed) return std::nullopt;
  if (placed->turn.sequence != 0) {
    sequence_ = placed->turn.sequence;
    ++counts_.turns;
    // Its error comes with the records.
    (void)writer_->open(placed->turn, 1);
  }
  if (record.fields.kind != RecordKind::kPart) keys_[record.fields.version] = record.fields.key;
  writer_->add(record, placed->place);
  return Lies{placed->place, sequence_};
}

void Driver::write_object(bool in_parts) {
  const auto object = make_object(some_key());
  const auto roll = random_() % 20;
  const std::size_t bytes = in_parts    ? 20'000 + random_() % 50'000
                            : roll == 0 ? 65'536 + random_() % 60'000
                                        : random_() % 24'000;
  object->body = random_text(random_, bytes);
  object->fields.body_bytes = bytes;
  if (in_parts) {
    object->fields.kind = RecordKind::kHead;
    object->fields.body = random_() | 1U;
    if (!write_parts(*object)) return;
    // Given at the commit: it is above those of the parts.
    object->fields.version = ++version_;
  }
  history_.committed(object);
  drop(object->key);
  const iovec whole = piece_of(object->body);
  const auto body = in_parts ? std::span<const iovec>() : std::span(&whole, 1);
  const auto lies = write(record_of(*object, body), cache::WriteReason::kAdmit);
  ++counts_.writes;
  if (!lies) return add_tombstone(object->fields.key);
  // If space for it has cost a part, the next read finds out.
  entries_[object->key] = {object, *lies};
}

bool Driver::write_parts(const Committed& object) {
  for (std::uint64_t i = 0; i < model_parts(object.body.size()); ++i) {
    // They come as the body does: others are written in between, or it ends too early.
    if (random_() % 4 == 0) write_object(false);
    if (random_() % 16 == 0) {
      ++counts_.abandoned;
      return false;
    }
    const std::string_view text =
        std::string_view(object.body).substr(i * kModelPartBytes, kModelPartBytes);
    const iovec piece = piece_of(text);
    Record part{};
    part.fields.kind = RecordKind::kPart;
    part.fields.part = static_cast<std::uint32_t>(i);
    part.fields.body = object.fields.body;
    part.fields.key = cache::part_key(object.fields.key, object.fields.body, i).hash;
    part.fields.version = ++version_;
    part.fields.body_bytes = text.size();
    part.body = {&piece, 1};
    const auto lies = write(part, cache::WriteReason::kAdmit);
    if (!lies) return false;
    ++counts_.parts;
    parts_[part.fields.key] = {object.fields.body, *lies};
  }
  return true;
}

bool Driver::is_whole(const Committed& object) const {
  if (object.fields.kind != RecordKind::kHead) return true;
  for (std::uint64_t i = 0; i < model_parts(object.body.size()); ++i) {
    const auto key = cache::part_key(object.fields.key, object.fields.body, i);
    if (!parts_.contains(key.hash)) return false;
  }
  return true;
}

void Driver::freshen() {
  const auto at = entries_.find(some_key());
  if (at == entries_.end()) return;
  const std::string key = at->first;
  if (!is_whole(*at->second.object)) {
    add_tombstone(at->second.object->fields.key);
    return drop(key);
  }
  // With the number of the old one's body, where that is in parts.
  auto object = std::make_shared<Committed>(*at->second.object);
  object->fields.version = ++version_;
  object->fields.fresh_until += 100;
  object->head = "HTTP/1.1 200 OK\r\nDate: new\r\n\r\n";
  history_.committed(object);
  drop(key);
  const iovec whole = piece_of(object->body);
  const auto body =
      object->fields.kind == RecordKind::kHead ? std::span<const iovec>() : std::span(&whole, 1);
  const auto lies = write(record_of(*object, body), cache::WriteReason::kAdmit);
  if (!lies) return add_tombstone(object->fields.key);
  ++counts_.freshened;
  entries_[key] = {object, *lies};
}

void Driver::leave_unwritten() {
  // Replaced in memory only: what the disk has of it must not come back for long.
  const std::string key = some_key();
  add_tombstone(filter::identify({1, 2}, key).hash);
  drop(key);
}

void Driver::purge() {
  Purge purge;
  purge.kind = random_() % 3 == 0   ? PurgeKind::kTag
               : random_() % 8 == 0 ? PurgeKind::kPrefix
                                    : PurgeKind::kKey;
  purge.version = ++version_;
  purge.sequence = writer_->sequence_max();
  if (purge.kind == PurgeKind::kKey) purge.key = filter::identify({1, 2}, some_key()).hash;
  if (purge.kind == PurgeKind::kTag) purge.pattern = tag(random_() % kTags);
  if (purge.kind == PurgeKind::kPrefix) purge.pattern = some_key().substr(0, 14);
  unsaid_.push_back(purge);
  std::vector<std::string> dead;
  for (const auto& [key, entry] : entries_) {
    if (is_purged_by(purge, entry.object->fields, key, entry.object->meta)) dead.push_back(key);
  }
  for (const std::string& key : dead) {
    // The pattern may be of this version alone.
    add_tombstone(entries_.at(key).object->fields.key);
    drop(key);
  }
  if (append_purges()) ++counts_.purges;
}

bool Driver::append_purges() {
  if (!purges_->append(unsaid_)) {
    ++counts_.failed;
    return false;
  }
  for (const Purge& purge : std::exchange(unsaid_, {})) history_.purged(purge);
  return true;
}

bool Driver::reclaim() {
  if (!emptied_) {
    auto oldest = log_->oldest();
    // As the kernel: else its sequence would be given again.
    if (oldest && log_->is_newest(*oldest)) oldest = log_->oldest_in_order();
    if (!oldest || log_->is_newest(*oldest)) return false;
    const bool has_older = log_->oldest_in_order() != oldest;
    log_->begin_reclaim(*oldest);
    reclaim_entries(*oldest, has_older);
    reclaim_parts(*oldest);
    emptied_ = oldest;
  }
  // As DiskWriter: before it is written again nothing of it is to be found, for of what it held a
  // newer version may be overwritten and an older one not.
  if (!append_purges()) return false;
  if (!writer_->erase(*emptied_)) {
    ++counts_.failed;
    return false;
  }
  ENCORE_CHECK(log_->end_reclaim(*emptied_), "nothing is left of a segment that is reclaimed");
  emptied_.reset();
  if (!purges_->prune(writer_->sequence_min())) ++counts_.failed;
  return true;
}

void Driver::reclaim_entries(std::uint32_t segment, bool has_older) {
  std::vector<std::string> there;
  for (const auto& [key, entry] : entries_) {
    if (entry.lies.place.segment == segment) there.push_back(key);
  }
  for (const std::string& key : there) {
    Entry& entry = entries_.at(key);
    const auto moved =
        random_() % 4 == 0 ? std::nullopt : move(entry.lies, entry.object->fields.key);
    if (!moved) {
      if (has_older) add_tombstone(entry.object->fields.key);
      drop(key);
      continue;
    }
    entry.lies = *moved;
    ++counts_.moved;
  }
}

void Driver::reclaim_parts(std::uint32_t segment) {
  std::set<std::uint64_t> used;
  for (const auto& [key, entry] : entries_) used.insert(entry.object->fields.body);
  std::vector<filter::Hash128> there;
  for (const auto& [key, part] : parts_) {
    if (part.lies.place.segment == segment) there.push_back(key);
  }
  for (const filter::Hash128& key : there) {
    Part& part = parts_.at(key);
    // A reader of one soon reads the others; parts without a head are not requested.
    const bool moves = used.contains(part.body) && random_() % 8 != 0;
    const auto moved = moves ? move(part.lies, key) : std::nullopt;
    if (!moved) {
      drop_part(key);
      continue;
    }
    part.lies = *moved;
    ++counts_.moved_parts;
  }
}

std::optional<Driver::Lies> Driver::move(const Lies& from, const filter::Hash128& key) {
  const auto read = read_record(file_, superblock_, from.place, from.sequence, key);
  if (!read) return std::nullopt;
  const iovec own = piece_of(read->body);
  const auto lies = write(record_of(*read, {&own, 1}), cache::WriteReason::kMove);
  if (lies) log_->mark_dead(from.place);
  return lies;
}

void Driver::drop(const std::string& key) {
  const auto at = entries_.find(key);
  if (at == entries_.end()) return;
  log_->mark_dead(at->second.lies.place);
  entries_.erase(at);
}

void Driver::add_tombstone(const filter::Hash128& key) {
  Purge purge;
  purge.version = ++version_;
  purge.sequence = writer_->sequence_max();
  purge.key = key;
  unsaid_.push_back(purge);
}

void Driver::drop_part(const filter::Hash128& key) {
  log_->mark_dead(parts_.at(key).lies.place);
  parts_.erase(key);
}

void Driver::collect() {
  for (const SegmentWriter::Written& written : writer_->take_written()) {
    (written.is_written ? unsynced_ : failed_).push_back(written);
  }
}

void Driver::take_written() {
  collect();
  for (const SegmentWriter::Written& lost : std::exchange(failed_, {})) {
    ++counts_.failed;
    failed(lost.place);
  }
}

void Driver::failed(const cache::DiskPlace& place) {
  const auto is_it = [&](const auto& each) { return each.second.lies.is_at(place); };
  if (const auto part = std::ranges::find_if(parts_, is_it); part != parts_.end()) {
    return drop_part(filter::Hash128(part->first));
  }
  const auto at = std::ranges::find_if(entries_, is_it);
  if (at == entries_.end()) return;
  // The replaced record must not return.
  add_tombstone(at->second.object->fields.key);
  drop(std::string(at->first));
}

bool Driver::shrink(std::uint32_t segments) {
  log_->resize(segments);
  while (log_->held_segments() > segments) {
    const std::uint64_t failed = counts_.failed;
    // The newest goes once there is a newer one.
    if (!reclaim()) write_object(false);
    if (counts_.failed != failed) return false;
    take_written();
  }
  return true;
}

bool Driver::stop() {
  const bool is_said = append_purges();
  const bool is_sealed = writer_->seal().has_value();
  take_written();
  // Failed writes have been reported.
  return is_said && is_sealed && unsaid_.empty();
}

std::map<std::string, cache::DiskVersion> Driver::resident() const {
  std::map<std::string, cache::DiskVersion> resident;
  for (const auto& [key, entry] : entries_) {
    if (is_whole(*entry.object)) resident[key] = entry.object->fields.version;
  }
  return resident;
}

}  // namespace encore::disk
