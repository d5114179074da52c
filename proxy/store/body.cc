#include "proxy/store/body.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "base/check.h"
#include "proxy/store/arena.h"

namespace encore::store {

namespace {

static_assert(sizeof(Body) == cache::kBodyBytes && sizeof(Chunk) == cache::kChunkBytes);

constexpr std::size_t round_up(std::size_t bytes, std::size_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

}  // namespace

// --- Making and ending -------------------------------------------------------------------------

Body* Body::make(SlabArena& arena, const BodyOptions& options) {
  void* slot = arena.allocate(sizeof(Body), SlotKind::kFixed);
  return slot == nullptr ? nullptr : new (slot) Body(arena, options);
}

Body::Body(SlabArena& arena, const BodyOptions& options)
    : arena_(arena),
      use_(options.use),
      length_announced_(options.length.value_or(0)),
      last_(&first_),
      first_(*this) {
  size_.store(options.begin, std::memory_order_relaxed);
  first_.begin = options.begin;
  first_.references.store(2, std::memory_order_relaxed);  // retention and the writer
}

Body::~Body() {
  finish(BodyState::kAborted);
  if (retaining_.exchange(false, std::memory_order_relaxed)) unref_chunk(&first_);
}

void Body::unref() {
  if (references_.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  SlabArena& arena = arena_;
  this->~Body();
  arena.free(this);
}

std::uint64_t Body::charge() const {
  return SlabArena::slot_bytes(sizeof(Body)) +
         further_chunks_.load(std::memory_order_relaxed) * SlabArena::slot_bytes(sizeof(Chunk)) +
         held_bytes();
}

std::uint64_t Body::held_for(std::uint64_t position) const {
  if (residents_.load(std::memory_order_relaxed) != 0) return 0;
  if (is_retaining()) return held_bytes();
  const std::uint64_t written = size();
  return written > position ? written - position : 0;
}

// Drops one reference; a chunk that nobody holds gives its memory back and drops its successor.
void Body::unref_chunk(Chunk* chunk) {
  while (chunk != nullptr && chunk->references.fetch_sub(1, std::memory_order_acq_rel) == 1) {
    Body& body = chunk->owner;
    Chunk* next = chunk->next.load(std::memory_order_acquire);
    if (chunk->run.pages != 0) body.arena_.free_run(chunk->run, chunk->committed);
    body.held_bytes_.fetch_sub(chunk->committed, std::memory_order_relaxed);
    if (chunk != &body.first_) {
      body.further_chunks_.fetch_sub(1, std::memory_order_relaxed);
      SlabArena& arena = body.arena_;
      chunk->~Chunk();
      arena.free(chunk);
    }
    chunk = next;
  }
}

void Body::stop_retaining() {
  {
    MutexLock lock(mutex_);
    if (!retaining_.load(std::memory_order_relaxed) || kept_for_object_) return;
    retaining_.store(false, std::memory_order_release);
  }
  unref_chunk(&first_);
}

// --- The writer ----------------------------------------------------------------------------------

// Announced: what is left of it. Unknown: growing with what has come, so that few bytes take
// little address space and many need few iovecs.
std::size_t Body::next_chunk_bytes() const {
  if (use_ == BodyUse::kTransfer) return kTransferChunkBytes;
  const std::uint64_t size = size_.load(std::memory_order_relaxed);
  const std::uint64_t wanted =
      length_announced_ > size ? length_announced_ - size : std::max<std::uint64_t>(size * 4, 1);
  return static_cast<std::size_t>(std::min<std::uint64_t>(wanted, kChunkBytesMax));
}

bool Body::fill_run(Chunk& chunk) {
  chunk.run = arena_.allocate_run(
      static_cast<std::uint32_t>(round_up(next_chunk_bytes(), kPageBytes) / kPageBytes));
  if (chunk.run.pages == 0) return false;
  chunk.data = arena_.data(chunk.run);
  return true;
}

bool Body::add_chunk() {
  void* slot = arena_.allocate(sizeof(Chunk), SlotKind::kFixed);
  if (slot == nullptr) return false;
  auto* chunk = new (slot) Chunk(*this);
  if (!fill_run(*chunk)) {
    chunk->~Chunk();
    arena_.free(slot);
    return false;
  }
  chunk->begin = size_.load(std::memory_order_relaxed);
  chunk->references.store(2, std::memory_order_relaxed);  // its predecessor and the writer
  further_chunks_.fetch_add(1, std::memory_order_relaxed);
  Chunk* full = std::exchange(last_, chunk);
  full->next.store(chunk, std::memory_order_release);
  unref_chunk(full);
  return true;
}

std::span<std::byte> Body::writable(std::size_t want) {
  ENCORE_CHECK(state_.load(std::memory_order_relaxed) == BodyState::kGrowing,
               "a body that was ended is written");
  const std::uint64_t size = size_.load(std::memory_order_relaxed);
  const bool fits = (last_->run.pages != 0 || fill_run(*last_)) &&
                    (size - last_->begin != last_->run.pages * kPageBytes || add_chunk());
  if (!fits) {
    arena_.count_refusal();
    return {};
  }
  const auto used = static_cast<std::size_t>(size - last_->begin);
  const std::size_t capacity = last_->run.pages * kPageBytes;
  const std::size_t wanted = std::min(used + std::max<std::size_t>(want, 1), capacity);
  if (wanted > last_->committed) {
    const std::size_t bytes = round_up(wanted, kOsPageBytes);
    if (arena_.commit(last_->run, last_->committed, bytes)) {
      held_bytes_.fetch_add(bytes - last_->committed, std::memory_order_relaxed);
      last_->committed = bytes;
    }
  }
  if (last_->committed == used) arena_.count_refusal();
  return {last_->data + used, last_->committed - used};
}

void Body::append(std::size_t bytes) {
  const std::uint64_t size = size_.load(std::memory_order_relaxed) + bytes;
  ENCORE_CHECK(size - last_->begin <= last_->committed, "more was appended than was writable");
  size_.store(size, std::memory_order_release);
}

std::size_t Body::append(std::span<const std::byte> bytes) {
  std::size_t done = 0;
  while (done < bytes.size()) {
    const auto space = writable(bytes.size() - done);
    if (space.empty()) break;
    const std::size_t part = std::min(space.size(), bytes.size() - done);
    std::memcpy(space.data(), bytes.data() + done, part);
    append(part);
    done += part;
  }
  return done;
}

void Body::end_chunk() {
  const bool is_empty = size_.load(std::memory_order_relaxed) == last_->begin;
  if (!is_empty && !add_chunk()) arena_.count_refusal();
}

void Body::finish(BodyState state) {
  if (state_.load(std::memory_order_relaxed) != BodyState::kGrowing) return;
  state_.store(state, std::memory_order_release);
  unref_chunk(last_);
}

void Body::complete() { finish(BodyState::kComplete); }
void Body::abort() { finish(BodyState::kAborted); }

void Body::keep_for_object() {
  {
    MutexLock lock(mutex_);
    ENCORE_CHECK(retaining_.load(std::memory_order_relaxed), "a body is stored in part");
    if (std::exchange(kept_for_object_, true)) return;
  }
  if (last_->run.pages == 0) return;
  const auto used = static_cast<std::size_t>(size() - last_->begin);
  const std::size_t kept = round_up(used, kOsPageBytes);
  last_->run = arena_.trim(last_->run, last_->committed, kept);
  held_bytes_.fetch_sub(last_->committed - kept, std::memory_order_relaxed);
  last_->committed = kept;
}

// --- Readers -------------------------------------------------------------------------------------

std::optional<Body::Cursor> Body::open(std::uint64_t offset) {
  MutexLock lock(mutex_);
  if (!retaining_.load(std::memory_order_relaxed)) return std::nullopt;
  ENCORE_CHECK(offset >= first_.begin, "a cursor stands behind the first byte");
  return Cursor(*this, first_, offset);
}

Body::Cursor::Cursor(Body& body, Chunk& chunk, std::uint64_t position)
    : body_(&body), chunk_(&chunk), position_(position) {
  body.ref();
  chunk.references.fetch_add(1, std::memory_order_relaxed);
  settle();
}

Body::Cursor::~Cursor() {
  if (body_ == nullptr) return;
  unref_chunk(chunk_);
  body_->unref();
}

// Moves to the chunk that holds the position. Its reference to that chunk holds the later ones.
void Body::Cursor::settle() {
  for (;;) {
    Chunk* next = chunk_->next.load(std::memory_order_acquire);
    if (next == nullptr || position_ < next->begin) return;
    next->references.fetch_add(1, std::memory_order_relaxed);
    unref_chunk(std::exchange(chunk_, next));
  }
}

Body::Cursor::Peeked Body::Cursor::peek(std::span<iovec> out, std::size_t bytes_max) {
  Peeked result;
  // The size first: bytes that it covers lie in chunks that are linked by now.
  const std::uint64_t size = body_->size();
  settle();
  const Chunk* chunk = chunk_;
  std::uint64_t position = position_;
  while (chunk != nullptr && position < size && result.bytes < bytes_max) {
    const Chunk* next = chunk->next.load(std::memory_order_acquire);
    const std::uint64_t end = next == nullptr ? size : std::min(size, next->begin);
    const auto bytes =
        static_cast<std::size_t>(std::min<std::uint64_t>(end - position, bytes_max - result.bytes));
    std::byte* from = chunk->data + (position - chunk->begin);
    iovec* before = result.parts == 0 ? nullptr : &out[result.parts - 1];
    if (before != nullptr && static_cast<std::byte*>(before->iov_base) + before->iov_len == from) {
      before->iov_len += bytes;
    } else {
      if (result.parts == out.size()) break;
      out[result.parts++] = {from, bytes};
    }
    result.bytes += bytes;
    position += bytes;
    chunk = next;
  }
  return result;
}

void Body::Cursor::advance(std::size_t bytes) {
  // It may wait beyond what was written; it cannot have read there.
  position_ += bytes;
  ENCORE_CHECK(bytes == 0 || position_ <= body_->size(), "a cursor advances past what was written");
  settle();
}

bool Body::Cursor::at_end() const {
  return body_->state() == BodyState::kComplete && position_ >= body_->size();
}

BodyState Body::Cursor::state() const { return body_->state(); }

}  // namespace encore::store
