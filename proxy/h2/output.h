// Output: what a connection has to send, in the order in which it goes: frames that no window holds
// back, then content of the streams whose turn it is. A batch is gathered as parts for one writev;
// of what the socket then takes, content is counted as sent. Nothing of content is copied, but the
// rest of a frame that has left in part when its stream ends.
//
// gather() plans frames and changes no window: only sent() does, for frames that have begun to
// leave. A thread has one plan; gather() and sent() of a session are called one behind the other.
//
// Internal to the session. Confined to its thread.
#pragma once

#include <sys/uio.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "proxy/h2/frame.h"
#include "proxy/h2/stream.h"

namespace encore::h2 {

struct Batch {
  std::size_t parts = 0;
  std::size_t bytes = 0;
};

// The session, as its output sees it.
class OutputOwner {
 public:
  // The stream's content has ended. The end of the stream is written to control().
  virtual void on_source_end(Stream& stream) = 0;
  // Its content waits, or is broken: it is queued no more, and `supply` says so.
  virtual void on_source_stopped(Stream& stream) = 0;
  // A frame of content has begun to leave, and its last byte has.
  virtual void on_content_begun(Stream& stream, std::uint32_t bytes) = 0;
  virtual void on_content_left(Stream& stream, bool ends_stream) = 0;

 protected:
  ~OutputOwner() = default;
};

class Output {
 public:
  // Parts that gather() needs at least.
  static constexpr std::size_t kPartsMin = 8;
  // Content of a stream in one of its turns, at least: those of one urgency share a batch.
  static constexpr std::size_t kTurnBytes = kFrameBytesMax;

  Output();
  ~Output();
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;

  // Whole frames are appended to it.
  std::string& control() { return control_; }
  std::size_t control_left() const { return control_.size() - control_sent_; }
  // True if something may go without content of streams.
  bool has_control() const { return control_left() != 0 || is_in_frame(); }

  // True if content of a stream may go or end. `window`: the connection's.
  bool has_content(std::int64_t window) const;

  ReadyList& ready() { return ready_; }
  const ReadyList& ready() const { return ready_; }

  // `window`: of the connection. REQUIRES: kPartsMin parts, bytes_max > 0; sent() was called.
  Batch gather(std::span<iovec> room, std::size_t bytes_max, std::int64_t window,
               OutputOwner& owner);
  // Ids of the streams whose content has moved; valid until the next call. REQUIRES: gather() was
  // called before, and nothing in between; no more bytes than it has shown.
  std::span<const StreamId> sent(std::size_t bytes, OutputOwner& owner);

  // The stream ends: its content is not used any more.
  void forget(Stream& stream);

  std::size_t memory_bytes() const { return control_.capacity() + rest_.capacity(); }

 private:
  struct Frame;
  struct Plan;

  bool is_in_frame() const { return header_left_ != 0 || content_left_ != 0; }
  void gather_rest(std::span<iovec> room, Batch& batch) const;
  std::size_t gather_content(Stream& stream, std::span<iovec> room, std::size_t bytes, Batch& batch,
                             OutputOwner& owner);
  void send_rest(std::size_t& bytes, OutputOwner& owner);
  void send_control(std::size_t& bytes);
  void send_frame(Frame& frame, std::size_t& bytes, OutputOwner& owner);
  void keep_rest(Stream& stream);
  void touch(const Stream& stream);

  static Plan& plan();

  std::string control_;
  std::size_t control_sent_ = 0;
  ReadyList ready_;
  // The frame that has left in part. Its content is kept, for its source may lose it: the client
  // is owed as many bytes as the header has said, and would take any others for the content.
  Stream* stream_ = nullptr;  // null: it is gone
  std::string rest_;
  std::uint32_t content_left_ = 0;
  std::array<char, kFrameHeaderBytes> header_ = {};
  std::uint8_t header_left_ = 0;
  bool ends_stream_ = false;
};

}  // namespace encore::h2
