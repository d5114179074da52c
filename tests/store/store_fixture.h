// Bytes that prove themselves, and a kernel's stand-in, for the tests of the store.
#pragma once

#include <sys/uio.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "proxy/store/memory_store.h"
#include "tests/catch.h"

namespace encore::store {

// Eight bytes of the body named by `seed`, from offset 8 * `word`: wrong bytes, shifted bytes and
// bytes of another body differ.
inline std::uint64_t pattern_word(std::uint64_t seed, std::uint64_t word) {
  const std::uint64_t mixed = (word + 1) * 0x9E3779B97F4A7C15U + seed * 0xD1B54A32D192ED03U;
  return mixed ^ mixed >> 29;
}

inline std::byte pattern_byte(std::uint64_t seed, std::uint64_t offset) {
  return static_cast<std::byte>(pattern_word(seed, offset / 8) >> offset % 8 * 8);
}

inline std::string pattern(std::uint64_t seed, std::size_t size, std::uint64_t from = 0) {
  const std::size_t skip = from % 8;
  std::string text((size + skip + 7) / 8 * 8, '\0');
  for (std::size_t at = 0; at < text.size(); at += 8) {
    const std::uint64_t word = pattern_word(seed, (from + at) / 8);
    std::memcpy(text.data() + at, &word, sizeof(word));
  }
  return text.substr(skip, size);
}

inline std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

inline iovec part_of(std::string_view text) {
  return {const_cast<char*>(text.data()), text.size()};
}

// At most `size` bytes from where the cursor is, with a few iovecs and `bytes_max` bytes a turn.
inline std::string drain(Body::Cursor& cursor, std::size_t size = SIZE_MAX,
                         std::size_t bytes_max = 1 << 20) {
  std::string text;
  std::vector<iovec> out(3);
  while (text.size() < size) {
    const auto got = cursor.peek(out, std::min(size - text.size(), bytes_max));
    if (got.bytes == 0) break;
    for (std::size_t i = 0; i < got.parts; ++i) {
      text.append(static_cast<const char*>(out[i].iov_base), out[i].iov_len);
    }
    cursor.advance(got.bytes);
  }
  return text;
}

// `size` bytes of a stored body from `begin` on, as a sender takes them from it.
inline std::string read_range(const ObjectRef& object, std::size_t begin, std::size_t size) {
  if (object->is_inline()) return std::string(object->inline_body().substr(begin, size));
  auto cursor = object->body()->open(begin);
  REQUIRE(cursor);
  return drain(*cursor, size, 50'000);
}

inline std::string whole_body(const ObjectRef& object) {
  return read_range(object, 0, static_cast<std::size_t>(object->body_size()));
}

// Holds one payload a key under a lock, as a shard of the kernel does.
class ToyKernel final : public Relocator {
 public:
  explicit ToyKernel(Store& store) : store_(store) {}
  ~ToyKernel() {
    while (!entries_.empty()) drop(entries_.begin()->first);
  }

  void put(const std::string& key, ObjectRef object) {
    drop(key);
    const std::scoped_lock lock(mutex_);
    entries_[key] = object.detach();
  }
  ObjectRef get(const std::string& key) {
    const std::scoped_lock lock(mutex_);
    const auto at = entries_.find(key);
    return at == entries_.end() ? ObjectRef() : ObjectRef::share(at->second);
  }
  void drop(const std::string& key) {
    Payload payload = 0;
    {
      const std::scoped_lock lock(mutex_);
      const auto at = entries_.find(key);
      if (at == entries_.end()) return;
      payload = at->second;
      entries_.erase(at);
    }
    store_.release({&payload, 1});
  }
  bool replace(std::string_view key, Payload from, Payload to) override {
    const std::scoped_lock lock(mutex_);
    const auto at = entries_.find(std::string(key));
    if (at == entries_.end() || at->second != from) return false;
    at->second = to;
    return true;
  }

 private:
  Store& store_;
  std::mutex mutex_;
  std::map<std::string, Payload> entries_;
};

inline std::unique_ptr<Store> memory_store(std::uint64_t limit_bytes) {
  auto store = make_memory_store({limit_bytes, kMiB});
  REQUIRE(store);
  return std::move(*store);
}

}  // namespace encore::store
