// AdminIntake: what stands between the connections of an admin listener and evhttp, which knows one
// limit for all bodies before it has read a head, reads on while it answers, and lets a peer be as
// slow as it likes. Here a head is held back until it is whole; a body that its limit forbids is
// never read, and the request goes on without it; nothing beyond a head is read while a request is
// answered; who takes too long is cut. For net/ only. Confined to its loop's thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>

#include "base/time.h"
#include "proxy/net/admin_message.h"
#include "proxy/net/timer.h"

struct bufferevent;
struct evbuffer;
struct evbuffer_cb_info;  // NOLINT(readability-identifier-naming): libevent's
struct event_base;
struct evhttp;
struct evhttp_connection;
struct evhttp_request;

namespace encore::net {

class Loop;

class AdminIntake {
 public:
  // `loop` is borrowed. Outlives the evhttp that it serves.
  AdminIntake(Loop& loop, const AdminOptions& options);
  AdminIntake(const AdminIntake&) = delete;
  AdminIntake& operator=(const AdminIntake&) = delete;

  // Has evhttp read its connections through this.
  void attach(evhttp* http);
  // evhttp has this request to answer. The stated length of its body where that was left out,
  // else 0.
  std::uint64_t begin(evhttp_request* request);
  // Requests whose head has come and whose answer has not gone.
  std::size_t under_way() const;
  // Ends are no longer told.
  void fall_silent() { options_.on_end = nullptr; }

 private:
  enum class Phase : std::uint8_t { kHead, kBody, kAnswer };
  struct Connection {
    bufferevent* buffers = nullptr;
    Phase phase = Phase::kHead;
    std::string head;            // what has come of it, held back
    bool editing = false;        // what changes is our doing
    std::uint64_t left_out = 0;  // of the body
    bool linger = false;         // the peer is still sending when it is answered
    std::optional<MonotonicTime> deadline;
  };

  static bufferevent* make_connection(event_base* base, void* context);
  static void on_input(evbuffer* input, const evbuffer_cb_info* info, void* context);
  static void on_complete(evhttp_request* request, void* context);
  static void on_close(evhttp_connection* connection, void* context);

  Connection* find(evhttp_connection* connection);
  void take(Connection& connection);
  void refuse_head(Connection& connection);
  void pass_on(Connection& connection);
  void admit(Connection& connection, std::size_t head_size);
  void wait_for(Connection& connection, std::uint64_t bytes);
  void ended();
  void sweep();

  Loop& loop_;
  AdminOptions options_;
  // The connection of each input buffer; of those that went before they said anything until their
  // memory is used again.
  std::unordered_map<const evbuffer*, Connection> connections_;
  Timer sweep_;
};

}  // namespace encore::net
