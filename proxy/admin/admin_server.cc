#include "proxy/admin/admin_server.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace encore::server {
namespace {

constexpr Nanoseconds kSweepInterval = std::chrono::seconds(1);

}  // namespace

Result<std::unique_ptr<AdminServer>> AdminServer::create(net::Loop& loop, const Options& options,
                                                         Handler handler, net::Socket inherited) {
  std::unique_ptr<AdminServer> server(new AdminServer(loop, options, std::move(handler)));
  if (auto listening = server->listen(std::move(inherited)); !listening)
    return std::unexpected(listening.error());
  return server;
}

AdminServer::AdminServer(net::Loop& loop, const Options& options, Handler handler)
    : loop_(loop),
      options_(options),
      handler_(std::move(handler)),
      retired_(loop, [] {}),
      sweep_(loop, [this] { sweep(); }) {
  ENCORE_CHECK(options.connections_max != 0, "there is room for a connection");
}

Result<void> AdminServer::listen(net::Socket socket) {
  if (socket && options_.socket_file.empty()) {
    address_ = net::listening_address(socket);
  } else if (socket) {
    auto file = net::SocketFile::of(options_.socket_file);
    if (!file) return std::unexpected(file.error());
    file_.emplace(std::move(*file));
  } else if (!options_.socket_file.empty()) {
    auto opened = net::open_unix_listening(options_.socket_file, options_.socket_mode);
    if (!opened) return std::unexpected(opened.error());
    file_.emplace(std::move(opened->file));
    socket = std::move(opened->socket);
  } else {
    auto opened = net::open_listening_alone(options_.address);
    if (!opened) return std::unexpected(opened.error());
    socket = std::move(*opened);
    address_ = net::listening_address(socket);
  }
  listener_ = net::Listener::take(loop_, std::move(socket),
                                  [this](net::Socket accepted, const net::Address& peer) {
                                    accept(std::move(accepted), peer);
                                  });
  return {};
}

void AdminServer::hand_over() {
  options_.keeps_alive = false;
  listener_->stop_behind_waiting();
  if (file_) file_->leave();
}

void AdminServer::accept(net::Socket socket, const net::Address& peer) {
  if (connections_.size() >= options_.connections_max && !give_up_idle()) return;
  connections_.emplace_back(new AdminConnection(*this, loop_, std::move(socket), peer));
  if (!sweep_.is_running()) sweep_.start_periodic(kSweepInterval);
}

// A flood of connections that ask nothing keeps nobody out who asks.
bool AdminServer::give_up_idle() {
  AdminConnection* longest = nullptr;
  for (const auto& connection : connections_) {
    if (connection->is_under_way()) continue;
    if (longest == nullptr || connection->last_activity() < longest->last_activity()) {
      longest = connection.get();
    }
  }
  if (longest != nullptr) longest->give_up();
  return longest != nullptr;
}

void AdminServer::handle(AdminRequest&& request, AdminReply to) {
  handler_(std::move(request), std::move(to));
}

void AdminServer::on_request_end() {
  if (options_.on_end) options_.on_end();
}

void AdminServer::retire(AdminConnection& connection) {
  const auto at = std::ranges::find_if(
      connections_, [&](const auto& listed) { return listed.get() == &connection; });
  ENCORE_CHECK(at != connections_.end(), "a connection ends once");
  retired_.add(std::move(*at));
  connections_.erase(at);
}

std::size_t AdminServer::under_way() const {
  return static_cast<std::size_t>(
      std::ranges::count_if(connections_, [](const auto& each) { return each->is_under_way(); }));
}

void AdminServer::sweep() {
  for (auto at = connections_.begin(); at != connections_.end();) {
    AdminConnection& connection = **at++;  // it may leave the list
    connection.check_timeouts(loop_.now());
  }
  if (connections_.empty()) sweep_.cancel();
}

}  // namespace encore::server
