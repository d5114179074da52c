// Body: the bytes of a response body, in flight or stored: an append-only chain of chunks with ONE
// writer (the worker that fetches) and any number of readers on any threads, without locks between
// them. Memory comes from the arena and is bounded by it.
//
// While the body retains its bytes (kept for late joiners, or stored) a reader may start anywhere.
// After stop_retaining() a chunk is freed when the slowest cursor has passed it, so that a transfer
// of any length passes in bounded memory; without cursors, as soon as it is full.
//
// Nobody is woken here: after append(), complete() or abort() the writer's side wakes its readers,
// once a batch.
#pragma once

#include <sys/uio.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>

#include "base/mutex.h"
#include "proxy/store/page_pool.h"

namespace encore::store {

class Body;
class SlabArena;

// The longest chunk, and that of a transfer.
inline constexpr std::size_t kChunkBytesMax = cache::kRunBytesMax;
inline constexpr std::size_t kTransferChunkBytes = 64 * 1024;

enum class BodyState : std::uint8_t {
  kGrowing,   // more may come
  kComplete,  // size() is final
  kAborted,   // the bytes so far may be read, but are not the whole body
};

// Purpose of a body; it decides the size of chunks.
enum class BodyUse : std::uint8_t {
  kTransfer,  // to be passed on and forgotten: chunks of 64 KiB, freed as readers go on
  kStored,    // to be stored: chunks of up to 1 MiB, so that hits need few iovecs
};

struct BodyOptions {
  std::optional<std::uint64_t> length;  // bytes announced; more or fewer may come
  BodyUse use = BodyUse::kTransfer;
  std::uint64_t begin = 0;  // offset of the first byte that will be there; cursors stand behind it
};

// One piece of memory of a body; an implementation detail that cursors hold on to.
struct Chunk {
  explicit Chunk(Body& body) : owner(body) {}

  // A cursor standing in it, the chunk before it, the writer, and for the first one the body while
  // it retains: one each.
  std::atomic<std::uint32_t> references{0};
  // Its memory; none for a first chunk before the first byte. Written by the writer before a byte
  // of it is published.
  PagePool::Run run;
  std::byte* data = nullptr;
  // Bytes of the run that may be touched; the writer's.
  std::size_t committed = 0;
  // Set once, when this chunk is full.
  std::atomic<Chunk*> next{nullptr};
  // Offset in the body of its first byte.
  std::uint64_t begin = 0;
  Body& owner;
};

class Body {
 public:
  // A reader's place. Confined to one thread at a time; holds the body.
  class Cursor {
   public:
    Cursor(Cursor&& other) noexcept
        : body_(std::exchange(other.body_, nullptr)),
          chunk_(std::exchange(other.chunk_, nullptr)),
          position_(other.position_) {}
    Cursor& operator=(Cursor&& other) noexcept {
      std::swap(body_, other.body_);
      std::swap(chunk_, other.chunk_);
      std::swap(position_, other.position_);
      return *this;
    }
    ~Cursor();

    // Fills `out` from the front with what can be read now, at most `bytes_max` bytes; chunks that
    // lie side by side become one part. The spans stay valid until advance() passes them or the
    // cursor dies.
    struct Peeked {
      std::size_t parts = 0;
      std::size_t bytes = 0;
    };
    Peeked peek(std::span<iovec> out, std::size_t bytes_max);
    // REQUIRES: position() + bytes <= what peek() has shown.
    void advance(std::size_t bytes);

    // Another one at the same place.
    Cursor copy() const { return {*body_, *chunk_, position_}; }

    // Offset in the body of the next byte; it may lie beyond what was written so far.
    std::uint64_t position() const { return position_; }
    // The body is complete and read to its end.
    bool at_end() const;
    BodyState state() const;
    const Body& body() const { return *body_; }

   private:
    friend class Body;
    Cursor(Body& body, Chunk& chunk, std::uint64_t position);
    void settle();

    Body* body_;    // one reference
    Chunk* chunk_;  // one reference
    std::uint64_t position_;
  };

  Body(const Body&) = delete;
  Body& operator=(const Body&) = delete;

  // --- The writer's side: one thread at a time -----------------------------------------------

