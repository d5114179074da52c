// Session: a connection of HTTP/2 (RFC 9113) as bytes in, bytes out and events between them. It has
// no socket and no timer, and takes `now`. The parts that both ends have in common are here;
// ServerSession and ClientSession are the ends.
//
// Its owner gives it the bytes that were read (receive()), writes those that it wants written
// (gather(), then sent() with as much as the socket took), and calls check_timeouts() about once a
// second. A caller of any of its functions sees to it that has_output() is asked in the same turn.
//
// Headers are decoded by nghttp2; frames, windows and the order of what is sent are our own, for
// nghttp2's session costs 25 KB, and cannot cut a header block (docs/decisions/0470).
//
// Confined to its thread. Sessions of a thread share `counters`.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "proxy/h2/allowances.h"
#include "proxy/h2/field_decoder.h"
#include "proxy/h2/frame.h"
#include "proxy/h2/frame_reader.h"
#include "proxy/h2/options.h"
#include "proxy/h2/output.h"
#include "proxy/h2/stream.h"
#include "proxy/h2/stream_handler.h"

namespace encore::h2 {

// Why a connection ends. `why` is of a constant.
struct ConnectionEnd {
  ErrorCode code = ErrorCode::kNoError;
  std::string_view why;
};

// The state of a stream's response (a server) or request (a client).
enum class SendStatus : std::uint8_t {
  kIdle,     // nothing of it was given yet
  kBlocked,  // there is content that has not left
  kWaiting,  // the content has no more now
  kBroken,   // the content broke off: reset() is next
  kDone,     // all of it has left, or is on its way with no window to wait for
  kGone,     // the stream is not there any more
};

// The mark by which the acknowledgement of a drain's first step is known.
inline constexpr std::string_view kDrainPing = "drained?";

class Session : private FrameSink, private OutputOwner {
 public:
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // --- bytes ---

  // Returns how many bytes were used: all, unless so much is unsent that the peer must take some
  // first; the rest comes again then (is_paused()). Calls handlers.
  std::size_t receive(std::string_view bytes, MonotonicTime now);
  bool is_paused() const { return output_.control_left() > options_.output_bytes_max; }
  // Fills `room` with what is to be sent now: about `bytes_max` bytes at most. The parts stay valid
  // until sent(), which must be the next call. REQUIRES: Output::kPartsMin parts.
  Batch gather(std::span<iovec> room, std::size_t bytes_max);
  // The socket has taken the first `bytes` of the batch, maybe none. Calls handlers.
  void sent(std::size_t bytes, MonotonicTime now);
  // True if gather() has something, or sent() has something to tell: to be written, or at least
  // gathered and sent, in this turn if the socket takes more. Each such round changes something.
  bool has_output() const;
  // Resets streams that stall, and ends a connection in the midst of a header block. Calls
  // handlers.
  void check_timeouts(MonotonicTime now);

  // --- the connection ---

  // No more streams are accepted, open ones go on. The peer is notified in two steps, so that none
  // of its requests is lost: the second follows when it has seen the first, or by finish_drain().
  void drain();
  void finish_drain();
  bool is_draining() const { return drain_ != Drain::kNone; }
  // True if the peer has said that it begins no more streams.
  bool is_peer_draining() const { return is_peer_draining_; }
  // The connection is lost, or closed by its owner: handlers are notified that their streams are
  // gone, from this call.
  void drop();
  // Nothing will be sent or wanted any more: close the connection.
  bool is_finished() const;
  // Set once the connection ends for an error of the peer's.
  const std::optional<ConnectionEnd>& end() const { return end_; }
  bool is_ended() const { return end_.has_value(); }
  std::size_t stream_count() const { return streams_.open_count(); }
  // Within on_gone(): why this side has ended the stream; empty: the peer has, or the connection.
  std::string_view fault() const { return fault_; }
  // True if a header block has begun and not ended.
  bool is_within_block() const { return block_.purpose != Purpose::kNone; }
  // Bytes of memory that such a block may take.
  std::size_t block_bytes_max() const { return 2 * options_.head_bytes_max; }
  // Memory of the session and its streams, without a header block in progress. It is 2.3 KB for a
  // new one, 4.2 KB behind ten requests of a browser, and at most 24 KB where the client fills the
  // table of its header blocks; then 130 bytes a stream, and what is unsent.
  std::size_t memory_bytes() const;

