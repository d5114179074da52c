// One connection's worth of a client over HTTP/2: several concurrent requests, each a stream, with
// windows that are small, streams that it resets, and ends in their midst. Each answer is judged as
// those over HTTP/1 are.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "tests/fuzz/proxy/channel.h"
#include "tests/fuzz/proxy/client.h"
#include "tests/fuzz/proxy/http2_wire.h"
#include "tests/fuzz/proxy/loop.h"
#include "tests/fuzz/proxy/oracle.h"
#include "tests/fuzz/proxy/world.h"

namespace encore::proxyfuzz {

// A request as a stream has it.
struct Http2Text {
  Fields fields;  // the pseudo-fields first
  Http2Wire::Upload upload;
  std::uint64_t bytes = 0;  // bytes of the head as text of HTTP/1, and of the content
};
// Makes a request that compose() has made one of HTTP/2, and writes it.
Http2Text to_http2(const Ring& ring, Random& random, Request& request);

class Http2Client final : public AnyClient, private Http2Events {
 public:
  Http2Client(Ring& ring, std::size_t number);
  ~Http2Client() override;
  void on_ready(std::uint32_t events) override;
  void leave(bool reset) override;
  void check_progress(bool origin_is_busy, double bound) override;

 private:
  struct Stream {
    std::shared_ptr<Request> request;
    Answer answer;
    bool has_head = false;
    double progress = 0;
    std::size_t unconsumed = 0;
    bool holds = false;          // its window opens late
    std::uint64_t leave_at = 0;  // it is reset after so many bytes; 0: it is not
  };
  using Streams = std::map<std::int32_t, Stream>;

  void schedule(double seconds);
  void begin();
  void connect();
  void plan_misbehaviour();
  void add();
  void ask_at_once();
  void flush();
  void shut_down_if_sent();
  void read();
  // Updates windows and uploads at the end of a read or a pause.
  void go_on();
  void pause();
  void consume(std::int32_t id, Stream& stream);

  // Http2Events
  void on_head(std::int32_t stream, int status, Fields fields) override;
  void on_content(std::int32_t stream, std::string_view bytes) override;
  void on_end(std::int32_t stream, Fields trailers) override;
  void on_reset(std::int32_t stream, std::uint32_t code) override;
  void on_goaway(std::int32_t last, std::uint32_t code, std::string_view why) override;
  void on_fault(const std::string& what) override;

  void judge_drain(const Stream& stream);
  // An answer has ended as it is; the stream is of no more use.
  enum class Why : std::uint8_t {
    kLeft,     // by us
    kRefused,  // the proxy has said that it did not handle the request
    kReset,    // by the proxy
    kEnded,    // with its connection
  };
  void finish(Streams::iterator at, Why why, Ending ending);
  void finish_all(Ending ending);
  std::string why_silent(const Stream& stream, Why why, Ending ending, bool crossed);
  void reset_stream(Streams::iterator at);
  void on_stream_end();

  Ring& ring_;
  World& world_;
  Random random_;
  Asker asker_;
  Channel channel_;
  Http2Wire::Plan plan_;
  std::optional<Http2Wire> wire_;
  Streams streams_;
  std::string out_;
  std::size_t streams_max_ = 1;
  bool has_goaway_ = false;
  bool shut_down_ = false;  // we send no more
  bool broken_ = false;     // nor can we
  bool answered_ = false;   // the connection has been used before
  bool is_over_ = false;    // it ends with this read
  bool may_be_revoked_ = false;
  bool is_active_ = false;
  std::uint64_t bytes_here_ = 0;  // since no stream was there
  std::size_t reads_here_ = 0;
  std::uint64_t leave_at_ = 0;  // goes after so many bytes; 0: stays
  bool leave_with_reset_ = false;
  bool half_close_ = false;
  bool slow_ = false;
  bool is_reading_ = false;  // within a read
  Loop::Timer timer_{};
  Loop::Timer pause_{};  // pauses windows, uploads and reading
};

}  // namespace encore::proxyfuzz
