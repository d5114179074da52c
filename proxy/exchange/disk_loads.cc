#include "proxy/exchange/disk_loads.h"

#include <span>
#include <utility>

#include "base/check.h"
#include "base/mutex.h"
#include "cache/disk_parts.h"
#include "proxy/settings/router.h"
#include "proxy/transfer/response.h"
#include "proxy/transfer/saved_object.h"

namespace encore::server {

// Receiver of what was read; a disk may be slower to answer than its worker to end.
struct DiskLoads::Mailbox {
  Mutex mutex;
  DiskLoads* loads ENCORE_GUARDED_BY(mutex) = nullptr;  // null: it has ended
};

class DiskLoads::Load final : public disk::DiskLoad {
 public:
  Load(std::shared_ptr<Mailbox> mailbox, const Parts& parts, const Name& name, std::uint64_t number)
      : mailbox_(std::move(mailbox)),
        store_(*parts.store),
        run_(parts.disks->run()),
        name_(name),
        number_(number) {}

  std::expected<void, disk::Damage> read(const disk::RecordFront& front,
                                         disk::RecordReader& reader) override {
    auto object =
        load_object(store_, front, reader, {monotonic_now(), wall_now(), run_}, std::move(room_));
    if (object) object_ = std::move(*object);
    if (!object && object.error() == LoadFault::kDamaged) {
      return std::unexpected(disk::Damage::kBody);
    }
    return {};
  }

  std::span<std::byte> body_room(std::uint64_t record_bytes) override {
    BodyBuffer room = make_body_room(store_, record_bytes);
    room_ = std::move(room.body);
    return room.bytes;
  }

  void end(disk::LoadEnd /*how*/) override {
    const MutexLock lock(mailbox_->mutex);
    DiskLoads* const loads = mailbox_->loads;
    if (loads == nullptr) return;
    loads->parts_.loop.post(
        [mailbox = mailbox_, name = name_, number = number_, object = std::move(object_)] {
          DiskLoads* here = nullptr;
          {
            const MutexLock look(mailbox->mutex);
            here = mailbox->loads;
          }
          if (here != nullptr) here->finish(name, number, object);
        });
  }

