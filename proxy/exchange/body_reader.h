// BodyReader: the content of one response, which its sender pulls: texts (replies of our own, the
// heads of parts) and ranges of a body that lies in the store or is still coming from an origin. It
// holds what it shows, copies no body bytes and never waits. It knows nothing of heads, of framing
// or of connections. Confined to its worker.
#pragma once

#include <sys/uio.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "proxy/store/body.h"
#include "proxy/store/object.h"

namespace encore::server {

class BodyReader {
 public:
  enum class State : std::uint8_t {
    kReady,    // there are bytes
    kWaiting,  // the body has no more now
    kEnd,      // all of it is read
    kBroken,   // the body ended before what is to be read did
  };

  // Holds the object whose bytes are read.
  void hold(store::ObjectRef object) { object_ = std::move(object); }
  // Null: none.
  const store::Object* held() const { return object_.get(); }
  // The body that ranges are cut from; `start` is where the first range begins. False where the
  // body is not kept from there any more.
  bool set_body(store::BodyRef body, std::uint64_t start = 0);

  // Passes what is there of the body before `position`, which nobody is to read. REQUIRES:
  // set_body, nothing was added.
  void pass_over(std::uint64_t position);

  // The bytes of the body that are still to be read, from the first to the last of them. Empty:
  // none. `end` of kOpenEnd: until it ends.
  static constexpr std::uint64_t kOpenEnd = UINT64_MAX;
  struct Left {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
  };
  Left left() const;
  // Lets go of the body; the bytes that are left come from another one, and are waited for until
  // go_on_in(). REQUIRES: has_body().
  void let_go();
  // `body` has the bytes that are left, `shift` bytes nearer to its beginning than the one before.
  // False where it is not kept from there any more. REQUIRES: let_go(); something is left.
  bool go_on_in(store::BodyRef body, std::uint64_t shift);

  // Notes that its content is made from what another reader reads, which takes `bytes` besides.
  // `source` is borrowed.
  void set_made_from(const BodyReader& source, std::uint64_t bytes) {
    made_from_ = &source;
    made_by_bytes_ = bytes;
  }

  // Adds what is to be read, in this order.
  void add_text(std::string text);
  // REQUIRES: set_body; ranges in the order of the body unless it is complete.
  void add_range(std::uint64_t begin, std::uint64_t end);
  // The body from where it was entered, however long it will be. Nothing is added behind it.
  // REQUIRES: set_body.
  void add_rest();

  // Fills `room` from the front with what can be read now, at most `bytes_max` bytes, which may be
  // less than there is. The spans stay valid until advance() passes them or the reader dies.
  struct Peeked {
    State state = State::kEnd;
    std::size_t parts = 0;
    std::size_t bytes = 0;  // not 0 with kReady, else 0
  };
  // REQUIRES: room for two parts, bytes_max > 0.
  Peeked peek(std::span<iovec> room, std::size_t bytes_max);
  // REQUIRES: no more than the last peek() has shown.
  void advance(std::size_t bytes);

  // All is read, as far as the reader knows without the body: not where it is one whose length
  // nobody knows.
  bool at_end() const { return piece_ == pieces_; }
  bool has_body() const { return cursor_.has_value(); }
  // How far into the body it is.
  std::uint64_t position() const { return cursor_ ? cursor_->position() : 0; }
  // Bytes of the body that were read, texts not counted.
  std::uint64_t body_bytes() const { return body_bytes_; }
  // Returns the bytes in memory for unread content: texts, and the part of the body that nobody
  // else keeps.
  std::uint64_t held_bytes() const;

 private:
  struct Piece {
    std::string text;  // goes first
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    bool has_range() const { return begin < end; }
  };
  const Piece& piece_at(std::size_t i) const { return i == 0 ? first_ : further_[i - 1]; }
  Piece& piece_at(std::size_t i) { return i == 0 ? first_ : further_[i - 1]; }
  bool has_open_end() const { return pieces_ != 0 && piece_at(pieces_ - 1).end == kOpenEnd; }
  Piece& last_piece();
  bool skip_to(std::uint64_t position);
  Peeked peek_body(const Piece& piece, std::span<iovec> room, std::size_t bytes_max);

  const BodyReader* made_from_ = nullptr;
  std::uint64_t made_by_bytes_ = 0;
  store::ObjectRef object_;
  store::BodyRef body_;
  std::optional<store::Body::Cursor> cursor_;
  Piece first_;  // most have no other
  std::vector<Piece> further_;
  std::size_t pieces_ = 0;
  std::size_t piece_ = 0;      // the one that is read
  std::size_t text_read_ = 0;  // bytes of the piece
  std::size_t shown_ = 0;      // by the last peek
  std::uint64_t body_bytes_ = 0;
  bool is_between_bodies_ = false;
};

}  // namespace encore::server
