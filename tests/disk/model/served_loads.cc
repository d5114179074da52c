// The loads of Served, and bodies in parts on their way in and out.
#include <algorithm>

#include "base/check.h"
#include "cache/disk_parts.h"
#include "proxy/disk/aligned_buffer.h"
#include "proxy/disk/open.h"
#include "proxy/disk/record_reader.h"
#include "tests/disk/model/made_record.h"
#include "tests/disk/model/served.h"

namespace encore::disk {
// Takes all of a record, and has it judged.
class Served::Load final : public DiskLoad {
 public:
  Load(Served& served, Loading loading) : served_(served), loading_(std::move(loading)) {}

  std::expected<void, Damage> read(const RecordFront& front, RecordReader& reader) override {
    loading_.found = {front.fields,
                      std::string(front.text.key),
                      std::string(front.text.names),
                      std::string(front.text.meta),
                      std::string(front.text.head),
                      {}};
    for (std::uint64_t done = 0; done < front.shape.body_bytes;) {
      const auto piece = reader.read(done, front.shape.body_bytes);
      if (!piece) return std::unexpected(piece.error());
      loading_.found.body.append(reinterpret_cast<const char*>(piece->data()), piece->size());
      done += piece->size();
    }
    return {};
  }
  void end(LoadEnd how) override {
    Counts& seen = served_.counts;
    switch (how) {
      case LoadEnd::kDone:
        return served_.load_next(std::move(loading_));
      case LoadEnd::kLost:
        ++seen.lost;
        return;
      case LoadEnd::kBusy:
        ++seen.busy;
        return;
      case LoadEnd::kStopped:
        ++seen.stopped;
        return;
    }
  }

 private:
  Served& served_;
  Loading loading_;
};

// Takes a part as the proxy does: its front, then its blocks into memory of its own.
class Served::PartLoad final : public DiskLoad {
 public:
  PartLoad(Served& served, Loading loading) : served_(served), loading_(std::move(loading)) {}

  std::size_t first_read_bytes() const override { return RecordReader::kPartFrontBytes; }
  std::expected<void, Damage> read(const RecordFront& front, RecordReader& reader) override {
    AlignedBuffer memory(72 * 1024);
    for (std::uint64_t done = 0; done < front.shape.body_bytes;) {
      const auto out = memory.first(memory.size());
      const auto got = reader.read_into(done, out);
      if (!got) return std::unexpected(got.error());
      loading_.found.body.append(reinterpret_cast<const char*>(out.data()), *got);
      done += *got;
    }
    return {};
  }
  void end(LoadEnd how) override {
    Counts& seen = served_.counts;
    switch (how) {
      case LoadEnd::kDone:
        ++loading_.parts;
        return served_.load_next(std::move(loading_));
      case LoadEnd::kLost:
        return served_.lost(loading_);
      case LoadEnd::kBusy:
        ++seen.busy;
        return;
      case LoadEnd::kStopped:
        ++seen.stopped;
        return;
    }
  }

