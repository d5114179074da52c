// Http1Writer: puts heads and the content of one response on an HTTP/1 connection, in their order.
// They go as far as the socket takes them, the rest when it is pumped again. It pulls the content
// from a BodyReader, adds the chunked coding where it is asked to, and never blocks. Confined to
// its worker.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/time.h"
#include "proxy/exchange/body_reader.h"
#include "proxy/net/stream.h"
#include "proxy/net/turn_shares.h"
#include "proxy/transfer/read_rate.h"

namespace encore::server {

class Http1Writer {
 public:
  enum class Status : std::uint8_t {
    kDone,     // all is written and, where that is much, sent
    kBlocked,  // the client takes no more now: on_writable will come
    kWaiting,  // the content has no more now
    kMore,     // this turn's share is written, or others wait: pump again with the next share
    kBroken,   // the content ended early: the client must see a broken message
    kDead,     // the client's connection is dead
  };
  enum class Coding : std::uint8_t { kIdentity, kChunked };

  // Content that is written without waiting for a share of the loop's turn (net::TurnShares).
  static constexpr std::size_t kLittleBytes = net::TurnShares::kLittleBytes;

  // Text that goes before the content: heads. REQUIRES: no content yet; begins with what was sent
  // ahead of it, if something was.
  void add_text(std::string text);
  // Sets the content that follows the text; nothing is added behind it. `content` is borrowed until
  // it is read to its end, `trailers` too: lines, read when the content has ended; null: none are
  // sent.
  void set_content(BodyReader& content, Coding coding, const std::string* trailers = nullptr);

  // Sends the first bytes of the text that will be added next, which is still to be added whole.
  // kDone: they, or some of them, are written; kBlocked: none are; kWaiting: there is something
  // else to be sent before.
  Status send_ahead(net::Stream& stream, std::string_view bytes);

  Status pump(net::Stream& stream);

  // The client's connection has refused the first bytes before: on_writable will come.
  void set_blocked() { last_ = Status::kBlocked; }
  // True if the last pump ended because the client takes no more.
  bool is_blocked() const { return last_ == Status::kBlocked; }
  bool is_dead() const { return last_ == Status::kDead; }

  // How long the client has taken nothing although there was something for it.
  // Asks the kernel where it is blocked.
  Nanoseconds stalled_for(MonotonicTime now, const net::Stream& stream);

  // Speed at which the client takes it. Sweeps check it.
  ReadRateMeter& pace() { return pace_; }
  const ReadRateMeter& pace() const { return pace_; }

  std::uint64_t sent_bytes() const { return sent_bytes_; }
  // Returns the bytes of memory that hold what the client has not taken.
  std::uint64_t held_bytes() const {
    return text_.size() + (content_ == nullptr ? 0 : content_->held_bytes());
  }

 private:
  Status pump_share(net::Stream& stream);
  // Returns the status of a response of which all is written: kDone when nothing is unsent.
  Status await_sent(net::Stream& stream) const;
  // Before or after content that peeked to this.
  void frame(const BodyReader::Peeked& peeked);
  void end_content();
  bool is_finished() const;
  Status write(net::Stream& stream, std::span<const iovec> parts);

  std::string text_;
  std::size_t text_written_ = 0;
  BodyReader* content_ = nullptr;  // null: none, or all of it is read
  Coding coding_ = Coding::kIdentity;
  std::uint64_t chunk_left_ = 0;
  const std::string* trailers_ = nullptr;
  std::uint64_t sent_bytes_ = 0;
  std::size_t pump_bytes_ = 0;   // written by the present pump
  MonotonicTime stall_since_{};  // begin of the present stall
  std::uint64_t taken_ = 0;      // bytes of the connection at the last check
  ReadRateMeter pace_;
  Status last_ = Status::kDone;
};

}  // namespace encore::server