  // --- one stream; none of these calls a handler, and all do nothing for one that is gone ---

  // `bytes` of what on_content() brought are used.
  void consume(StreamId stream, std::size_t bytes);
  // The content has more after kWaiting.
  void resume(StreamId stream);
  // Ends the stream here: with what has left, and nothing more. The handler is called no more.
  void reset(StreamId stream, ErrorCode code);
  // The handler needs the stream no more, and is called no more. The rest of the peer's message is
  // refused. REQUIRES: status() is kDone.
  void release(StreamId stream);
  void set_priority(StreamId stream, const Priority& priority);
  SendStatus status(StreamId stream) const;
  // Bytes of the message that have left, framing included.
  std::uint64_t sent_bytes(StreamId stream) const;
  // True if the peer's message has ended.
  bool is_received(StreamId stream) const;
  // Bytes that the peer lets go now.
  std::int64_t send_window(StreamId stream) const;

 protected:
  enum class Role : std::uint8_t { kServer, kClient };
  // The purpose of the header block that is read.
  enum class Purpose : std::uint8_t {
    kNone,      // no block
    kHead,      // a stream's first, or a response's
    kTrailers,  // its last
    kDiscard,   // decoded for the decoder's sake
  };
  struct Block {
    StreamId stream = 0;
    Purpose purpose = Purpose::kNone;
    bool ends_stream = false;
    std::uint32_t continuations = 0;
    std::size_t bytes_left = 0;
    MonotonicTime since = {};
  };

  // `counters` is borrowed.
  Session(Role role, const Options& options, Counters& counters);
  virtual ~Session() = default;

  // A HEADERS frame begins on a stream that is not there. Returns what its block is for; kNone: the
  // connection has failed.
  virtual Purpose on_new_stream(const FrameHeader& header) = 0;
  // The same on one that is there and whose message has not ended.
  virtual Purpose on_further_headers(const FrameHeader& header, Stream& stream) = 0;
  // The fields of the block go here.
  virtual FieldSink& begin_block(Purpose purpose) = 0;
  virtual void on_block(const Block& block) = 0;
  // True if the stream was never begun.
  virtual bool is_idle(StreamId stream) const = 0;
  virtual void on_priority_update(StreamId stream, std::string_view value) = 0;
  virtual void on_setting(Setting, std::uint32_t) {}
  // The peer takes no streams beyond `last`.
  virtual void on_goaway(StreamId /*last*/, ErrorCode /*code*/) {}
  virtual void on_end(const ConnectionEnd& end) = 0;

  const Options& options() const { return options_; }
  Counters& counters() { return counters_; }
  StreamTable& streams() { return streams_; }
  EndedStreams& ended() { return ended_; }
  MonotonicTime now() const { return now_; }
  bool is_refusing() const { return drain_ == Drain::kFinal; }
  StreamId last_peer_stream() const { return last_peer_stream_; }
  void set_last_peer_stream(StreamId stream) { last_peer_stream_ = stream; }

  // Says our settings, and how large the connection's window is.
  void begin(std::span<const SettingValue> settings);
  Stream& open(StreamId id);
  // Writes a header block by `encode`, which appends it to the string that it gets and returns
  // whether the stream ends with it.
  template <typename Encode>
  void send_headers(Stream& stream, Encode encode) {
    std::string& out = output_.control();
    const std::size_t begin = out.size();
    out.append(kFrameHeaderBytes, '\0');
    write_table_size(out);
    const bool ends_stream = encode(out);
    finish_headers(begin, stream.id, ends_stream ? kFlagEndStream : std::uint8_t{0}, out);
    stream.sent_bytes += out.size() - begin;
    if (ends_stream) end_sending(stream);
  }
  // Content follows the head that was sent.
  void send_content(Stream& stream, ContentSource& content, std::uint64_t length,
                    const std::string* trailers);
  // The peer's message is malformed: counts it, and resets the stream, whether it is there or not.
  void refuse(StreamId stream, Malformed reason);
  // Ends the stream for something that the peer has done, or that we cannot.
  void fail_stream(StreamId stream, ErrorCode code, std::string_view why);
  // The stream is no more for the peer: its handler is notified.
  void forsake(Stream& stream, ErrorCode code);
  // The peer's message has ended.
  void end_receiving(Stream& stream, std::string_view trailers);
  // The connection ends; the first reason counts. Handlers are notified later.
  void fail(ErrorCode code, std::string_view why);
  void use(Allowance which);

