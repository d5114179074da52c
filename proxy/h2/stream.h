// Stream: one exchange of messages on a connection, as its session keeps it; and the table of a
// connection's streams. Internal to the session. Confined to its thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/recycled.h"
#include "base/time.h"
#include "proxy/h2/content_source.h"
#include "proxy/h2/frame.h"
#include "proxy/h2/priority.h"
#include "proxy/h2/stream_handler.h"

namespace encore::h2 {

struct Stream : Recycled<Stream> {
  // Windows of what we send, and of what we receive.
  enum class Sending : std::uint8_t { kNothing, kContent, kEnded };
  enum class Receiving : std::uint8_t { kContent, kEnded };
  enum class Supply : std::uint8_t { kReady, kWaiting, kBroken };
  static constexpr std::uint64_t kOpenEnd = UINT64_MAX;

  StreamHandler* handler = nullptr;
  ContentSource* content = nullptr;
  const std::string* trailers = nullptr;
  Stream* before = nullptr;  // in ReadyList
  Stream* behind = nullptr;
  std::uint64_t content_left = kOpenEnd;  // to be sent
  std::uint64_t sent_bytes = 0;
  std::uint64_t expected = kOpenEnd;  // to be received
  std::uint64_t received = 0;
  std::uint64_t sent_before_stall = 0;
  MonotonicTime stalled_since = {};
  StreamId id = 0;
  std::int64_t send_window = 0;
  std::int32_t receive_window = 0;
  std::uint32_t unconsumed = 0;   // received, and not yet consumed
  std::uint32_t unannounced = 0;  // consumed, and not yet given back to the peer
  Sending sending = Sending::kNothing;
  Receiving receiving = Receiving::kContent;
  Supply supply = Supply::kWaiting;
  Priority priority = {};
  bool is_queued = false;     // in ReadyList
  bool is_shut = false;       // has content that waits for a window
  bool is_head = false;       // answers have no content
  bool has_response = false;  // clients: the final head has come
  // True if it is over in both directions, and stays only until its handler has seen that.
  bool is_over() const { return sending == Sending::kEnded && receiving == Receiving::kEnded; }
};

// In the order of their ids, which is that of their creation.
class StreamTable {
 public:
  // Null: none.
  Stream* find(StreamId id) const;
  // REQUIRES: larger than all before it.
  Stream& add(StreamId id);
  void erase(StreamId id);
  // Streams of which the peer knows that they are open.
  std::size_t open_count() const { return streams_.size() - over_; }
  void count_over() { ++over_; }
  bool empty() const { return streams_.empty(); }
  std::size_t size() const { return streams_.size(); }
  auto begin() const { return streams_.begin(); }
  auto end() const { return streams_.end(); }
  std::vector<StreamId> ids() const;
  std::size_t memory_bytes() const {
    return streams_.size() * sizeof(Stream) + streams_.capacity() * sizeof(void*);
  }

 private:
  std::vector<std::unique_ptr<Stream>> streams_;
  std::size_t over_ = 0;
};

// Streams that have content to send, in the order in which they are served: by urgency, then those
// that take no turns, in the order of their ids, then the others in turns (RFC 9218 10).
class ReadyList {
 public:
  // Behind all that go first, and those that take turns with it. REQUIRES: not in it.
  void add(Stream& stream);
  void remove(Stream& stream);  // nothing where it is not in it
  // Behind those that take turns with it.
  void rotate(Stream& stream) {
    remove(stream);
    add(stream);
  }
  Stream* first() const { return first_; }

 private:
  Stream* first_ = nullptr;
  Stream* last_ = nullptr;
};

// Ids of the streams that have ended last, to know what a late frame of them means. Streams that we
// have reset may have frames on the way still, which are nothing; those that the peer has ended
// have none.
class EndedStreams {
 public:
  static constexpr std::size_t kResetMax = 128;
  static constexpr std::size_t kOtherMax = 8;
  void add_reset(StreamId id);
  void add_other(StreamId id);
  bool was_reset(StreamId id) const;
  bool was_other(StreamId id) const;
  std::size_t memory_bytes() const { return reset_.capacity() * sizeof(StreamId); }

 private:
  std::vector<StreamId> reset_;  // a ring; most connections have none
  std::array<StreamId, kOtherMax> other_ = {};
  std::uint8_t next_reset_ = 0;
  std::uint8_t next_other_ = 0;
};

}  // namespace encore::h2