  // Space for the next bytes, at least one and usually `want` or more. Empty where the memory
  // limit is reached: abort, or try again when memory was freed. The same space is returned until
  // something is appended. REQUIRES: growing.
  std::span<std::byte> writable(std::size_t want);
  // Publishes the first `bytes` of the space that writable() returned last.
  void append(std::size_t bytes);
  // Copies; returns how many bytes found room (fewer than all only at the memory limit).
  std::size_t append(std::span<const std::byte> bytes);
  // Ends the chunk that is being filled where it is: what does not retain gives it back once all
  // readers have passed it, also where the next byte finds no memory. REQUIRES: growing.
  void end_chunk();
  // Ends it; afterwards nothing can be appended. The second of the two is ignored.
  void complete();
  void abort();
  // A transfer that shall be stored after all takes larger chunks from here on.
  void set_use(BodyUse use) { use_ = use; }

  // --- Any thread ------------------------------------------------------------------------------

  // A cursor at `offset`, which may lie beyond what was written. Nothing where the body does not
  // retain any more.
  std::optional<Cursor> open(std::uint64_t offset);
  // Lets the prefix go that all cursors have passed, now and from here on. For good; ignored once
  // an object has the body.
  void stop_retaining() ENCORE_EXCLUDES(mutex_);
  bool is_retaining() const { return retaining_.load(std::memory_order_acquire); }

  // Bytes published; final once the state is not kGrowing. Read state() first.
  std::uint64_t size() const { return size_.load(std::memory_order_acquire); }
  BodyState state() const { return state_.load(std::memory_order_acquire); }
  // Memory held now by its chunks, in bytes, for back-pressure.
  std::uint64_t held_bytes() const { return held_bytes_.load(std::memory_order_relaxed); }
  // Returns the memory that a reader at `position` holds: no body bytes if the cache has them
  // anyway, the whole body if it is kept for readers alone, else the bytes written since.
  std::uint64_t held_for(std::uint64_t position) const;
  // held_bytes() and the bookkeeping: what the kernel is charged for it.
  std::uint64_t charge() const;

  void ref() { references_.fetch_add(1, std::memory_order_relaxed); }
  void unref();

 private:
  friend class MemoryStore;
  friend class Object;

  Body(SlabArena& arena, const BodyOptions& options);
  ~Body();
  static Body* make(SlabArena& arena, const BodyOptions& options);

  bool add_chunk();
  bool fill_run(Chunk& chunk);
  std::size_t next_chunk_bytes() const;
  void finish(BodyState state);
  // It belongs to an object now: it retains for good, and the memory behind the last byte, where
  // readers never look, goes back. REQUIRES: the writer's side, not growing, retaining.
  void keep_for_object() ENCORE_EXCLUDES(mutex_);
  static void unref_chunk(Chunk* chunk);

  SlabArena& arena_;
  std::atomic<std::uint32_t> references_{1};
  std::atomic<BodyState> state_{BodyState::kGrowing};
  std::atomic<bool> retaining_{true};
  BodyUse use_;
  std::atomic<std::uint32_t> further_chunks_{0};  // alive beyond the first
  std::atomic<std::uint32_t> residents_{0};       // objects of it that the kernel has not dropped
  std::atomic<std::uint64_t> size_{0};
  std::atomic<std::uint64_t> held_bytes_{0};
  std::uint64_t length_announced_;  // 0: unknown
  Chunk* last_;                     // one reference while growing
  Mutex mutex_;                     // open() against stop_retaining()
  bool kept_for_object_ ENCORE_GUARDED_BY(mutex_) = false;
  Chunk first_;  // lives with the body; its run does not
};

// Holds one reference. Thread-compatible.
class BodyRef {
 public:
  BodyRef() = default;
  BodyRef(const BodyRef& other) : body_(other.body_) {
    if (body_ != nullptr) body_->ref();
  }
  BodyRef(BodyRef&& other) noexcept : body_(std::exchange(other.body_, nullptr)) {}
  BodyRef& operator=(BodyRef other) noexcept {
    std::swap(body_, other.body_);
    return *this;
  }
  ~BodyRef() {
    if (body_ != nullptr) body_->unref();
  }

  // Takes over a reference.
  static BodyRef adopt(Body* body) {
    BodyRef ref;
    ref.body_ = body;
    return ref;
  }
  // Adds one.
  static BodyRef share(Body* body) {
    body->ref();
    return adopt(body);
  }

  explicit operator bool() const { return body_ != nullptr; }
  Body& operator*() const { return *body_; }
  Body* operator->() const { return body_; }
  Body* get() const { return body_; }

 private:
  Body* body_ = nullptr;
};

}  // namespace encore::store
