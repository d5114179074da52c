#include "proxy/net/admin_server.h"

#include <event2/buffer.h>
#include <event2/http.h>
#include <event2/keyvalq_struct.h>
#include <strings.h>

#include <algorithm>
#include <utility>

#include "proxy/net/loop.h"
#include "proxy/net/socket_options.h"

namespace encore::net {
namespace {

constexpr int kBacklog = 128;

bool same_name(std::string_view a, std::string_view b) {
  return a.size() == b.size() && strncasecmp(a.data(), b.data(), a.size()) == 0;
}

std::string_view or_empty(const char* text) { return text == nullptr ? "" : text; }

std::string_view method_name(evhttp_cmd_type command) {
  switch (command) {
    case EVHTTP_REQ_GET:
      return "GET";
    case EVHTTP_REQ_HEAD:
      return "HEAD";
    case EVHTTP_REQ_POST:
      return "POST";
    case EVHTTP_REQ_PUT:
      return "PUT";
    case EVHTTP_REQ_DELETE:
      return "DELETE";
    default:
      return "";
  }
}

AdminRequest read_request(evhttp_request* from) {
  AdminRequest request;
  request.method = method_name(evhttp_request_get_command(from));
  const evhttp_uri* uri = evhttp_request_get_evhttp_uri(from);
  request.path = or_empty(evhttp_uri_get_path(uri));
  request.query = or_empty(evhttp_uri_get_query(uri));
  const evkeyvalq* fields = evhttp_request_get_input_headers(from);
  for (const evkeyval* field = fields->tqh_first; field != nullptr; field = field->next.tqe_next) {
    request.fields.emplace_back(field->key, field->value);
  }
  evbuffer* body = evhttp_request_get_input_buffer(from);
  request.body.resize(evbuffer_get_length(body));
  evbuffer_copyout(body, request.body.data(), request.body.size());
  const sockaddr* peer = evhttp_connection_get_addr(evhttp_request_get_connection(from));
  if (peer != nullptr) {
    const socklen_t size = peer->sa_family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
    request.peer = Address::from_sockaddr(peer, size).value_or(Address()).canonical();
  }
  return request;
}

void send_response(evhttp_request* to, const AdminResponse& response) {
  evkeyvalq* fields = evhttp_request_get_output_headers(to);
  evhttp_add_header(fields, "Content-Type", response.content_type.c_str());
  evhttp_add_header(fields, "Content-Length", std::to_string(response.body.size()).c_str());
  for (const auto& [name, value] : response.fields) {
    evhttp_add_header(fields, name.c_str(), value.c_str());
  }
  evbuffer* body = nullptr;
  if (evhttp_request_get_command(to) != EVHTTP_REQ_HEAD) {
    body = evbuffer_new();
    if (body != nullptr) evbuffer_add(body, response.body.data(), response.body.size());
  }
  // Without a reason evhttp has its own for the status.
  evhttp_send_reply(to, response.status, nullptr, body);
  if (body != nullptr) evbuffer_free(body);
}

}  // namespace

// What evhttp waits for. Null once it was answered, or evhttp is gone.
struct AdminReply::Pending {
  evhttp_request* request = nullptr;
};

AdminReply::~AdminReply() {
  if (pending_ == nullptr || pending_->request == nullptr) return;
  AdminResponse response;
  response.status = 500;
  response.body = "500 Internal Server Error\n";
  send(response);
}

void AdminReply::send(const AdminResponse& response) {
  // evhttp keeps the request of a client who has gone until it is answered.
  if (auto* request = std::exchange(pending_->request, nullptr)) send_response(request, response);
}

namespace {

class EvhttpServer final : public AdminServer {
 public:
  EvhttpServer(Loop& loop, const Options& options, Handler handler)
      : handler_(std::move(handler)), http_(evhttp_new(loop.base())) {
    if (http_ == nullptr) return;
    evhttp_set_max_headers_size(http_, static_cast<ev_ssize_t>(options.head_bytes_max));
    evhttp_set_max_body_size(http_, static_cast<ev_ssize_t>(options.body_bytes_max));
    const auto seconds = std::chrono::ceil<std::chrono::seconds>(options.idle_timeout).count();
    evhttp_set_timeout(http_, static_cast<int>(seconds));
    evhttp_set_allowed_methods(http_, EVHTTP_REQ_GET | EVHTTP_REQ_HEAD | EVHTTP_REQ_POST |
                                          EVHTTP_REQ_PUT | EVHTTP_REQ_DELETE);
    evhttp_set_gencb(http_, &on_request, this);
  }
  EvhttpServer(const EvhttpServer&) = delete;
  EvhttpServer& operator=(const EvhttpServer&) = delete;
  ~EvhttpServer() override {
    for (const auto& pending : pending_) pending->request = nullptr;
    if (http_ != nullptr) evhttp_free(http_);
  }

  Result<void> listen(const Address& address) {
    auto socket = listen_on(address, kBacklog, SharePort::kNo);
    if (!socket) return std::unexpected(socket.error());
    address_ = bound_address(*socket);
    if (http_ == nullptr || evhttp_accept_socket(http_, socket->get()) != 0) {
      return fail("cannot serve on " + address.to_string() + ": out of memory");
    }
    socket->release();  // evhttp closes it
    return {};
  }

  const Address& address() const override { return address_; }

 private:
  static void on_request(evhttp_request* request, void* context) {
    auto& server = *static_cast<EvhttpServer*>(context);
    std::erase_if(server.pending_, [](const auto& pending) { return pending->request == nullptr; });
    auto pending = std::make_shared<AdminReply::Pending>(request);
    server.pending_.push_back(pending);
    server.handler_(read_request(request), AdminReply(std::move(pending)));
  }

  Handler handler_;
  std::vector<std::shared_ptr<AdminReply::Pending>> pending_;
  evhttp* http_;
  Address address_;
};

}  // namespace

std::string_view AdminRequest::field(std::string_view name) const {
  const auto at =
      std::ranges::find_if(fields, [&](const auto& f) { return same_name(f.first, name); });
  return at == fields.end() ? std::string_view() : std::string_view(at->second);
}

std::size_t AdminRequest::field_count(std::string_view name) const {
  return static_cast<std::size_t>(
      std::ranges::count_if(fields, [&](const auto& f) { return same_name(f.first, name); }));
}

Result<std::unique_ptr<AdminServer>> AdminServer::create(Loop& loop, const Options& options,
                                                         Handler handler) {
  auto server = std::make_unique<EvhttpServer>(loop, options, std::move(handler));
  if (auto listening = server->listen(options.address); !listening) {
    return std::unexpected(listening.error());
  }
  return server;
}

}  // namespace encore::net
