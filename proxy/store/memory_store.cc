#include "proxy/store/memory_store.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <string>

#include "base/check.h"
#include "base/units.h"
#include "cache/charge.h"

namespace encore::store {

namespace {

// Holes that are not worth a move: one part in 32 of what is live (3 %), and a constant.
constexpr std::uint64_t kHolesShare = 32;
constexpr std::uint64_t kHolesConstant = kMiB;
// Compaction keeps up with eviction by itself: a slot that is freed makes one hole, and one move
// closes it. It is paid in batches, twice over, so that it also catches up.
constexpr std::uint32_t kReleasesPerBatch = 32;
constexpr std::size_t kMovesPerBatch = 2 * kReleasesPerBatch;
// One or two milliseconds of a maintenance tick while a cache fills up; nothing afterwards.
constexpr std::size_t kHugePagesPerTick = 4;

cache::ObjectSizes sizes_of(const ObjectParts& parts, std::uint64_t body) {
  return {parts.key.size(), parts.meta.size(), parts.head.size(), body};
}

}  // namespace

class MemoryStore::MemoryWriter final : public Writer {
 public:
  MemoryWriter(MemoryStore& store, BodyRef body) : store_(store), body_(std::move(body)) {}
  ~MemoryWriter() override {
    if (!spent_) body_->abort();
  }
  const BodyRef& body() const override { return body_; }
  Result<ObjectRef> commit(const ObjectParts& parts) override {
    ENCORE_CHECK(!std::exchange(spent_, true), "an object is committed twice");
    ENCORE_CHECK(body_->state() == BodyState::kComplete && body_->is_retaining(),
                 "an object is committed without its whole body");
    return store_.make_object(parts, *body_);
  }

