// The numbering of a trace's objects, and requests that carry it. Values.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "cache/chunked_vector.h"
#include "sim/trace/request.h"

namespace encore::sim {

// Whether an object is among the heaviest of its trace: by requests, by their bytes.
struct Heaviest {
  bool by_requests = false;
  bool by_bytes = false;
};

// A request as the simulations read it.
struct ReplayRequest {
  filter::Hash128 key;
  std::int64_t time_ns = 0;
  std::uint64_t size_bytes = 0;    // size of this request's response
  std::uint64_t object_bytes = 0;  // size of the object from now on, see ObjectSize
  // Which request asks for the same object next, counted from 0; kNeverAgain. Only where the whole
  // trace was read before.
  std::uint64_t next = UINT64_MAX;
  std::uint32_t ttl_seconds = kNoTtl;
  std::uint32_t object = 0;  // from 0 in order of appearance
  bool resized = false;      // object_bytes was another one at the request for it before
  Heaviest heaviest{};       // heaviness of the object, if the whole trace was read before
};
inline constexpr std::uint64_t kNeverAgain = UINT64_MAX;

// The rule for an object's size from the sizes of its responses. Logs have the bytes that were
// sent: a response smaller than an earlier one is a 304, a part or aborted, so the object is as
// large as the largest one. If a trace has sizes of objects, it is as large as the latest.
enum class ObjectSize : std::uint8_t { kLargest, kLatest };
// Errors: an unknown name; the message shows it and the accepted ones.
Result<ObjectSize> parse_object_size(std::string_view name);

// Numbers objects and counts their requests; 32 bytes an object, and 5 to 11 to find it by its key.
// It may forget objects (sim/replay/object_memory.h): their numbers go to later ones, and the
// counts of the whole trace below are too large from then on. Thread-compatible.
class ObjectTable {
 public:
  explicit ObjectTable(ObjectSize rule = ObjectSize::kLargest) : rule_(rule) {}

  ReplayRequest number(const Request& request) {
    ReplayRequest numbered;
    number(request, numbered);
    return numbered;
  }
  // The same, into a request that is as it was made.
  void number(const Request& request, ReplayRequest& out) {
    const std::uint32_t object = number_of(request.key);
    Object& seen = objects_[object];
    seen.requests += seen.requests == UINT32_MAX ? 0U : 1U;
    const bool resized = request.size_bytes != seen.size_bytes && resize(seen, request.size_bytes);
    out.key = request.key;
    out.time_ns = request.time_ns;
    out.size_bytes = request.size_bytes;
    out.object_bytes = seen.size_bytes;
    out.ttl_seconds = request.ttl_seconds;
    out.object = object;
    out.resized = resized;
  }
  // The memory that numbering a request for the key will need, to be asked for beforehand: first
  // the one, and when that has come the other (null: there is none yet).
  const void* slot_of(const filter::Hash128& key) const { return &slots_[home_of(key)]; }
  const void* object_of(const filter::Hash128& key) const {
    const std::uint32_t slot = slots_[home_of(key)];
    return slot == 0 ? nullptr : &objects_[slot - 1];
  }
  // Numbers are below this. A number without an object has no requests.
  std::size_t objects() const { return objects_.size(); }
  std::size_t known_objects() const { return objects_.size() - free_.size(); }
  // Memory of all objects together.
  std::uint64_t memory_bytes() const {
    return objects_.memory_bytes() + slots_.size() * sizeof slots_.front() +
           free_.capacity() * sizeof(std::uint32_t);
  }
  const filter::Hash128& key_of(std::uint32_t object) const { return objects_[object].key; }
  std::uint32_t requests_of(std::uint32_t object) const { return objects_[object].requests; }
  std::uint64_t size_of(std::uint32_t object) const { return objects_[object].size_bytes; }
  Heaviest heaviest_of(std::uint32_t object) const { return objects_[object].heaviest; }
  // Marks so many objects (and those that weigh the same as the last of them).
  void mark_heaviest(std::size_t count);
  // The sum of all objects' sizes.
  std::uint64_t footprint_bytes() const { return footprint_bytes_; }
  std::uint64_t largest_bytes() const { return largest_bytes_; }
  // How often an object turned out to be smaller than it was before.
  std::uint64_t shrinks() const { return shrinks_; }
  // How many responses had another size than the object until then.
  std::uint64_t other_sizes() const { return other_sizes_; }
  // Forgets the objects that are known and not to be kept; `keep` has a bit for each number.
  void forget_except(const std::vector<bool>& keep);

