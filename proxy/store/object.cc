#include "proxy/store/object.h"

#include <algorithm>
#include <atomic>

#include "proxy/store/arena.h"

namespace encore::store {

Object::Object(ObjectOwner& owner, const ObjectParts& parts, std::uint64_t body_size, Body* body)
    : meta_size_(static_cast<std::uint16_t>(parts.meta.size())),
      key_size_(static_cast<std::uint32_t>(parts.key.size())),
      head_size_(static_cast<std::uint32_t>(parts.head.size())),
      body_size_(body_size),
      body_(body),
      owner_(&owner) {
  std::copy(parts.meta.begin(), parts.meta.end(), reinterpret_cast<std::byte*>(this + 1));
  char* at = text();
  at += parts.key.copy(at, parts.key.size());
  parts.head.copy(at, parts.head.size());
}

void Object::publish(std::uint32_t references) {
  std::atomic_ref(references_).store(references, std::memory_order_release);
}

std::size_t Object::used_bytes() const {
  return sizeof(Object) + padded_meta() + key_size_ + head_size_ +
         (is_inline() ? static_cast<std::size_t>(body_size_) : 0);
}

std::uint64_t Object::charge() const {
  return SlabArena::slot_bytes(used_bytes()) + (body_ == nullptr ? 0 : body_->charge());
}

void Object::ref() const { std::atomic_ref(references_).fetch_add(1, std::memory_order_relaxed); }

void Object::unref() const {
  if (std::atomic_ref(references_).fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  owner_->destroy(const_cast<Object*>(this));
}

}  // namespace encore::store
