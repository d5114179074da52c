// ClientSession: a connection of HTTP/2 to an origin server. Requests are given as texts of
// HTTP/1.1, and so are the heads of responses, for proxy/http's parser to check. See session.h for
// bytes, limits and streams. Confined to its thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include "proxy/h2/request_text.h"
#include "proxy/h2/response_text.h"
#include "proxy/h2/session.h"

namespace encore::h2 {

// A response's head; valid until the call returns.
struct Response {
  // With the empty line at its end. Content of unknown length is announced as chunked: it comes
  // without chunks. The callee may change it, or take it.
  std::string& text;
  unsigned status = 0;
  bool has_content = false;  // on_content_end() will come
};

// Called by receive(), sent() and check_timeouts(), under the rules of StreamHandler.
class ClientHandler {
 public:
  // A 1xx, or the final response, which comes once.
  virtual void on_interim(StreamId stream, const Response& response) = 0;
  virtual void on_response(StreamId stream, const Response& response) = 0;
  // The connection ends, by the peer's fault: streams are gone, the last bytes are to be sent.
  virtual void on_connection_end(const ConnectionEnd& end) = 0;

 protected:
  ~ClientHandler() = default;
};

// A stream of it whose handler receives on_gone() with kRefusedStream was not worked on: its
// request may be sent again elsewhere (RFC 9113 8.7), whatever its method.
class ClientSession final : public Session {
 public:
  struct Asked {
    // Request line and fields as HTTP/1.1 writes them; an empty line may end them. Host becomes the
    // authority, fields of a connection are left out. The target is in origin-form, "*", or of
    // CONNECT the authority.
    std::string_view head;
    std::string_view scheme;
    // Not empty: extended CONNECT (RFC 8441), whatever the method. REQUIRES: takes_protocols().
    std::string_view protocol = {};
    // Null: no content.
    ContentSource* content = nullptr;
    // Read at the content's end; null: none.
    const std::string* trailers = nullptr;
  };

  // `handler` and `counters` are borrowed.
  ClientSession(const Options& options, Counters& counters, ClientHandler& handler);

  // True if request() is possible: not when the server goes away, or has as many streams as it
  // takes.
  bool can_request() const;
  // True if the server takes extended CONNECT.
  bool takes_protocols() const { return takes_protocols_; }
  // Sends a request; `content` and `trailers` are borrowed as ServerSession::respond() does, and
  // `handler` as well. Content-Length says how long the content is, if it is there. Returns 0 where
  // the head is none. REQUIRES: can_request().
  StreamId request(const Asked& asked, StreamHandler& handler);

 private:
  using Text = std::variant<std::monostate, ResponseText, TrailerText, DiscardedText>;

  Purpose on_new_stream(const FrameHeader& header) override;
  Purpose on_further_headers(const FrameHeader& header, Stream& stream) override;
  FieldSink& begin_block(Purpose purpose) override;
  void on_block(const Block& block) override;
  bool is_idle(StreamId stream) const override { return stream % 2 == 0 || stream >= next_; }
  void on_priority_update(StreamId, std::string_view) override {
    fail(ErrorCode::kProtocolError, "PRIORITY_UPDATE of a server");
  }
  void on_setting(Setting setting, std::uint32_t value) override;
  void on_goaway(StreamId last, ErrorCode code) override;
  void on_end(const ConnectionEnd& end) override { handler_.on_connection_end(end); }

  void on_head(const Block& block, Stream& stream, ResponseText& text);

  ClientHandler& handler_;
  Text text_;  // from the block that is read
  StreamId next_ = 1;
  std::uint32_t peer_streams_max_ = 100;  // until its settings say so
  bool takes_protocols_ = false;
};

}  // namespace encore::h2
