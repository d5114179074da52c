#include "proxy/net/admin_server.h"

#include <event2/buffer.h>
#include <event2/http.h>
#include <event2/keyvalq_struct.h>

#include <sys/socket.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "proxy/net/admin_intake.h"
#include "proxy/net/listening.h"
#include "proxy/net/loop.h"
#include "proxy/net/socket_options.h"

namespace encore::net {
namespace {

constexpr int kBacklog = 128;

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

// In pieces, so that a large one is not there twice.
void take_body(evbuffer* from, std::string& to) {
  constexpr std::size_t kPiece = 256 * 1024;
  to.reserve(evbuffer_get_length(from));
  while (const std::size_t size = std::min(kPiece, evbuffer_get_length(from))) {
    const std::size_t before = to.size();
    to.resize(before + size);
    evbuffer_remove(from, to.data() + before, size);
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
  take_body(evhttp_request_get_input_buffer(from), request.body);
  const sockaddr* peer = evhttp_connection_get_addr(evhttp_request_get_connection(from));
  if (peer != nullptr && peer->sa_family != AF_UNIX) {
    const socklen_t size = peer->sa_family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
    request.peer = Address::from_sockaddr(peer, size).value_or(Address()).canonical();
  }
  return request;
}

void put_body(const AdminResponse& response, evbuffer* out) {
  if (response.shared_body == nullptr) {
    evbuffer_add(out, response.body.data(), response.body.size());
    return;
  }
  using Held = std::shared_ptr<const std::string>;
  auto held = std::make_unique<Held>(response.shared_body);
  const auto let_go = [](const void*, std::size_t, void* kept) { delete static_cast<Held*>(kept); };
  const std::string& bytes = *response.shared_body;
  if (evbuffer_add_reference(out, bytes.data(), bytes.size(), let_go, held.get()) == 0) {
    (void)held.release();
  }
}

void send_response(evhttp_request* to, const AdminResponse& response) {
  evkeyvalq* fields = evhttp_request_get_output_headers(to);
  if (!response.content_type.empty()) {
    evhttp_add_header(fields, "Content-Type", response.content_type.c_str());
  }
  // The length of what a 304 leaves out is not that of nothing (RFC 9110 8.6).
  constexpr int kNotModified = 304;
  if (response.status != kNotModified) {
    const std::string& sent = response.shared_body ? *response.shared_body : response.body;
    evhttp_add_header(fields, "Content-Length", std::to_string(sent.size()).c_str());
  }
  for (const auto& [name, value] : response.fields) {
    evhttp_add_header(fields, name.c_str(), value.c_str());
  }
  evbuffer* body = nullptr;
  if (evhttp_request_get_command(to) != EVHTTP_REQ_HEAD) {
    body = evbuffer_new();
    if (body != nullptr) put_body(response, body);
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
      : handler_(std::move(handler)), intake_(loop, options), http_(evhttp_new(loop.base())) {
    if (http_ == nullptr) return;
    evhttp_set_max_headers_size(http_, static_cast<ev_ssize_t>(options.head_bytes_max));
    evhttp_set_max_body_size(http_, static_cast<ev_ssize_t>(options.body_bytes_max));
    const auto seconds = std::chrono::ceil<std::chrono::seconds>(options.idle_timeout).count();
    evhttp_set_timeout(http_, static_cast<int>(seconds));
    evhttp_set_allowed_methods(http_, EVHTTP_REQ_GET | EVHTTP_REQ_HEAD | EVHTTP_REQ_POST |
                                          EVHTTP_REQ_PUT | EVHTTP_REQ_DELETE);
    evhttp_set_gencb(http_, &on_request, this);
    intake_.attach(http_);
  }
  EvhttpServer(const EvhttpServer&) = delete;
  EvhttpServer& operator=(const EvhttpServer&) = delete;
  ~EvhttpServer() override {
    intake_.fall_silent();
    for (const auto& pending : pending_) pending->request = nullptr;
    if (http_ != nullptr) evhttp_free(http_);
  }

  Result<void> listen(const Options& options) {
    if (!options.socket_file.empty()) {
      auto opened = open_unix_listening(options.socket_file, options.socket_mode);
      if (!opened) return std::unexpected(opened.error());
      file_.emplace(std::move(opened->file));
      return serve(std::move(opened->socket), "unix:" + options.socket_file);
    }
    auto socket = listen_on(options.address, kBacklog, SharePort::kNo);
    if (!socket) return std::unexpected(socket.error());
    address_ = bound_address(*socket);
    return serve(std::move(*socket), options.address.to_string());
  }

  const Address& address() const override { return address_; }
  std::size_t under_way() const override { return intake_.under_way(); }

 private:
  Result<void> serve(Socket socket, const std::string& where) {
    if (http_ == nullptr || evhttp_accept_socket(http_, socket.get()) != 0) {
      return fail("cannot serve on " + where + ": out of memory");
    }
    socket.release();  // evhttp closes it
    return {};
  }
  static void on_request(evhttp_request* request, void* context) {
    auto& server = *static_cast<EvhttpServer*>(context);
    std::erase_if(server.pending_, [](const auto& pending) { return pending->request == nullptr; });
    auto pending = std::make_shared<AdminReply::Pending>(request);
    server.pending_.push_back(pending);
    AdminRequest asked = read_request(request);
    asked.body_left_out = server.intake_.begin(request);
    server.handler_(std::move(asked), AdminReply(std::move(pending)));
  }

  Handler handler_;
  AdminIntake intake_;
  std::vector<std::shared_ptr<AdminReply::Pending>> pending_;
  evhttp* http_;
  Address address_;
  std::optional<SocketFile> file_;  // of a Unix socket
};

}  // namespace

Result<std::unique_ptr<AdminServer>> AdminServer::create(Loop& loop, const Options& options,
                                                         Handler handler) {
  auto server = std::make_unique<EvhttpServer>(loop, options, std::move(handler));
  if (auto listening = server->listen(options); !listening) {
    return std::unexpected(listening.error());
  }
  return server;
}

}  // namespace encore::net
