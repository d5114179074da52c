// ServerSession: a client's connection of HTTP/2. Each of its requests is given as the text of the
// HTTP/1.1 head that says the same, for proxy/http's parser to check, and answered by such a text.
// See session.h for bytes, limits and streams. Confined to its thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "proxy/h2/request_text.h"
#include "proxy/h2/session.h"

namespace encore::h2 {

// A request, as it has come. Its texts are valid until the call returns.
struct Request {
  // With the empty line at its end. Content whose length is not known is announced as chunked: it
  // comes without chunks. The callee may change it, or take it.
  std::string& text;
  std::string_view scheme;     // as sent; what the connection is, it does not prove
  std::string_view authority;  // empty: the text's Host is all there is
  bool has_content = false;    // on_content_end() will come
};

// A tunnel that is asked for (RFC 9113 8.5, RFC 8441). It is there once a 2xx is sent, with content
// of open length; what the client sends is content, too.
struct Connect {
  // CONNECT to the authority; or with a protocol, GET with Connection and Upgrade, as HTTP/1.1 asks
  // for it. The callee adds what protocols need in addition (Sec-WebSocket-Key).
  std::string& text;
  std::string_view authority;
  std::string_view protocol;  // empty: plain CONNECT
  std::string_view scheme;    // empty for plain CONNECT
  bool has_content = true;    // false: the client's side has ended already
};

// Called by receive(), sent() and check_timeouts(), under the rules of StreamHandler.
class ServerHandler {
 public:
  // Returns the handler of the stream; null if it has been answered without content, or was reset:
  // no further call concerns it.
  virtual StreamHandler* on_request(StreamId stream, const Request& request) = 0;
  virtual StreamHandler* on_connect(StreamId stream, const Connect& connect) = 0;
  // The connection ends, by the peer's fault: streams are gone, the last bytes are to be sent.
  virtual void on_connection_end(const ConnectionEnd& end) = 0;

 protected:
  ~ServerHandler() = default;
};

class ServerSession final : public Session {
 public:
  enum class Framing : std::uint8_t {
    kNone,    // no content: the response ends with its head
    kLength,  // as much as the head's Content-Length says
    kOpen,    // until the source's end
  };

  // `handler` and `counters` are borrowed.
  ServerSession(const Options& options, Counters& counters, ServerHandler& handler);

  // Heads are texts as HTTP/1.1 writes them: pieces of whole lines, the status line first; an empty
  // line may end them. Fields of a connection are left out, names become lower case. None of these
  // calls a handler, and all do nothing for a stream that is gone.

  // 101 is left out. REQUIRES: no respond() yet.
  void send_interim(StreamId stream, std::string_view head);
  // The response. With content, `content` and `trailers` (field lines, read at the content's end;
  // null: none) are borrowed until status() is kDone, reset(), or on_gone(). For HEAD, and statuses
  // without content, it is not asked. REQUIRES: no respond() yet; content unless kNone.
  void respond(StreamId stream, std::span<const std::string_view> head, Framing framing,
               ContentSource* content = nullptr, const std::string* trailers = nullptr);
  void respond(StreamId stream, std::string_view head, Framing framing,
               ContentSource* content = nullptr, const std::string* trailers = nullptr) {
    respond(stream, std::span(&head, 1), framing, content, trailers);
  }

 private:
  using Text = std::variant<std::monostate, RequestText, TrailerText, DiscardedText>;

  Purpose on_new_stream(const FrameHeader& header) override;
  Purpose on_further_headers(const FrameHeader& header, Stream& stream) override;
  FieldSink& begin_block(Purpose purpose) override;
  void on_block(const Block& block) override;
  bool is_idle(StreamId stream) const override;
  void on_priority_update(StreamId stream, std::string_view value) override;
  void on_end(const ConnectionEnd& end) override { handler_.on_connection_end(end); }

  void on_head(const Block& block, RequestText& text);
  void begin_stream(const Block& block, RequestText& text);

  ServerHandler& handler_;
  Text text_;  // from the block that is read
  // For streams that are not there yet (RFC 9218 7.1).
  std::vector<std::pair<StreamId, Priority>> early_priorities_;
};

}  // namespace encore::h2