 private:
  const std::shared_ptr<Mailbox> mailbox_;
  store::Store& store_;
  const std::uint64_t run_;
  const Name name_;
  const std::uint64_t number_;
  store::ObjectRef object_;
  store::BodyRef room_;
};

DiskLoads::DiskLoads(const Parts& parts) : parts_(parts), mailbox_(std::make_shared<Mailbox>()) {
  const MutexLock lock(mailbox_->mutex);
  mailbox_->loads = this;
}

DiskLoads::~DiskLoads() {
  for (const auto& [name, waiting] : waiting_) {
    ENCORE_CHECK(waiting.readers.empty(), "who waits for a record leaves before its worker ends");
  }
  const MutexLock lock(mailbox_->mutex);
  mailbox_->loads = nullptr;
}

DiskLoads::Name DiskLoads::name_of(const RequestContext& request, const CacheView& found) {
  const cache::DiskPlace& place = found.disk->place;
  return {request.hash.lo, request.hash.hi, place.disk, place.segment, place.unit};
}

void DiskLoads::wait(LoadReader& reader, const RequestContext& request, const CacheView& found) {
  ENCORE_CHECK(found.disk && parts_.disks != nullptr, "what is waited for lies on a disk");
  const Name name = name_of(request, found);
  const auto [at, is_new] = waiting_.try_emplace(name);
  Waiting& waiting = at->second;
  waiting.readers.push_back(&reader);
  waiting.where.promote = waiting.where.promote || found.disk->promote;
  if (!is_new) return;
  waiting.number = ++loads_;
  waiting.key = request.key;
  waiting.hash = request.hash;
  waiting.where = *found.disk;
  waiting.fresh_until = found.fresh_until;
  waiting.invalidations_seen = parts_.inflight.invalidations().count();
  parts_.disks->load({request.hash, request.key}, found.disk->place,
                     std::make_unique<Load>(mailbox_, parts_, name, waiting.number));
}

void DiskLoads::leave(LoadReader& reader, const RequestContext& request, const CacheView& found) {
  if (!found.disk) return;
  std::erase(called_, &reader);
  const auto at = waiting_.find(name_of(request, found));
  if (at != waiting_.end()) std::erase(at->second.readers, &reader);
}

void DiskLoads::finish(const Name& name, std::uint64_t number, store::ObjectRef object) {
  const auto at = waiting_.find(name);
  if (at == waiting_.end() || at->second.number != number) return;
  Waiting ended = std::move(at->second);
  waiting_.erase(at);
  // A purge may have been answered while it was read (docs/decisions/0130).
  if (parts_.inflight.invalidations().has_since(ended.hash, ended.invalidations_seen)) object = {};
  const bool is_alone = object && is_on_disk_alone(*object);
  if (is_alone && !is_whole(ended, *large_body_of(*object))) object = {};
  if (object && (is_alone || !ended.where.promote || !promote(ended, object))) {
    // Informs the store that no kernel has it.
    const store::Payload given_up = store::ObjectRef(object).detach();
    parts_.store->release(std::span(&given_up, 1));
  }
  ENCORE_CHECK(called_.empty(), "loads end one after the other");
  // Kept where leave() finds them: a reader that is called may make others leave.
  called_ = std::move(ended.readers);
  while (!called_.empty()) {
    LoadReader* const next = called_.front();
    called_.erase(called_.begin());
    next->on_loaded(object);
  }
}

std::optional<cache::PartMissing> DiskLoads::missing(const filter::Hash128& key,
                                                     const LargeBody& body) const {
  const std::uint64_t count = cache::part_count(body.length);
  for (std::uint64_t i = 0; i < count; ++i) {
    const auto part =
        parts_.kernel->find_part(cache::part_key(key, body.number, i), parts_.loop.now());
    if (!part) return part.error();
  }
  return std::nullopt;
}

bool DiskLoads::has_parts(const filter::Hash128& key, const LargeBody& body) const {
  return !missing(key, body);
}

bool DiskLoads::is_whole(const Waiting& waiting, const LargeBody& body) {
  const auto why = missing(waiting.hash, body);
  if (why == cache::PartMissing::kAbsent) {
    const cache::DiskTombstone tombstone =
        parts_.kernel->lost({waiting.hash, waiting.key}, waiting.where.place, parts_.loop.now());
    if (tombstone) parts_.disks->add_tombstone(waiting.hash, tombstone);
  }
  return !why;
}

std::unique_ptr<DiskBody> DiskLoads::open(const DiskBody::Wanted& wanted,
                                          std::function<void()> on_more) {
  ENCORE_CHECK(parts_.disks != nullptr, "a body that lies on disk has one");
  auto body = DiskBody::make_body(*parts_.store, wanted);
  if (!body) return nullptr;
  return std::make_unique<DiskBody>(DiskBody::Parts{.loop = parts_.loop,
                                                    .disks = *parts_.disks,
                                                    .kernel = *parts_.kernel,
                                                    .store = *parts_.store},
                                    wanted, std::move(*body), std::move(on_more));
}

// If the kernel has no space, or the record has gone meanwhile, it stays as it was.
bool DiskLoads::promote(const Waiting& waiting, const store::ObjectRef& object) {
  // The index knows hashes: it may be another key's.
  if (primary_key_of(*object) != waiting.key) return false;
  const cache::Key key{waiting.hash, waiting.key};
  const MonotonicTime now = parts_.loop.now();
  cache::Kernel& kernel = *parts_.kernel;
  const std::uint64_t room = object->charge() + kernel.charge_of_entry();
  if (kernel.reserve(key, room, now) != cache::ReserveOutcome::kReserved) return false;
  const std::string_view url = std::string_view(waiting.key).substr(kRealmBytes);
  if (parts_.resident != nullptr) parts_.resident->add(url);
  // The kernel's own, which it may give up before commit() returns.
  store::ObjectRef kept = object;
  const auto outcome = kernel.commit(key,
                                     {.variant = meta_of(*object).variant,
                                      .charge_bytes = object->charge(),
                                      .fresh_until = waiting.fresh_until,
                                      .keep_until = waiting.where.keep_until,
                                      .payload = object.payload(),
                                      .from_disk = waiting.where.place},
                                     room, now);
  if (outcome != cache::CommitOutcome::kStored && outcome != cache::CommitOutcome::kReplaced) {
    if (parts_.resident != nullptr) parts_.resident->remove(url);
    return false;
  }
  (void)kept.detach();
  return true;
}

}  // namespace encore::server
