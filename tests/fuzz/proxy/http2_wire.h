// Http2Wire: one connection of HTTP/2 as its client has it: bytes in, bytes out, events between. It
// is nghttp2's session, which reads RFC 9113 without the proxy's code: a frame or a field that must
// not be there is a fault. One thread; the same calls bring the same bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "tests/fuzz/proxy/message.h"
#include "tests/fuzz/proxy/random.h"

struct nghttp2_session;

namespace encore::proxyfuzz {

// Called from within Http2Wire::receive(). They may reset streams, and must not end the wire.
class Http2Events {
 public:
  virtual ~Http2Events() = default;
  // The names of all fields are as HTTP/1 has them: "Content-Length".
  virtual void on_head(std::int32_t stream, int status, Fields fields) = 0;
  virtual void on_content(std::int32_t stream, std::string_view bytes) = 0;
  virtual void on_end(std::int32_t stream, Fields trailers) = 0;
  // The peer has reset it.
  virtual void on_reset(std::int32_t stream, std::uint32_t code) = 0;
  // The peer takes no streams beyond `last`.
  virtual void on_goaway(std::int32_t last, std::uint32_t code, std::string_view why) = 0;
  virtual void on_fault(const std::string& what) = 0;
};

class Http2Wire {
 public:
  // Settings that a client announces.
  struct Plan {
    std::uint32_t window = 65535;  // per stream
    std::uint32_t connection_window = 65535;
    std::uint32_t table_bytes = 4096;  // for header blocks that it receives
    double pads = 0;                   // percent of its frames have padding
    double pauses = 0;                 // and of its uploads stop in the middle
  };
  static Plan draw_plan(Random& random);

  // `events` is borrowed.
  Http2Wire(const Plan& plan, Random random, Http2Events& events);
  ~Http2Wire();
  Http2Wire(const Http2Wire&) = delete;
  Http2Wire& operator=(const Http2Wire&) = delete;

  // Content of a request: so many 'x', and what follows them.
  struct Upload {
    bool is_there = false;  // its end is one of its own, even if it is empty
    std::size_t bytes = 0;
    Fields trailers;
  };
  // Begins a stream. The first fields are the pseudo-fields. Returns its number.
  std::int32_t request(const Fields& fields, const Upload& upload);
  // False: the connection is of no more use.
  bool receive(std::string_view bytes);
  // Appends what is to be sent.
  void take_output(std::string& out);
  // The client wants no more of the stream.
  void reset(std::int32_t stream);
  // Content was used, so that its window opens again.
  void consume_stream(std::int32_t stream, std::size_t bytes);
  void consume_connection(std::size_t bytes);
  // Uploads that have stopped go on. False: there is none.
  bool resume_uploads();
  void ping();
  void set_window(std::uint32_t bytes);

  // Bytes of the frames of the stream's answer that have come, and how many of these have content.
  std::uint64_t bytes_of(std::int32_t stream) const;
  std::uint64_t frames_of(std::int32_t stream) const;
  bool is_uploading() const;
  // No more events of the stream; the rest of its upload goes on until the peer refuses it.
  void drop(std::int32_t stream);

 private:
  friend struct Http2Callbacks;
  struct Stream {
    Upload upload;
    bool stops = false;  // its upload does, once
    bool is_stopped = false;
    bool has_sent_all = false;
    bool has_head = false;  // its final response has one
    bool is_dropped = false;
    std::uint64_t bytes = 0;
    std::uint64_t frames = 0;      // with content
    std::uint64_t head_bytes = 0;  // bytes of the header block that is read
    int status = 0;
    Fields fields;
  };
  // Null: there is none, or nobody wants to know of it.
  Stream* find(std::int32_t stream);

  Plan plan_;
  Random random_;
  Http2Events& events_;
  nghttp2_session* session_ = nullptr;
  std::map<std::int32_t, Stream> streams_;
};

}  // namespace encore::proxyfuzz
