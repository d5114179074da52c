// MemoryStore: the Store in memory, on a SlabArena. Thread-safe as Store says.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>

#include "proxy/store/arena.h"
#include "proxy/store/store.h"

namespace encore::store {

class MemoryStore final : public Store, private SlotMover, private ObjectOwner {
 public:
  explicit MemoryStore(std::unique_ptr<SlabArena> arena) : arena_(std::move(arena)) {}

  Result<BodyRef> make_body(const BodyOptions& options) override;
  Result<std::unique_ptr<Writer>> reserve(const ObjectSpec& spec) override;
  Result<ObjectRef> make_small(const ObjectParts& parts, std::span<const iovec> body) override;
  Result<ObjectRef> with_head(const ObjectRef& old, const ObjectParts& parts) override;
  void release(std::span<const Payload> payloads) override;
  StoreStats stats() const override;
  void set_relocator(Relocator* relocator) override {
    relocator_.store(relocator, std::memory_order_release);
    arena_->set_mover(relocator == nullptr ? nullptr : this);
  }
  void set_limit(std::uint64_t limit_bytes) override { arena_->set_limit(limit_bytes); }
  std::uint64_t limit_bytes_max() const override { return arena_->limit_bytes_max(); }
  std::size_t maintain(std::size_t moves_max) override;
  // Closes holes whether they are worth it or not; see SlabArena::compact.
  std::size_t compact(std::size_t moves_max) { return arena_->compact(moves_max, *this).moved; }

 private:
  class MemoryWriter;

  // SlotMover
  bool pin(void* slot) override;
  bool move(void* slot) override;
  // ObjectOwner
  void destroy(Object* object) override;

  // Makes an object of a complete body: copied into the slot where it fits, shared else.
  Result<ObjectRef> make_object(const ObjectParts& parts, Body& body);
  std::size_t close_holes(std::size_t moves_max);
  Result<Object*> construct(const ObjectParts& parts, std::uint64_t body_size, Body* body);
  ObjectRef publish(Object* object);
  void drop(Payload payload);
  static void give_up(Object* object);
  std::unexpected<Error> out_of_memory(std::uint64_t bytes) const;

  std::unique_ptr<SlabArena> arena_;
  std::atomic<Relocator*> relocator_{nullptr};
  std::atomic<std::uint64_t> objects_{0};
  std::atomic<std::uint64_t> object_bytes_{0};
  std::atomic<std::uint64_t> pinned_bytes_{0};
  std::atomic<std::uint32_t> released_{0};
  std::atomic<std::uint64_t> moved_{0};
};

}  // namespace encore::store
