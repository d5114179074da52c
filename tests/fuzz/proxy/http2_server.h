// Http2Server: one connection of HTTP/2 as an origin has it. nghttp2's session reads and writes
// RFC 9113 without the proxy's code: a frame or a field that must not be there is a finding. Each
// stream is a Line, of which its user reads a request, and to which it writes an answer, as HTTP/1
// has them. A connection that begins with no preface is given back. One thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "tests/fuzz/proxy/channel.h"
#include "tests/fuzz/proxy/line.h"
#include "tests/fuzz/proxy/loop.h"
#include "tests/fuzz/proxy/message.h"
#include "tests/fuzz/proxy/random.h"

struct nghttp2_session;

namespace encore::proxyfuzz {

class Http2Server;
class Http2Line;

class Http2ServerOwner {
 public:
  // A request has begun; the receiver of the line sets its handler.
  virtual void on_line(std::unique_ptr<Http2Line> line) = 0;
  // It is no connection of HTTP/2; these bytes came.
  virtual void on_other(std::unique_ptr<Channel> channel, const std::string& bytes) = 0;
  // The request of that head is refused, or may be: nobody has worked on it.
  virtual void on_refused(const Fields& fields) = 0;
  // Requests that cross what the server has just said fail with no fault of the proxy's.
  virtual void on_trouble() = 0;
  virtual void on_fault(const std::string& what) = 0;
  virtual void count(std::string_view what) = 0;
  // The last call: it is to be destroyed, later than in it.
  virtual void on_gone(Http2Server& server) = 0;

 protected:
  ~Http2ServerOwner() = default;
};

class Http2Server final : public Handler {
 public:
  // How a round's servers are.
  struct Plan {
    std::uint32_t window = 65535;     // for the content of a request
    std::uint32_t streams_max = 100;  // in progress at a time
    std::uint32_t table_bytes = 4096;
    std::size_t piece_max = 16384;  // bytes in a frame of content
    double pads = 0;                // percent of its frames have padding
    double refuses = 0;             // percent of the requests, unread
    double goes_away = 0;           // percent of the answers are followed by a GOAWAY
    double closes = 0;              // percent of the cuts end the connection
  };
  static Plan draw_plan(Random& random);

  // The channel is open, and has another handler. `owner` and `loop` are borrowed.
  Http2Server(const Plan& plan, Random random, Loop& loop, std::unique_ptr<Channel> channel,
              Http2ServerOwner& owner);
  ~Http2Server() override;
  Http2Server(const Http2Server&) = delete;
  Http2Server& operator=(const Http2Server&) = delete;

  void on_ready(std::uint32_t events) override;

 private:
  friend struct Http2ServerCallbacks;
  friend class Http2Line;
  struct Stream {
    Http2Line* line = nullptr;  // null: its user has closed it, or has not got it yet
    bool has_begun = false;     // the user has had it
    bool is_gone = false;       // no more comes or goes
    Fields fields;              // that are read
    bool has_head = false;      // of the request
    bool is_head = false;       // it is a HEAD
    bool may_repeat = false;
    bool is_chunked = false;
    std::string in;   // the request, for the user
    std::string out;  // the answer, from the user, as far as it is not understood
    bool has_answer = false;
    BodyReader body;
    std::string content;
    std::size_t sent = 0;  // bytes of it
    bool ends = false;     // nothing comes behind it but the trailers
    Fields trailers;
  };

  void read();
  bool receive(std::string_view bytes);
  bool take_preface(std::string_view bytes);
  void tell_users();
  void flush();
  void lose();
  void begin_request(std::int32_t id, Stream& stream, bool ends);
  void end_request(std::int32_t id, Stream& stream, const Fields& trailers);
  void take_answer(std::int32_t id, Stream& stream);
  bool take_head(std::int32_t id, Stream& stream);
  void begin_answer(std::int32_t id, Stream& stream, const Fields& fields);
  void close_line(std::int32_t id, Line::Close how);
  void cut(std::int32_t id, const Stream& stream);
  void go_away();
  Stream* stream_of(std::int32_t id);

  Plan plan_;
  Random random_;
  Loop& loop_;
  std::unique_ptr<Channel> channel_;
  Http2ServerOwner& owner_;
  nghttp2_session* session_ = nullptr;  // null until the preface is there
  std::map<std::int32_t, Stream> streams_;
  std::deque<std::int32_t> changed_;  // streams whose users are called next
  std::string begun_;                 // of the preface
  std::string out_;
  Loop::Timer last_goaway_{};
  bool is_receiving_ = false;
  bool has_said_goaway_ = false;
  bool has_ended_ = false;  // it sends no more
};

// A stream as the user of its server has it, who may keep it for longer than the server is there.
class Http2Line final : public Line {
 public:
  Http2Line(Http2Server& server, std::int32_t id) : server_(&server), id_(id) {}
  ~Http2Line() override { Http2Line::close(Close::kReset); }
  Http2Line(const Http2Line&) = delete;
  Http2Line& operator=(const Http2Line&) = delete;

  void set_handler(Handler& handler) { handler_ = &handler; }
  bool is_open() const override { return is_open_; }
  bool is_secured() const override { return true; }
  void want(std::uint32_t) override {}
  ssize_t send(std::string_view first, std::string_view second) override;
  ssize_t recv(std::span<char> into) override;
  // All that is given to it leaves as windows allow.
  bool say_end() override { return true; }
  bool has_sent_all() const override { return true; }
  void close(Close how) override;
  bool was_heard() const override { return false; }
  bool had_read_all() const override { return false; }
  std::string fault() const override { return {}; }

 private:
  friend class Http2Server;
  Http2Server* server_;  // null: it is gone
  std::int32_t id_;
  Handler* handler_ = nullptr;
  bool is_open_ = true;
};

}  // namespace encore::proxyfuzz
