#include "proxy/store/object.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "base/mutex.h"
#include "proxy/store/arena.h"

namespace encore::store {
namespace {

// Forms are added once in an object's life: who adds one may wait for another.
Mutex& adding() {
  static Mutex mutex;
  return mutex;
}

}  // namespace

static_assert(cache::kKeyBytesMax <= UINT16_MAX && kMetaBytesMax <= UINT16_MAX);

Object::Object(ObjectOwner& owner, const ObjectParts& parts, std::uint64_t body_size, Body* body)
    : meta_size_(static_cast<std::uint16_t>(parts.meta.size())),
      head_size_(static_cast<std::uint32_t>(parts.head.size())),
      key_size_(static_cast<std::uint16_t>(parts.key.size())),
      body_size_(body_size),
      body_(body),
      word_(&owner) {
  std::copy(parts.meta.begin(), parts.meta.end(), reinterpret_cast<std::byte*>(this + 1));
  char* at = text();
  at += parts.key.copy(at, parts.key.size());
  parts.head.copy(at, parts.head.size());
}

Object::~Object() {
  if (!has_forms_.load(std::memory_order_acquire)) return;
  const auto* forms = &forms_of(word_);
  for (const auto& form : forms->forms) {
    const Object* const object = form.load(std::memory_order_relaxed);
    if (object == nullptr) continue;
    object->count_resident(-1);
    object->unref();
  }
  delete forms;
}

ObjectOwner& Object::owner() const {
  if (has_forms_.load(std::memory_order_acquire)) return *forms_of(word_).owner;
  return *static_cast<ObjectOwner*>(word_.load(std::memory_order_relaxed));
}

bool Object::add_form(std::size_t number, ObjectRef form) const {
  const MutexLock lock(adding());
  if (!has_forms_.load(std::memory_order_relaxed)) {
    word_.store(new Forms{.owner = &owner()}, std::memory_order_relaxed);
    has_forms_.store(true, std::memory_order_release);
  }
  auto& place = static_cast<Forms*>(word_.load(std::memory_order_relaxed))->forms.at(number);
  if (place.load(std::memory_order_relaxed) != nullptr) return false;
  form->count_resident(1);
  place.store(std::exchange(form.object_, nullptr), std::memory_order_release);
  return true;
}

// A form's body is in the cache as long as an object has the form.
void Object::count_resident(int change) const {
  if (body_ == nullptr) return;
  body_->residents_.fetch_add(static_cast<std::uint32_t>(change), std::memory_order_relaxed);
}

void Object::take_forms(const Object& other) const {
  for (std::size_t number = 0; number < kFormsMax; ++number) {
    const Object* const form = other.form(number);
    if (form == nullptr) continue;
    form->ref();
    ObjectRef shared;
    shared.object_ = form;
    (void)add_form(number, std::move(shared));
  }
  set_note(other.note());
}

std::uint64_t Object::charge_with_forms() const {
  std::uint64_t bytes = charge();
  for (std::size_t number = 0; number < kFormsMax; ++number) {
    if (const Object* const form = this->form(number)) bytes += form->charge();
  }
  return bytes;
}

void Object::publish(std::uint32_t references) {
  std::atomic_ref(references_).store(references, std::memory_order_release);
}

std::size_t Object::used_bytes() const {
  return sizeof(Object) + padded_meta() + key_size_ + head_size_ +
         (is_inline() ? static_cast<std::size_t>(body_size_) : 0);
}

std::uint64_t Object::charge() const {
  return cache::own_charge(used_bytes()) + (body_ == nullptr ? 0 : body_->charge());
}

void Object::ref() const { std::atomic_ref(references_).fetch_add(1, std::memory_order_relaxed); }

void Object::unref() const {
  if (std::atomic_ref(references_).fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  owner().destroy(const_cast<Object*>(this));
}

}  // namespace encore::store