 private:
  struct Object {
    filter::Hash128 key;
    std::uint64_t size_bytes = 0;  // by the rule
    std::uint32_t requests = 0;
    Heaviest heaviest{};
  };
  // The object's number; a new one for a new key.
  std::uint32_t number_of(const filter::Hash128& key) {
    if ((objects_.size() + 1) * 4 > slots_.size() * 3) {
      grow();
    }
    std::uint32_t& slot = slots_[place(key)];
    if (slot == 0) {
      slot = new_number(key) + 1;
    }
    return slot - 1;
  }
  std::uint32_t new_number(const filter::Hash128& key) {
    if (free_.empty()) {
      objects_.push_back({.key = key});
      return static_cast<std::uint32_t>(objects_.size() - 1);
    }
    const std::uint32_t object = free_.back();
    free_.pop_back();
    objects_[object] = {.key = key};
    return object;
  }
  // The object has a response of another size than its own, which is 0 for a new one. Returns
  // whether a size that it had has changed.
  bool resize(Object& seen, std::uint64_t size_bytes) {
    const bool is_new = seen.requests == 1;
    other_sizes_ += is_new ? 0U : 1U;
    if (!is_new && rule_ == ObjectSize::kLargest && size_bytes < seen.size_bytes) {
      return false;
    }
    shrinks_ += size_bytes < seen.size_bytes ? 1U : 0U;
    largest_bytes_ = std::max(largest_bytes_, size_bytes);
    footprint_bytes_ += size_bytes - seen.size_bytes;
    seen.size_bytes = size_bytes;
    return !is_new;
  }
  // Returns the slot at which the search for the key begins. The number of slots is a power of two.
  std::size_t home_of(const filter::Hash128& key) const {
    return filter::remix(key) & (slots_.size() - 1);
  }
  // Returns the slot of the key's number, or the free one for it.
  std::size_t place(const filter::Hash128& key) const {
    std::size_t at = home_of(key);
    while (slots_[at] != 0 && objects_[slots_[at] - 1].key != key) {
      at = (at + 1) & (slots_.size() - 1);
    }
    return at;
  }
  void grow() {
    const std::size_t slots = slots_.size() * 2;
    slots_ = {};  // gone before the others come
    slots_.resize(slots);
    fill_slots();
  }
  // REQUIRES: all slots are empty.
  void fill_slots() {
    for (std::size_t i = 0; i < objects_.size(); ++i) {
      if (objects_[i].requests == 0) {
        continue;
      }
      std::size_t at = home_of(objects_[i].key);
      while (slots_[at] != 0) {  // another's, for each key is there once
        at = (at + 1) & (slots_.size() - 1);
      }
      slots_[at] = static_cast<std::uint32_t>(i + 1);
    }
  }

  ObjectSize rule_;
  std::vector<std::uint32_t> slots_ = std::vector<std::uint32_t>(1024);  // number + 1; 0: empty
  cache::ChunkedVector<Object> objects_;
  std::vector<std::uint32_t> free_;  // numbers of forgotten objects; the last is given first
  std::uint64_t footprint_bytes_ = 0;
  std::uint64_t largest_bytes_ = 0;
  std::uint64_t shrinks_ = 0;
  std::uint64_t other_sizes_ = 0;
};

}  // namespace encore::sim
