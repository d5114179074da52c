// ReplyBatch: the replies to one read's worth of (pipelined) requests, gathered for one write.
// It points into stored objects and holds them until they are written. One a worker, reused:
// nothing is allocated once it has grown. Confined to its worker.
#pragma once

#include <sys/uio.h>

#include <array>
#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "proxy/store/object.h"

namespace encore::server {

class ReplyBatch {
 public:
  static constexpr std::size_t kPartsMax = 192;
  static constexpr std::size_t kTextBytes = 32 * 1024;
  // Parts that one reply needs at most in addition to the text.
  static constexpr std::size_t kPartsOfReply = 3;

  ReplyBatch() {
    objects_.reserve(kPartsMax / kPartsOfReply);
    text_.resize(kTextBytes);
  }

  bool empty() const { return part_count_ == 0; }
  std::size_t bytes() const { return bytes_; }
  bool has_room(std::size_t text_bytes) const {
    return part_count_ + kPartsOfReply <= kPartsMax && text_used_ + text_bytes <= kTextBytes;
  }

  // Room for text that only this reply has; commit_text makes it the next part.
  // REQUIRES: has_room.
  char* text_room() { return text_.data() + text_used_; }
  void commit_text(std::size_t bytes) {
    add_part(text_room(), bytes);
    text_used_ += bytes;
  }
  // Bytes that live as long as an object that is held.
  void add_stored(std::string_view bytes) { add_part(bytes.data(), bytes.size()); }
  void hold(store::ObjectRef object) { objects_.push_back(std::move(object)); }

  std::span<const iovec> parts() const { return {parts_.data(), part_count_}; }
  void clear() {
    part_count_ = 0;
    objects_.clear();
    text_used_ = 0;
    bytes_ = 0;
  }

 private:
  // REQUIRES: has_room().
  void add_part(const void* data, std::size_t bytes) {
    if (bytes == 0) return;
    parts_[part_count_++] = {const_cast<void*>(data), bytes};
    bytes_ += bytes;
  }

  std::array<iovec, kPartsMax> parts_;
  std::size_t part_count_ = 0;
  std::vector<store::ObjectRef> objects_;
  std::vector<char> text_;
  std::size_t text_used_ = 0;
  std::size_t bytes_ = 0;
};

}  // namespace encore::server
