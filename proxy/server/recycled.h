// Recycled: memory of objects that come and go with every request, kept for the next of their
// kind. They are larger than what the C library keeps a list of for each thread, so that its slow
// path would be taken twice a request. Thread-safe: each thread has a list of its own.
#pragma once

#include <cstddef>
#include <new>

namespace encore::server {

// Derive T from Recycled<T>. At most kKeptMax pieces a thread are kept, freed when it ends.
// REQUIRES: T is not derived from further.
template <typename T>
class Recycled {
 public:
  static constexpr std::size_t kKeptMax = 64;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  // The sanitizers shall see each life of an object.
  static constexpr bool kKeeps = false;
#else
  static constexpr bool kKeeps = true;
#endif

  static void* operator new(std::size_t bytes) {
    if (!kKeeps) return ::operator new(bytes);
    List& list = kept();
    if (list.count == 0) return ::operator new(bytes);
    return list.pieces[--list.count];
  }
  static void operator delete(void* piece) noexcept {
    if (!kKeeps) return ::operator delete(piece);
    List& list = kept();
    if (list.count == kKeptMax) {
      ::operator delete(piece);
    } else {
      list.pieces[list.count++] = piece;
    }
  }

 private:
  friend T;
  Recycled() = default;
  ~Recycled() = default;

  struct List {
    void* pieces[kKeptMax];
    std::size_t count = 0;
    ~List() {
      while (count != 0) ::operator delete(pieces[--count]);
    }
  };
  static List& kept() {
    thread_local List list;
    return list;
  }
};

}  // namespace encore::server