 private:
  Served& served_;
  Loading loading_;
};

bool Served::load(const Name& name) {
  const auto place = find(name);
  if (!place) return false;
  ++counts.loads;
  const auto shown = shown_.find(name);
  Loading loading{.name = name,
                  .place = *place,
                  .shown = shown == shown_.end() ? 0 : shown->second,
                  .purges = answered_.size(),
                  .found = {}};
  disks_->load(key(name.first), *place, std::make_unique<Load>(*this, std::move(loading)));
  return true;
}

void Served::load_next(Loading loading) {
  const RecordFields& fields = loading.found.fields;
  const std::uint64_t all =
      fields.kind == RecordKind::kHead ? part_count(loading.found, loading.name.first) : 0;
  if (loading.parts == all) {
    ++counts.done;
    if (all != 0) {
      ++counts.heads;
      heads_[loading.name] = std::make_shared<Committed>(loading.found);
    }
    return loaded(loading.name, loading.found, loading.shown, loading.purges);
  }
  const cache::Key part = cache::part_key(fields.key, fields.body, loading.parts);
  const auto place = kernel_->find_part(part, now_);
  if (!place) {
    // With several disks its head may be written before it.
    if (place.error() == cache::PartMissing::kAbsent) return lost(loading);
    ++counts.busy;
    return;
  }
  disks_->load(part, *place, std::make_unique<PartLoad>(*this, std::move(loading)));
}

void Served::lost(const Loading& loading) {
  ++counts.incomplete;
  ++counts.lost;
  const cache::Key object = key(loading.name.first);
  disks_->add_tombstone(object.hash, kernel_->lost(object, loading.place, now_));
}

std::uint64_t Served::part_bytes(std::uint64_t key) const {
  return options_.part_bytes != 0 ? options_.part_bytes : key % 2 == 0 ? kModelPartBytes : 68'000;
}

std::uint64_t Served::part_count(const Committed& object, std::uint64_t key) const {
  return (object.fields.body_bytes + part_bytes(key) - 1) / part_bytes(key);
}

cache::Key Served::part_key(const Name& name, std::uint64_t part) const {
  const RecordFields& head = heads_.at(name)->fields;
  return cache::part_key(head.key, head.body, part);
}

void Served::flip(const cache::DiskPlace& place, std::uint64_t at) {
  const auto superblock = read_superblock(*files_[place.disk]);
  ENCORE_CHECK(superblock, "the disk is there");
  const std::uint64_t record = superblock->segment_offset(place.segment) + place.offset();
  files_[place.disk]->image()[record + at] ^= std::byte{1};
}

void Served::step_parts() {
  const auto what = random_() % 8;
  if (what == 0 && uploads_.size() < 3) {
    begin_upload({random_() % options_.keys, 0}, 1 + random_() % 150'000);
  } else if (what == 1) {
    freshen_one();
  } else if (random_() % 32 == 0 && !uploads_.empty()) {
    give_up();
  } else {
    upload_one();
  }
}

void Served::begin_upload(const Name& name, std::size_t body_bytes) {
  auto object = made_object(name, body_bytes);
  object->fields.kind = RecordKind::kHead;
  object->fields.body = disks_->new_body_number();
  uploads_.push_back({name, std::move(object)});
}

bool Served::upload(const Name& name, std::size_t body_bytes) {
  begin_upload(name, body_bytes);
  const std::uint64_t before = counts.placed;
  while (upload_one()) {
  }
  return counts.placed != before;
}

bool Served::upload_one() {
  if (uploads_.empty()) return false;
  const auto which = static_cast<std::ptrdiff_t>(random_() % uploads_.size());
  Upload& upload = uploads_[static_cast<std::size_t>(which)];
  const bool is_last = upload.parts == part_count(*upload.object, upload.name.first);
  if (!is_last && place_part(upload)) return true;
  if (is_last) {
    const bool disk_only =
        upload.object->body.size() + 1000 > kernel_->statistics().max_object_bytes ||
        random_() % 2 == 0;
    commit_object(upload.name, upload.object, disk_only);
  }
  uploads_.erase(uploads_.begin() + which);
  return false;
}

bool Served::place_part(Upload& upload) {
  const Committed& object = *upload.object;
  const std::uint64_t bytes = part_bytes(upload.name.first);
  const cache::Key key = cache::part_key(object.fields.key, object.fields.body, upload.parts);
  auto part = std::make_shared<Committed>();
  part->body = object.body.substr(upload.parts * bytes, bytes);
  part->fields = {.kind = RecordKind::kPart,
                  .part = static_cast<std::uint32_t>(upload.parts),
                  .key = key.hash,
                  .variant = 0,
                  .version = 0,
                  .fresh_until = UINT32_MAX,
                  .keep_until = UINT32_MAX,
                  .stored_at = 1'700'000'000U,
                  .body_bytes = part->body.size(),
                  .body = object.fields.body};
  const cache::DiskDecision decision =
      kernel_->place_part(key,
                          {.bytes = record_bytes(shape_of(source_of(part)->record())),
                           .queue_full = disks_->is_queue_full()},
                          now_);
  if (decision.outcome != cache::DiskOutcome::kPlaced) return false;
  ++upload.parts;
  ++counts.parts;
  undelivered_.push_back({key, decision, std::move(part)});
  return true;
}

bool Served::freshen_one() {
  if (heads_.empty()) return false;
  const auto at = std::next(heads_.begin(), static_cast<std::ptrdiff_t>(random_() % heads_.size()));
  auto object = std::make_shared<Committed>(*at->second);
  object->head = "HTTP/1.1 200 OK\r\nDate: new\r\n\r\n";
  object->fields.fresh_until -= 1;
  ++counts.freshened;
  commit_object(at->first, std::move(object), random_() % 2 == 0);
  return true;
}

}  // namespace encore::disk
