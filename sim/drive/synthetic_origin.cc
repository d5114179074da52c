#include "sim/drive/synthetic_origin.h"

#include <arpa/inet.h>
#include <event2/buffer.h>
#include <event2/event.h>
#include <event2/http.h>
#include <event2/thread.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cstring>
#include <string>
#include <string_view>
#include <thread>

#include "config/network.h"
#include "sim/drive/driven_object.h"

namespace encore::sim {
namespace {

// The port that a listening socket was given.
std::uint16_t port_of(evutil_socket_t socket) {
  sockaddr_storage address{};
  socklen_t length = sizeof address;
  if (::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &length) != 0) {
    return 0;
  }
  in_port_t port = 0;
  // The port stands at the same place in both families.
  static_assert(offsetof(sockaddr_in, sin_port) == offsetof(sockaddr_in6, sin6_port));
  std::memcpy(&port, reinterpret_cast<const char*>(&address) + offsetof(sockaddr_in, sin_port),
              sizeof port);
  return ntohs(port);
}

}  // namespace

class SyntheticOrigin::Server {
  struct FreeBase {
    void operator()(event_base* base) const { event_base_free(base); }
  };
  struct FreeServer {
    void operator()(evhttp* server) const { evhttp_free(server); }
  };

 public:
  explicit Server(SyntheticOrigin& origin) : origin_(origin) {}
  ~Server() {
    if (thread_.joinable()) {
      // From within the loop: one that has not begun yet would forget it.
      const timeval at_once{};
      event_base_once(
          base_.get(), -1, EV_TIMEOUT,
          [](evutil_socket_t, short, void* base) {
            event_base_loopbreak(static_cast<event_base*>(base));
          },
          base_.get(), &at_once);
      thread_.join();
    }
  }
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // The port it listens on. Errors: as SyntheticOrigin::start().
  Result<std::uint16_t> listen(const std::string& host, std::uint16_t port) {
    static const int threads = evthread_use_pthreads();
    base_.reset(threads == 0 ? event_base_new() : nullptr);
    http_.reset(base_ ? evhttp_new(base_.get()) : nullptr);
    if (!http_) {
      return fail("cannot make an event loop for the origin");
    }
    evhttp_set_allowed_methods(http_.get(), EVHTTP_REQ_GET | EVHTTP_REQ_HEAD);
    evhttp_set_gencb(
        http_.get(),
        [](evhttp_request* request, void* self) { static_cast<Server*>(self)->answer(request); },
        this);
    evhttp_bound_socket* bound = evhttp_bind_socket_with_handle(http_.get(), host.c_str(), port);
    if (bound == nullptr) {
      return fail("the origin cannot listen on " + host + ":" + std::to_string(port) + ": " +
                  std::strerror(errno));
    }
    // libevent writes 16 KiB at a time: without this the last piece of a body would wait for the
    // proxy's delayed acknowledgement. Accepted connections inherit it.
    const evutil_socket_t socket = evhttp_bound_socket_get_fd(bound);
    const int on = 1;
    ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return port_of(socket);
  }
  void run() {
    thread_ = std::thread([this] { event_base_dispatch(base_.get()); });
  }

 private:
  void answer(evhttp_request* request) {
    origin_.requests_.fetch_add(1, std::memory_order_relaxed);
    const char* target = evhttp_request_get_uri(request);
    const auto object = object_at(target == nullptr ? "" : target);
    if (!object) {
      evhttp_send_error(request, HTTP_NOTFOUND, nullptr);
      return;
    }
    evkeyvalq* out = evhttp_request_get_output_headers(request);
    for (const auto& [name, value] : fields_of(*object)) {
      evhttp_add_header(out, name.c_str(), value.c_str());
    }
    const char* known =
        evhttp_find_header(evhttp_request_get_input_headers(request), "If-None-Match");
    if (known != nullptr && known == etag_of(*object)) {
      origin_.validations_.fetch_add(1, std::memory_order_relaxed);
      evhttp_send_reply(request, HTTP_NOTMODIFIED, "Not Modified", nullptr);
      return;
    }
    send_body(request, *object);
  }

  void send_body(evhttp_request* request, const DrivenObject& object) {
    evbuffer* body = evbuffer_new();
    evbuffer_iovec room{};
    const auto size = static_cast<ev_ssize_t>(object.size_bytes);
    if (size != 0 && evbuffer_reserve_space(body, size, &room, 1) == 1) {
      room.iov_len = object.size_bytes;
      fill_body(object, 0, {static_cast<char*>(room.iov_base), room.iov_len});
      evbuffer_commit_space(body, &room, 1);
    }
    origin_.body_bytes_.fetch_add(object.size_bytes, std::memory_order_relaxed);
    evhttp_send_reply(request, HTTP_OK, "OK", body);
    evbuffer_free(body);
  }

  SyntheticOrigin& origin_;
  std::unique_ptr<event_base, FreeBase> base_;
  std::unique_ptr<evhttp, FreeServer> http_;
  std::thread thread_;
};

SyntheticOrigin::SyntheticOrigin() : server_(std::make_unique<Server>(*this)) {}
SyntheticOrigin::~SyntheticOrigin() = default;

Result<std::unique_ptr<SyntheticOrigin>> SyntheticOrigin::start(const std::string& address) {
  const auto endpoint = config::parse_endpoint(address);
  if (!endpoint) {
    return fail("--origin-address: " + endpoint.error().message);
  }
  std::unique_ptr<SyntheticOrigin> origin(new SyntheticOrigin);
  const auto port = origin->server_->listen(endpoint->address, endpoint->port);
  if (!port) {
    return std::unexpected(port.error());
  }
  const bool v6 = endpoint->address.find(':') != std::string::npos;
  origin->authority_ =
      (v6 ? "[" + endpoint->address + "]" : endpoint->address) + ":" + std::to_string(*port);
  origin->server_->run();
  return origin;
}

}  // namespace encore::sim
