// OriginHttp2Stream: one request and its response on a connection of HTTP/2 to an origin. The
// request's head is a text of HTTP/1.1, and so is the response's: its parser checks both. Content
// goes both ways without framing. Why HTTP/2 stands behind the fetch as a stream of texts:
// docs/decisions/0476.
//
// Confined to its worker. No function but deliver() and those of h2::StreamHandler calls the
// handler, which may release the stream in any call.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "proxy/h2/client_session.h"
#include "proxy/net/address.h"

namespace encore::server {

class OriginHttp2Stream;

// Why a stream has ended before its response had.
struct StreamFailure {
  enum class Kind : std::uint8_t {
    kRefused,  // its server has not worked on it: it may be sent again (RFC 9113 8.7)
    kReset,    // its server has ended it
    kInvalid,  // no valid response came on it, or a limit was met
    kLost,     // its connection has ended
  };
  Kind kind = Kind::kReset;
  std::string_view why;  // a constant
};

// Sender of the request.
class OriginHttp2Handler {
 public:
  // A head or content; returns how many bytes were used. The rest comes again behind
  // resume_reading().
  virtual std::size_t on_stream_bytes(std::string_view bytes) = 0;
  // All of the response has come. `trailers`: field lines, each with CRLF.
  virtual void on_stream_end(std::string_view trailers) = 0;
  // Some of the content has left.
  virtual void on_stream_writable() = 0;
  // The last call.
  virtual void on_stream_failed(const StreamFailure& failure) = 0;

 protected:
  ~OriginHttp2Handler() = default;
};

// The connection, as its streams see it.
class OriginHttp2Carrier {
 public:
  virtual h2::ClientSession& session() = 0;
  virtual const net::Address& peer() const = 0;
  // "http" or "https".
  virtual std::string_view scheme() const = 0;
  // Bytes that have come on it.
  virtual std::uint64_t bytes_read() const = 0;
  // Writes what there is at the end of this turn.
  virtual void flush_later() = 0;
  // Calls deliver() in this turn, if the stream is not released before.
  virtual void deliver_later(OriginHttp2Stream& stream) = 0;
  // The failure of streams that the connection takes with it.
  virtual StreamFailure failure() const = 0;
  // Takes no more requests.
  virtual void retire() = 0;
  // The stream calls it no more.
  virtual void on_released(OriginHttp2Stream& stream) = 0;

 protected:
  ~OriginHttp2Carrier() = default;
};

class OriginHttp2Stream final : private h2::StreamHandler, private h2::ContentSource {
 public:
  // `carrier` is borrowed until release(). `is_reused`: it has carried other requests.
  OriginHttp2Stream(OriginHttp2Carrier& carrier, bool is_reused)
      : carrier_(&carrier), is_reused_(is_reused) {}
  ~OriginHttp2Stream();
  OriginHttp2Stream(const OriginHttp2Stream&) = delete;
  OriginHttp2Stream& operator=(const OriginHttp2Stream&) = delete;

  void set_handler(OriginHttp2Handler* handler) { handler_ = handler; }
  bool is_reused() const { return is_reused_; }
  // 0 until the head is sent.
  h2::StreamId id() const { return id_; }
  const net::Address& peer() const { return carrier_->peer(); }

  // Sends the request's head. False where it is none. REQUIRES: called once, before content.
  enum class Content : std::uint8_t { kNone, kFollows };
  [[nodiscard]] bool send_head(std::string_view head, Content content);
  // Shows content that is to leave, which stays where it is until taken_bytes() passes it; behind
  // it comes more.
  void offer(std::string_view content);
  // The same, and nothing comes behind it but `trailers`: field lines, each with CRLF.
  void offer_last(std::string_view content, std::string_view trailers);
  // Bytes of the content that have left since the last call.
  std::size_t taken_bytes();
  // The request's end has left, or nothing more can.
  bool has_sent_all() const;

  void pause_reading() { is_paused_ = true; }
  void resume_reading();
  bool is_reading_paused() const { return is_paused_; }
  // Bytes that have come and gone, as far as they are this request's and its response's. Only to be
  // compared with another count of the same stream.
  std::uint64_t moved_bytes() const { return received_bytes_ + sent_bytes_; }
  // Nothing came of the server since the request was sent: the connection takes no more of them.
  void distrust_silence();
  // Ends it: a request or response in progress is cancelled. The handler is called no more.
  void release();

  // --- the connection ---
  void on_head(std::string_view text, bool is_final, bool has_content);
  void deliver();

 private:
  // kWholeTold: and the handler knows.
  enum class End : std::uint8_t { kNotYet, kWhole, kWholeTold, kFailed };

  // h2::StreamHandler
  void on_content(h2::StreamId stream, std::string_view bytes) override;
  void on_content_end(h2::StreamId stream, std::string_view trailers) override;
  void on_writable(h2::StreamId stream) override;
  void on_gone(h2::StreamId stream, h2::ErrorCode code) override;
  // h2::ContentSource
  Peeked peek(std::span<iovec> room, std::size_t bytes_max) override;
  void advance(std::size_t bytes) override;

  std::size_t give(std::string_view bytes);
  void tell_end();
  bool may_tell() const { return handler_ != nullptr && !is_paused_ && kept_.empty(); }

  OriginHttp2Carrier* carrier_;  // null: released
  OriginHttp2Handler* handler_ = nullptr;
  h2::StreamId id_ = 0;
  const bool is_reused_;
  bool is_paused_ = false;
  bool has_all_content_ = false;  // nothing comes behind content_
  bool is_head_ = false;          // it is asked for a head alone
  bool is_gone_ = false;          // the connection has it no more
  End end_ = End::kNotYet;
  std::string_view content_;     // to be sent; the request's
  std::string trailers_;         // behind it
  std::size_t taken_bytes_ = 0;  // bytes of content_
  // Content that the handler has not used: no more than the stream's window.
  std::string kept_;
  std::string response_trailers_;
  StreamFailure failure_;
  std::uint64_t received_bytes_ = 0;
  std::uint64_t sent_bytes_ = 0;
  std::uint64_t read_before_ = 0;  // on the connection, when the request was sent
};

}  // namespace encore::server
