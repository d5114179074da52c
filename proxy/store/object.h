// Object: a committed stored response. Immutable, so that any number of threads may read it without
// locks; it lives as long as somebody holds a reference (the kernel holds one an entry, as an
// opaque Payload; readers hold ObjectRefs). One slot of the arena holds [Object | meta | key text |
// head | small body]; a body that does not fit lies in a Body, and an object that fits no slot
// without its body has a run of pages in place of one (cache::kObjectBytesMax).
//
// It may have further forms of the same response, objects of their own that nothing else knows:
// they come later, stay as long as it does, and end with it.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>

#include "base/prefetch.h"
#include "proxy/store/body.h"

namespace encore::store {

class Object;
class ObjectRef;

// Owner of the objects' memory.
class ObjectOwner {
 public:
  // The last reference has gone. Any thread.
  virtual void destroy(Object* object) = 0;

 protected:
  ~ObjectOwner() = default;
};

// A reference to an object as the kernel keeps it.
using Payload = std::uint64_t;

// The parts of an object. Everything is copied; nothing is kept.
struct ObjectParts {
  std::string_view key;             // the kernel's key bytes: realm and target URI
  std::span<const std::byte> meta;  // a trivially copyable record of the server, <= kMetaBytesMax
  std::string_view head;            // response head, ready to be sent
  bool is_form = false;             // form of another object: add_form() comes next, and no kernel
};

inline constexpr std::size_t kMetaBytesMax = 256;

class Object {
 public:
  Object(const Object&) = delete;
  Object& operator=(const Object&) = delete;

  std::string_view key() const { return {text(), key_size_}; }
  // Aligned to 8 bytes.
  std::span<const std::byte> meta() const {
    return {reinterpret_cast<const std::byte*>(this + 1), meta_size_};
  }
  std::string_view head() const { return {text() + key_size_, head_size_}; }
  // Length of the body, wherever it lies.
  std::uint64_t body_size() const { return body_size_; }
  // True if the whole body is in inline_body(); head and inline body are adjacent in memory:
  // head_and_body() is both.
  bool is_inline() const { return body_ == nullptr; }
  // The whole body where is_inline(), else empty. (With a disk tier: empty where it is on disk.)
  std::string_view inline_body() const {
    return {text() + key_size_ + head_size_, is_inline() ? body_size_ : 0};
  }
  std::string_view head_and_body() const {
    return {text() + key_size_, head_size_ + (is_inline() ? body_size_ : 0)};
  }
  // The separate body; null where is_inline(). Complete, retained. Borrowed from the object.
  Body* body() const { return body_; }
  // Bytes of memory that it takes, slack included. A body shared by two objects (a freshened one
  // and its successor) is counted in both.
  std::uint64_t charge() const;

  // The form of it with this number; null where there is none. Borrowed from the object.
  const Object* form(std::size_t number) const {
    if (!has_forms_.load(std::memory_order_acquire)) return nullptr;
    return forms_of(word_).forms[number].load(std::memory_order_acquire);
  }
  // Gives it a form. False where it has one of that number, which stays. REQUIRES: number <
  // kFormsMax; the form was made with ObjectParts::is_form, and nothing but `form` holds it.
  static constexpr std::size_t kFormsMax = 3;
  bool add_form(std::size_t number, ObjectRef form) const;
  // charge() and that of its forms.
  std::uint64_t charge_with_forms() const;

  // A note of its users about it, for later: 0 at first.
  std::uint8_t note() const { return note_.load(std::memory_order_relaxed); }
  void set_note(std::uint8_t note) const { note_.store(note, std::memory_order_relaxed); }

 private:
  friend class MemoryStore;
  friend class ObjectRef;

  struct Forms {
    ObjectOwner* owner;
    std::array<std::atomic<const Object*>, kFormsMax> forms{};  // one reference each
  };
  static const Forms& forms_of(const std::atomic<void*>& word) {
    return *static_cast<const Forms*>(word.load(std::memory_order_relaxed));
  }

