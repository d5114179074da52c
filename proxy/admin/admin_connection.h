// AdminConnection: HTTP/1 on one connection of the admin listener. It reads a request, gives it
// away whole, sends the response as the client takes it, and then reads the next. Confined to its
// loop's thread.
//
// A response goes out from the text in which it was made: what the socket does not take stays there
// (docs/decisions/0490). Nothing of the next request is parsed before that; the stream keeps at
// most net::Stream::kKeptBytesMax of it and then reads no more.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/time.h"
#include "proxy/admin/admin_message.h"
#include "proxy/http/chunked.h"
#include "proxy/http/message.h"
#include "proxy/http/parser.h"
#include "proxy/net/deferred_deleter.h"
#include "proxy/net/stream.h"

namespace encore::server {

class AdminConnection final : public net::DeferredDeletable, private net::StreamHandler {
 public:
  // Keeps the connections.
  class Owner {
   public:
    virtual const AdminOptions& options() const = 0;
    virtual void handle(AdminRequest&& request, AdminReply to) = 0;
    // A request of the connection is answered, or ends without an answer.
    virtual void on_request_end() = 0;
    // The connection has ended: destroys it at the end of the turn.
    virtual void retire(AdminConnection& connection) = 0;

   protected:
    ~Owner() = default;
  };

  // Begins to read. `owner` is borrowed.
  AdminConnection(Owner& owner, net::Loop& loop, net::Socket socket, const net::Address& peer);
  // Tells nobody: the connection closes, its response goes nowhere.
  ~AdminConnection() override;

  // True from the end of a request's head to the end of its response.
  bool is_under_way() const { return phase_ > Phase::kHead; }
  MonotonicTime last_activity() const { return stream_.last_activity(); }
  // For a sweep: closes if nothing moves, or something takes too long.
  void check_timeouts(MonotonicTime now);
  // Makes way for another connection. REQUIRES: !is_under_way().
  void give_up();

 private:
  enum class Phase : std::uint8_t { kClosed, kHead, kBody, kAnswer, kSending };
  enum class How : std::uint8_t { kGracefully, kAtOnce, kWithReset };

  std::size_t on_data(net::Stream& stream, std::span<const std::byte> bytes) override;
  void on_writable(net::Stream&) override { flush(); }
  void on_eof(net::Stream& stream) override;
  void on_error(net::Stream& stream, net::CloseReason reason, int os_error) override;

  std::size_t take_head(std::string_view input);
  void begin(const http::RequestHead& head);
  std::size_t take_body(std::string_view input);
  std::size_t take_chunks(std::string_view input);
  void dispatch();
  void refuse(unsigned status);
  void answer(AdminResponse&& response);
  void flush();
  void finish();
  void limit_time(std::uint64_t bytes);
  void close(How how);

  Owner& owner_;
  Phase phase_ = Phase::kHead;
  bool eof_ = false;
  bool in_on_data_ = false;
  bool keeps_alive_ = false;  // as far as the request goes
  bool is_head_ = false;      // the request is HEAD
  http::Version version_ = http::Version::kHttp11;
  http::ParseProgress progress_;
  AdminRequest request_;  // while it comes
  std::size_t body_bytes_max_ = 0;
  std::uint64_t body_left_ = 0;  // bytes of a stated length
  std::optional<http::ChunkedDecoder> chunks_;
  std::string text_;         // heads to be sent before the content
  AdminResponse response_;   // while it goes
  std::size_t sent_ = 0;     // bytes of the text and the content
  std::uint64_t moved_ = 0;  // bytes, at the last look
  MonotonicTime moved_at_;
  std::optional<MonotonicTime> deadline_;
  std::shared_ptr<AdminConnection*> self_;  // for replies; null once the connection has closed
  net::Stream stream_;
};

}  // namespace encore::server