  // FrameSink
  bool wants_frame() override { return !is_paused(); }
  Use on_frame(const FrameHeader& header) override;
  bool on_payload(const FrameHeader& header, std::string_view bytes, bool is_last) override;
  bool on_frame_end(const FrameHeader& header, std::string_view payload) override;
  bool on_dependency(const FrameHeader& header, StreamId parent) override;
  void on_frame_error(ErrorCode code, std::string_view why) override { fail(code, why); }
  // OutputOwner
  void on_source_end(Stream& stream) override;
  void on_source_stopped(Stream& stream) override;
  void on_content_begun(Stream& stream, std::uint32_t bytes) override;
  void on_content_left(Stream& stream, bool ends_stream) override;

 private:
  enum class Drain : std::uint8_t { kNone, kNoticed, kFinal };

  Use on_data(const FrameHeader& header);
  Use on_headers(const FrameHeader& header);
  Use on_continuation(const FrameHeader& header);
  void on_fragment(const FrameHeader& header, std::string_view bytes, bool is_last);
  void on_data_end(const FrameHeader& header);
  void on_control(const FrameHeader& header, std::string_view payload);
  void on_ping(const FrameHeader& header, std::string_view payload);
  void on_rst_stream(const FrameHeader& header, std::string_view payload);
  void on_settings(const FrameHeader& header, std::string_view payload);
  void on_window_update(const FrameHeader& header, std::string_view payload);
  void on_setting_value(Setting setting, std::uint32_t value);
  void set_initial_window(std::uint32_t value);
  void end_sending(Stream& stream);
  void count_reset(Stream::Sending sending);
  // Takes the stream out. Its handler, if there is one, is notified.
  void close(Stream& stream, ErrorCode code);
  void give_back(std::size_t bytes);
  void give_back(Stream& stream, std::size_t bytes);
  bool is_stalled(Stream& stream);
  void tell_changes();
  void settle();
  Use going_on(Use use) const { return is_ended() ? Use::kStop : use; }
  void write_table_size(std::string& block);

  const Role role_;
  bool is_peer_draining_ = false;
  bool has_peer_settings_ = false;
  bool has_table_change_ = true;  // the peer's decoder learns it in the next block
  Drain drain_ = Drain::kNone;
  bool has_settled_ = false;
  std::uint32_t stalled_streams_ = 0;
  const Options options_;
  Counters& counters_;
  FrameReader reader_;
  FieldDecoder decoder_;
  StreamTable streams_;
  EndedStreams ended_;
  Output output_;
  Allowances allowances_;
  // Windows that may open for content that was sent: where they are large that is long after it,
  // and a little at a time.
  std::uint32_t windows_due_ = 0;
  Block block_;
  FieldSink* fields_ = nullptr;    // gets those of the block
  Stream* data_stream_ = nullptr;  // gets the DATA frame that is read; null: its content is dropped
  std::uint32_t data_bytes_ = 0;   // content of it so far
  std::int64_t send_window_ = kInitialWindow;
  std::int64_t receive_window_ = kInitialWindow;
  std::uint32_t unannounced_ = 0;
  std::int32_t initial_send_window_ = kInitialWindow;
  StreamId last_peer_stream_ = 0;
  MonotonicTime now_ = {};
  std::optional<ConnectionEnd> end_;
  std::string_view fault_;  // a constant
  // Streams that have changed: their handlers are notified at the end of a call that may do so.
  std::vector<StreamId> changed_;
};

}  // namespace encore::h2
