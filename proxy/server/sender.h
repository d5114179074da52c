// Sender: puts one response on a client's connection: text (heads, part heads) and ranges of a
// body that lies in the store or is still coming from an origin. It holds what it sends, copies
// nothing of the body and never blocks. Confined to its worker.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "proxy/net/stream.h"
#include "proxy/server/pace.h"
#include "proxy/store/body.h"
#include "proxy/store/object.h"

namespace encore::server {

class Sender {
 public:
  enum class Status : std::uint8_t {
    kDone,     // all is written
    kBlocked,  // the client takes no more now: on_writable will come
    kWaiting,  // the body has no more now
    kMore,     // this turn's share is written: pump again soon, others want a turn
    kAborted,  // the body ended early: the client must see a broken message
    kError,    // the client's connection is dead
  };

  // Bytes written in one turn before others get theirs.
  static constexpr std::size_t kTurnBytes = 1024 * 1024;

  // Holds the object whose bytes are sent.
  void hold(store::ObjectRef object) { object_ = std::move(object); }
  // The body that ranges are cut from; `start` is where the first range begins. False where the
  // body is not kept from there any more.
  bool set_body(store::BodyRef body, std::uint64_t start = 0);
  void add_text(std::string text);
  // REQUIRES: set_body; ranges in the order of the body unless it is complete.
  void add_range(std::uint64_t begin, std::uint64_t end);
  // The whole body, however long it will be, as chunks or until the connection closes.
  // `trailers` is read when the body is complete; null: none are sent.
  void add_open_body(bool chunked, const std::string* trailers);

  // Sends the first bytes of the text that will be added next, which is still to be added whole.
  // kDone: they, or some of them, are written; kBlocked: none are; kWaiting: there is something
  // else to be sent before. REQUIRES: the next text begins with them.
  Status send_ahead(net::Stream& stream, std::string_view bytes);

  Status pump(net::Stream& stream);

  // What it begins with was refused by the client's connection before: on_writable will come.
  void set_blocked() { last_ = Status::kBlocked; }

  bool has_body() const { return cursor_.has_value(); }
  // Whether the last pump ended because the client takes no more.
  bool is_blocked() const { return last_ == Status::kBlocked; }
  // How long the client has taken nothing although there was something for it.
  Nanoseconds stalled_for(MonotonicTime now);
  std::uint64_t sent_bytes() const { return sent_bytes_; }
  // Content sent, without heads and chunk framing.
  std::uint64_t body_bytes() const { return body_bytes_; }
  // What is kept in memory for what the client has not taken: text, and of the body what nobody
  // else keeps.
  std::uint64_t held_bytes() const;
  // The client takes what it is sent, although its connection takes no more for it yet.
  void note_taking(MonotonicTime now) { stall_since_ = now; }
  // How fast the client takes it. Looked at by whoever sweeps.
  Pace& pace() { return pace_; }
  const Pace& pace() const { return pace_; }
  // How far into the body this sender is.
  std::uint64_t position() const { return cursor_ ? cursor_->position() : 0; }

 private:
  struct Segment {
    std::string text;
    std::uint64_t begin = 0;
    std::uint64_t end = 0;  // the text goes first
  };
  Status pump_turn(net::Stream& stream);
  Status pump_segment(net::Stream& stream, std::size_t budget);
  Status pump_open(net::Stream& stream, std::size_t budget);
  // Writes pending text and up to `body_bytes` from the cursor.
  Status write(net::Stream& stream, std::string& text, std::uint64_t body_bytes,
               std::uint64_t* body_written);
  bool skip_to(std::uint64_t position);

  store::ObjectRef object_;
  store::BodyRef body_;
  std::optional<store::Body::Cursor> cursor_;
  std::vector<Segment> segments_;
  std::size_t segment_ = 0;
  std::size_t text_offset_ = 0;
  bool open_ = false;
  bool chunked_ = false;
  bool ended_ = false;
  std::uint64_t chunk_left_ = 0;
  std::string open_text_;
  const std::string* trailers_ = nullptr;
  std::uint64_t sent_bytes_ = 0;
  std::uint64_t body_bytes_ = 0;
  std::size_t turn_bytes_ = 0;
  MonotonicTime stall_since_{};  // of the present stall
  Pace pace_;
  Status last_ = Status::kDone;
};

}  // namespace encore::server
