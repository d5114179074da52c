// Memory and objects that come and go with every request, kept for the next of their kind. To free
// and allocate them again, with several requests in progress, takes the C library's slow path,
// which is a sixth of a miss. Thread-safe: each thread has lists of its own, and an object may be
// released on another thread than it was allocated on. While it waits the address sanitizer reports
// any access.
#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <string>
#include <utility>

#include "base/poison.h"

namespace encore {

// At most this many of a kind are kept by a thread, and freed when it ends.
inline constexpr std::size_t kRecycledMax = 64;

// The calling thread's list of things to use again, one for each kind, each of `kBytes`. `Free`
// ends a thing for good.
template <typename Thing, std::size_t kBytes, void (*Free)(Thing*)>
class RecycleList {
 public:
  // Null: none is kept.
  static Thing* take() {
    List& list = kept();
    return list.count == 0 ? nullptr : list.take();
  }
  static void give(Thing* thing) {
    List& list = kept();
    if (list.count == kRecycledMax) {
      Free(thing);
    } else {
      poison(thing, kBytes);
      list.things[list.count++] = thing;
    }
  }

 private:
  struct List {
    Thing* things[kRecycledMax];
    std::size_t count = 0;
    Thing* take() {
      Thing* const thing = things[--count];
      unpoison(thing, kBytes);
      return thing;
    }
    ~List() {
      while (count != 0) Free(take());
    }
  };
  static List& kept() {
    thread_local List list;
    return list;
  }
};

// Memory for one object of type T.
template <typename T>
class RecycledMemory {
 public:
  static void* take() {
    void* piece = List::take();
    return piece != nullptr ? piece : ::operator new(sizeof(T));
  }
  static void give(void* piece) noexcept { List::give(piece); }

 private:
  static void free(void* piece) { ::operator delete(piece); }
  using List = RecycleList<void, sizeof(T), &RecycledMemory::free>;
};

// Derive T from Recycled<T>: new and delete of it use memory again.
// REQUIRES: T is not derived from further.
template <typename T>
class Recycled {
 public:
  static void* operator new(std::size_t) { return RecycledMemory<T>::take(); }
  static void operator delete(void* piece) noexcept { RecycledMemory<T>::give(piece); }

 private:
  friend T;
  Recycled() = default;
  ~Recycled() = default;
};

// The same for std::allocate_shared, whose one piece holds object and count.
template <typename T>
struct RecyclingAllocator {
  using value_type = T;
  RecyclingAllocator() = default;
  template <typename U>
  explicit RecyclingAllocator(const RecyclingAllocator<U>&) {}
  T* allocate(std::size_t count) {
    return static_cast<T*>(count == 1 ? RecycledMemory<T>::take()
                                      : ::operator new(count * sizeof(T)));
  }
  void deallocate(T* piece, std::size_t count) noexcept {
    if (count == 1) {
      RecycledMemory<T>::give(piece);
    } else {
      ::operator delete(piece);
    }
  }
  friend bool operator==(const RecyclingAllocator&, const RecyclingAllocator&) { return true; }
};

template <typename T, typename... Arguments>
std::shared_ptr<T> make_recycled(Arguments&&... arguments) {
  return std::allocate_shared<T>(RecyclingAllocator<T>(), std::forward<Arguments>(arguments)...);
}

// Deleter of make_reused() objects.
template <typename T>
struct RecycleDeleter {
  static void free(T* object) { delete object; }
  void operator()(T* object) const {
    object->clear();
    RecycleList<T, sizeof(T), &RecycleDeleter::free>::give(object);
  }
};

// Whole objects, whose strings and vectors keep their room: T::clear() makes one as good as new,
// lets go of what it shares, and keeps no more memory than is worth it.
template <typename T>
std::shared_ptr<T> make_reused() {
  T* object = RecycleList<T, sizeof(T), &RecycleDeleter<T>::free>::take();
  if (object == nullptr) object = new T;
  return std::shared_ptr<T>(object, RecycleDeleter<T>(), RecyclingAllocator<T>());
}

// Room of a text that is kept for the next one.
inline constexpr std::size_t kReusedTextMax = 4096;

// An empty text that may have room already, and where to leave one that is of no more use.
std::string take_text();
void give_text(std::string text);

}  // namespace encore