  // Copies the parts behind itself; the inline body is the caller's to copy. Leaves the count
  // alone: a compaction may read it before construction is done.
  Object(ObjectOwner& owner, const ObjectParts& parts, std::uint64_t body_size, Body* body);
  ~Object();

  ObjectOwner& owner() const;
  void count_resident(int change) const;
  // Those of `other` are its forms too, and so is the note.
  void take_forms(const Object& other) const;

  // Makes it visible with this many references.
  void publish(std::uint32_t references);
  // Bytes of its slot that are in use.
  std::size_t used_bytes() const;

  void ref() const;
  void unref() const;

  char* text() { return reinterpret_cast<char*>(this + 1) + padded_meta(); }
  const char* text() const { return const_cast<Object*>(this)->text(); }
  std::size_t padded_meta() const { return (std::size_t{meta_size_} + 7) & ~std::size_t{7}; }

  // References, accessed atomically only; 0 until published. The first word of the slot.
  mutable std::uint32_t references_;
  std::uint16_t meta_size_;
  // Evicted while somebody still read it: its bytes are counted as pinned.
  bool pinned_ = false;
  // The kernel has given it up.
  bool dropped_ = false;
  std::uint32_t head_size_;
  std::uint16_t key_size_;  // at most cache::kKeyBytesMax
  mutable std::atomic<bool> has_forms_ = false;
  mutable std::atomic<std::uint8_t> note_ = 0;
  std::uint64_t body_size_;
  Body* body_;
  mutable std::atomic<void*> word_;  // the ObjectOwner, or the Forms
};
static_assert(sizeof(Object) == cache::kObjectBytes);

// Holds one reference. Thread-compatible; different ObjectRefs to one object may be used by
// different threads.
class ObjectRef {
 public:
  ObjectRef() = default;
  ObjectRef(const ObjectRef& other) : object_(other.object_) {
    if (object_ != nullptr) object_->ref();
  }
  ObjectRef(ObjectRef&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  ObjectRef& operator=(ObjectRef other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~ObjectRef() {
    if (object_ != nullptr) object_->unref();
  }

  // A further reference to what the kernel holds. REQUIRES: the kernel's reference cannot be
  // dropped meanwhile: call it under the shard's lock (in Selector::matches).
  static ObjectRef share(Payload payload) {
    ObjectRef ref = adopt(payload);
    ref.object_->ref();
    return ref;
  }
  // The same to an object that somebody else holds meanwhile.
  static ObjectRef share(const Object& object) { return share(reinterpret_cast<Payload>(&object)); }
  // Takes over the reference that `payload` stands for.
  static ObjectRef adopt(Payload payload) {
    ObjectRef ref;
    ref.object_ = at(payload);
    return ref;
  }
  // Gives the reference away, to the kernel's commit; it comes back by Store::release.
  Payload detach() { return reinterpret_cast<Payload>(std::exchange(object_, nullptr)); }
  // The same number without giving anything away: for comparisons. 0 where empty.
  Payload payload() const { return reinterpret_cast<Payload>(object_); }

  // Asks for the memory of the object's record, key and head, of lines that a hit reads one after
  // the other. REQUIRES: as share().
  static void prefetch(Payload payload) {
    const char* const line = reinterpret_cast<const char*>(at(payload));
    for (std::size_t i = 0; i < kPrefetchedLines; ++i) encore::prefetch(line + i * 64);
  }
  // Reads a payload without a reference. REQUIRES: as share().
  static const Object& peek(Payload payload) { return *at(payload); }

  explicit operator bool() const { return object_ != nullptr; }
  const Object& operator*() const { return *object_; }
  const Object* operator->() const { return object_; }
  const Object* get() const { return object_; }

 private:
  // The kernel knows objects by number only; each is the address that detach() gave away.
  static const Object* at(Payload payload) {
    return reinterpret_cast<const Object*>(payload);  // NOLINT(performance-no-int-to-ptr)
  }

  // The header and the record of 48 and 96 bytes, a key of some 60, a head of some 250.
  static constexpr std::size_t kPrefetchedLines = 7;

  friend class Object;

  const Object* object_ = nullptr;
};

}  // namespace encore::store