 private:
  MemoryStore& store_;
  BodyRef body_;
  bool spent_ = false;
};

Result<std::unique_ptr<Store>> make_memory_store(const MemoryStoreOptions& options) {
  auto arena = SlabArena::create({options.limit_bytes, options.idle_bytes_max, 0});
  if (!arena) return std::unexpected(arena.error());
  return std::make_unique<MemoryStore>(std::move(*arena));
}

std::unexpected<Error> MemoryStore::out_of_memory(std::uint64_t bytes) const {
  return fail("no memory for " + format_bytes(bytes) + ": the store holds " +
              format_bytes(arena_->held_bytes()) + " of " + format_bytes(arena_->limit_bytes()));
}

// --- Making objects ------------------------------------------------------------------------------

Result<BodyRef> MemoryStore::make_body(const BodyOptions& options) {
  Body* body = Body::make(*arena_, options);
  if (body == nullptr) {
    arena_->count_refusal();
    return out_of_memory(sizeof(Body));
  }
  return BodyRef::adopt(body);
}

Result<std::unique_ptr<Writer>> MemoryStore::reserve(const ObjectSpec& spec) {
  BodyRef body = spec.body;
  if (body) {
    body->set_use(BodyUse::kStored);
  } else {
    auto made = make_body({spec.length, BodyUse::kStored});
    if (!made) return std::unexpected(made.error());
    body = std::move(*made);
  }
  return std::make_unique<MemoryWriter>(*this, std::move(body));
}

Result<Object*> MemoryStore::construct(const ObjectParts& parts, std::uint64_t body_size,
                                       Body* body) {
  ENCORE_CHECK(parts.meta.size() <= kMetaBytesMax, "the meta of an object is too large");
  cache::ObjectSizes sizes = sizes_of(parts, body == nullptr ? body_size : 0);
  if (!cache::is_inline(sizes)) {
    arena_->count_refusal();
    return fail("a response with key, head and inline body of " +
                format_bytes(parts.key.size() + parts.head.size() + sizes.body) +
                " is too large for an object");
  }
  const std::uint64_t bytes = cache::charge_for(sizes);
  // Its address is what a form is found by.
  const SlotKind kind = parts.is_form ? SlotKind::kFixed : SlotKind::kMovable;
  void* slot = arena_->allocate(static_cast<std::size_t>(bytes), kind);
  if (slot == nullptr) {
    arena_->count_refusal();
    return out_of_memory(bytes);
  }
  auto* object = new (slot) Object(*this, parts, body_size, body);
  object->dropped_ = parts.is_form;  // no kernel will have it
  return object;
}

ObjectRef MemoryStore::publish(Object* object) {
  if (!object->dropped_ && object->body_ != nullptr) {
    object->body_->residents_.fetch_add(1, std::memory_order_relaxed);
  }
  objects_.fetch_add(1, std::memory_order_relaxed);
  object_bytes_.fetch_add(object->charge(), std::memory_order_relaxed);
  object->publish(1);
  return ObjectRef::adopt(reinterpret_cast<Payload>(object));
}

Result<ObjectRef> MemoryStore::make_small(const ObjectParts& parts, std::span<const iovec> body) {
  std::size_t size = 0;
  for (const iovec& part : body) size += part.iov_len;
  auto object = construct(parts, size, nullptr);
  if (!object) return std::unexpected(object.error());
  char* at = const_cast<char*>((*object)->inline_body().data());
  for (const iovec& part : body) {
    if (part.iov_len != 0) std::memcpy(at, part.iov_base, part.iov_len);
    at += part.iov_len;
  }
  return publish(*object);
}

Result<ObjectRef> MemoryStore::make_object(const ObjectParts& parts, Body& body) {
  const std::uint64_t size = body.size();
  if (!cache::is_inline(sizes_of(parts, size))) {
    auto object = construct(parts, size, &body);
    if (!object) return std::unexpected(object.error());
    body.keep_for_object();
    body.ref();
    return publish(*object);
  }
  auto object = construct(parts, size, nullptr);
  if (!object) return std::unexpected(object.error());
  char* at = const_cast<char*>((*object)->inline_body().data());
  auto cursor = body.open(0);
  ENCORE_CHECK(cursor.has_value(), "a body stops retaining while it is committed");
  for (std::uint64_t copied = 0; copied < size;) {
    iovec part;
    const auto peeked = cursor->peek({&part, 1}, kChunkBytesMax);
    std::memcpy(at + copied, part.iov_base, part.iov_len);
    cursor->advance(peeked.bytes);
    copied += peeked.bytes;
  }
  return publish(*object);
}

Result<ObjectRef> MemoryStore::with_head(const ObjectRef& old, const ObjectParts& parts) {
  if (Body* body = old->body(); body != nullptr) {
    auto object = construct(parts, body->size(), body);
    if (!object) return std::unexpected(object.error());
    body->ref();
    return publish(*object);
  }
  const std::string_view body = old->inline_body();
  const iovec part{const_cast<char*>(body.data()), body.size()};
  if (cache::is_inline(sizes_of(parts, body.size()))) return make_small(parts, {&part, 1});

  // The new head is so much longer that the body has to move out.
  auto moved_out = make_body({body.size(), BodyUse::kStored});
  if (!moved_out) return std::unexpected(moved_out.error());
  const auto bytes = std::as_bytes(std::span(body));
  if ((*moved_out)->append(bytes) != bytes.size()) return out_of_memory(bytes.size());
  (*moved_out)->complete();
  return make_object(parts, **moved_out);
}

// --- Dropping -----------------------------------------------------------------------------------

void MemoryStore::release(std::span<const Payload> payloads) {
  for (const Payload payload : payloads) drop(payload);
  const auto count = static_cast<std::uint32_t>(payloads.size());
  const std::uint32_t before = released_.fetch_add(count, std::memory_order_relaxed);
  const std::uint32_t batches = (before + count) / kReleasesPerBatch - before / kReleasesPerBatch;
  if (batches != 0) close_holes(batches * kMovesPerBatch);
}

void MemoryStore::drop(Payload payload) {
  auto* object = reinterpret_cast<Object*>(payload);  // NOLINT(performance-no-int-to-ptr)
  // Others are readers, or a compaction for a moment. Counted before our reference goes, for the
  // last of them takes it back.
  if (std::atomic_ref(object->references_).load(std::memory_order_acquire) > 1) {
    object->pinned_ = true;
    pinned_bytes_.fetch_add(object->charge(), std::memory_order_relaxed);
  }
  give_up(object);
  object->unref();
}

// From here on its body, if it has one, is kept for readers alone.
void MemoryStore::give_up(Object* object) {
  if (std::exchange(object->dropped_, true) || object->body_ == nullptr) return;
  object->body_->residents_.fetch_sub(1, std::memory_order_relaxed);
}

void MemoryStore::destroy(Object* object) {
  give_up(object);
  const std::uint64_t charge = object->charge();
  if (object->pinned_) pinned_bytes_.fetch_sub(charge, std::memory_order_relaxed);
  object_bytes_.fetch_sub(charge, std::memory_order_relaxed);
  objects_.fetch_sub(1, std::memory_order_relaxed);
  Body* body = object->body_;
  object->~Object();
  arena_->free(object);
  if (body != nullptr) body->unref();
}

StoreStats MemoryStore::stats() const {
  StoreStats stats;
  stats.objects = objects_.load(std::memory_order_relaxed);
  stats.live_bytes = arena_->live_bytes();
  stats.held_bytes = arena_->held_bytes();
  stats.limit_bytes = arena_->limit_bytes();
  stats.idle_bytes = arena_->idle_bytes();
  stats.pinned_bytes = pinned_bytes_.load(std::memory_order_relaxed);
  const std::uint64_t stored = object_bytes_.load(std::memory_order_relaxed);
  // A body shared by a freshened object and its successor is counted twice in `stored`.
  stats.in_flight_bytes = stats.live_bytes > stored ? stats.live_bytes - stored : 0;
  stats.moved_objects = moved_.load(std::memory_order_relaxed);
  stats.failed_requests = arena_->refusals();
  return stats;
}

// --- Compaction ----------------------------------------------------------------------------------

std::size_t MemoryStore::maintain(std::size_t moves_max) {
  const std::size_t moved = close_holes(moves_max);
  (void)arena_->back_with_huge_pages(kHugePagesPerTick);
  return moved;
}

std::size_t MemoryStore::close_holes(std::size_t moves_max) {
  if (relocator_.load(std::memory_order_acquire) == nullptr) return 0;
  const std::uint64_t live = arena_->live_bytes();
  const std::uint64_t allowed = live + live / kHolesShare + kHolesConstant + arena_->idle_bytes();
  if (arena_->held_bytes() <= allowed) return 0;
  return arena_->compact(moves_max, *this).moved;
}

// A move would not free an object that is being read.
bool MemoryStore::pin(void* slot) {
  std::uint32_t alone = 1;
  return std::atomic_ref(*static_cast<std::uint32_t*>(slot))
      .compare_exchange_strong(alone, 2, std::memory_order_acq_rel, std::memory_order_relaxed);
}

bool MemoryStore::move(void* slot) {
  auto* old = static_cast<Object*>(slot);
  Relocator* relocator = relocator_.load(std::memory_order_acquire);
  const std::size_t bytes = old->used_bytes();
  void* room = relocator == nullptr ? nullptr : arena_->allocate_elsewhere(bytes);
  if (room == nullptr) {
    old->unref();
    return false;
  }
  // Everything but the count is copied; it is immutable once published.
  const ObjectParts parts{old->key(), old->meta(), old->head()};
  auto* copy = new (room) Object(*this, parts, old->body_size_, old->body_);
  const std::string_view body = old->inline_body();
  body.copy(const_cast<char*>(copy->inline_body().data()), body.size());
  if (old->body_ != nullptr) old->body_->ref();
  copy->take_forms(*old);
  Payload payload = publish(copy).detach();
  const bool moved = relocator->replace(old->key(), reinterpret_cast<Payload>(old), payload);
  if (moved) {
    moved_.fetch_add(1, std::memory_order_relaxed);
    payload = reinterpret_cast<Payload>(old);
  }
  // The pin goes, and that one of the two which the kernel does not hold.
  old->unref();
  drop(payload);
  return moved;
}

}  // namespace encore::store
