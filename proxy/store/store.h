// Store: moves the bytes of stored responses. The kernel (cache/) decides which responses are
// stored and evicted, and holds for each entry one reference to an object as an opaque Payload; the
// store decides nothing and only says what a thing costs.
//
// The server takes the kernel's budget (Kernel::reserve) before bytes go in.
//
// Thread-safe, except that a Writer and the writer's side of a Body belong to one worker at a
// time. REQUIRES, for all functions: no lock of a kernel's shard is held (making room may move
// objects, which takes those locks).
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "base/error.h"
#include "proxy/store/body.h"
#include "proxy/store/object.h"

namespace encore::store {

// An object under construction. Dropping it without commit aborts: nothing of it is ever served
// as complete.
class Writer {
 public:
  virtual ~Writer() = default;
  // The body for the bytes; readers may join it by Body::open.
  virtual const BodyRef& body() const = 0;
  // Makes the object. The writer is spent, whatever the outcome; the body stays readable.
  // REQUIRES: the body is complete and retains its bytes. Errors: no memory; not
  // cache::is_object().
  virtual Result<ObjectRef> commit(const ObjectParts& parts) = 0;
};

struct ObjectSpec {
  std::string_view key;
  std::optional<std::uint64_t> length;  // length of the body, if announced
  BodyRef body;  // a transfer that is stored after all; else a new one is made
};

struct StoreStats {
  std::uint64_t objects = 0;          // alive: in the kernel or pinned
  std::uint64_t live_bytes = 0;       // slots and chunks in use: stored, pinned and in flight
  std::uint64_t held_bytes = 0;       // taken from the system: live, holes and reserve
  std::uint64_t limit_bytes = 0;      // held_bytes never exceeds it
  std::uint64_t idle_bytes = 0;       // free pages kept for reuse, part of held
  std::uint64_t pinned_bytes = 0;     // charges of objects evicted while somebody reads them
  std::uint64_t in_flight_bytes = 0;  // bytes of bodies that belong to no object (yet)
  std::uint64_t moved_objects = 0;    // by compaction, since the start
  std::uint64_t failed_requests = 0;  // objects, bodies and appends to one that found no room,
                                      // since the start
};

// Puts `to` in the place of `from` in the kernel, for the compaction of memory.
class Relocator {
 public:
  // Under the shard's lock: if an entry of the key holds `from`, stores `to` there and returns
  // true; the kernel's reference to `from` then belongs to the caller, and that of `to` to the
  // kernel. Objects are immutable, so readers of `from` need not be asked. Called with no locks
  // held; `key` is the object's key text.
  virtual bool replace(std::string_view key, Payload from, Payload to) = 0;

 protected:
  ~Relocator() = default;
};

class Store {
 public:
  virtual ~Store() = default;

  // A body for a transfer that is (so far) not to be stored. Errors: no memory.
  virtual Result<BodyRef> make_body(const BodyOptions& options) = 0;
  // Starts an object whose body comes piece by piece. Errors: no memory.
  virtual Result<std::unique_ptr<Writer>> reserve(const ObjectSpec& spec) = 0;
  // The fast path for a complete response whose body lies in the object (cache::is_inline); `body`
  // may come in parts. Errors: it does not; no memory.
  virtual Result<ObjectRef> make_small(const ObjectParts& parts, std::span<const iovec> body) = 0;
  // The same body under a new head and meta (RFC 9111 4.3.4). Errors: no memory; not
  // cache::is_object().
  virtual Result<ObjectRef> with_head(const ObjectRef& old, const ObjectParts& parts) = 0;
  // The kernel has dropped these entries. May move a bounded number of other objects to close the
  // holes. REQUIRES: each stands for one reference.
  virtual void release(std::span<const Payload> payloads) = 0;
  virtual StoreStats stats() const = 0;
  // Lets the store move objects. Without one it cannot, and holes between small objects stay until
  // they are filled. Borrowed; set before the first request, null before the kernel goes away.
  virtual void set_relocator(Relocator* relocator) = 0;
  // A reload changed the memory. Takes effect for what comes; nothing is dropped here, so a lower
  // one is set when the kernel has evicted down to it. REQUIRES: at most limit_bytes_max().
  virtual void set_limit(std::uint64_t limit_bytes) = 0;
  // In memory eight times what it was at the start (16 GiB at least): address space is reserved
  // once.
  virtual std::uint64_t limit_bytes_max() const = 0;
  // Bounded work for a maintenance tick: at most `moves_max` objects are moved, and some memory
  // that is full is backed by huge pages. Returns how many were moved.
  virtual std::size_t maintain(std::size_t moves_max) = 0;
};

struct MemoryStoreOptions {
  // Most that is ever taken from the system; the cache's memory times 1.05 and a reserve for
  // transfers in flight.
  std::uint64_t limit_bytes = 0;
  // Free pages kept for reuse instead of being given back.
  std::uint64_t idle_bytes_max = 4 * 1024 * 1024;
};

// Errors: address space cannot be reserved.
Result<std::unique_ptr<Store>> make_memory_store(const MemoryStoreOptions& options);

}  // namespace encore::store
