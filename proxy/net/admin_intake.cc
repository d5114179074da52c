#include "proxy/net/admin_intake.h"

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/http.h>
#include <fcntl.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "proxy/net/admin_head.h"
#include "proxy/net/linger.h"
#include "proxy/net/loop.h"
#include "proxy/net/socket.h"

namespace encore::net {
namespace {

constexpr Nanoseconds kSweepInterval = std::chrono::seconds(1);

evhttp_connection* owner_of(bufferevent* buffers) {
  void* owner = nullptr;
  bufferevent_getcb(buffers, nullptr, nullptr, nullptr, &owner);
  auto* connection = static_cast<evhttp_connection*>(owner);
  const bool known =
      connection != nullptr && evhttp_connection_get_bufferevent(connection) == buffers;
  return known ? connection : nullptr;
}

}  // namespace

AdminIntake::AdminIntake(Loop& loop, const AdminOptions& options)
    : loop_(loop), options_(options), sweep_(loop, [this] { sweep(); }) {}

void AdminIntake::attach(evhttp* http) { evhttp_set_bevcb(http, &make_connection, this); }

bufferevent* AdminIntake::make_connection(event_base* base, void* context) {
  bufferevent* buffers = bufferevent_socket_new(base, -1, 0);
  if (buffers == nullptr) return nullptr;
  auto& intake = *static_cast<AdminIntake*>(context);
  evbuffer* input = bufferevent_get_input(buffers);
  Connection& connection = intake.connections_[input];
  connection = Connection();
  connection.buffers = buffers;
  bufferevent_setwatermark(buffers, EV_READ, 0, intake.options_.head_bytes_max);
  evbuffer_add_cb(input, &on_input, context);
  return buffers;
}

AdminIntake::Connection* AdminIntake::find(evhttp_connection* connection) {
  if (connection == nullptr) return nullptr;
  bufferevent* buffers = evhttp_connection_get_bufferevent(connection);
  const auto found = connections_.find(bufferevent_get_input(buffers));
  return found == connections_.end() ? nullptr : &found->second;
}

// Before evhttp looks at it.
void AdminIntake::on_input(evbuffer* input, const evbuffer_cb_info* info, void* context) {
  auto& intake = *static_cast<AdminIntake*>(context);
  const auto found = intake.connections_.find(input);
  if (found == intake.connections_.end() || info->n_added == 0) return;
  Connection& connection = found->second;
  if (connection.editing || connection.phase != Phase::kHead) return;
  if (evhttp_connection* owner = owner_of(connection.buffers)) {
    evhttp_connection_set_closecb(owner, &on_close, context);
  }
  intake.take(connection);
}

// What has come goes to the head; once that is whole, to evhttp.
void AdminIntake::take(Connection& connection) {
  evbuffer* input = bufferevent_get_input(connection.buffers);
  const std::size_t before = connection.head.size();
  const std::size_t more = evbuffer_get_length(input);
  connection.head.resize(before + more);
  connection.editing = true;
  evbuffer_remove(input, connection.head.data() + before, more);
  connection.editing = false;
  const std::size_t size = admin_head_size(connection.head, before);
  if (size != std::string::npos && size <= options_.head_bytes_max) {
    admit(connection, size);
  } else if (connection.head.size() > options_.head_bytes_max) {
    refuse_head(connection);
  }
}

// evhttp says what is wrong with it.
void AdminIntake::refuse_head(Connection& connection) {
  connection.phase = Phase::kBody;
  bufferevent_setwatermark(connection.buffers, EV_READ, 0,
                           options_.head_bytes_max + options_.body_bytes_max);
  wait_for(connection, options_.body_bytes_max);
  pass_on(connection);
}

void AdminIntake::pass_on(Connection& connection) {
  connection.editing = true;
  // At the front: the end of it is the bufferevent's alone.
  evbuffer_prepend(bufferevent_get_input(connection.buffers), connection.head.data(),
                   connection.head.size());
  connection.editing = false;
  connection.head = std::string();
}

void AdminIntake::admit(Connection& connection, std::size_t head_size) {
  connection.phase = Phase::kBody;
  std::size_t body_max = options_.body_bytes_max;
  const std::string_view bytes = std::string_view(connection.head).substr(0, head_size);
  if (const auto head = read_admin_head(bytes)) {
    if (options_.body_bytes_max_for) body_max = options_.body_bytes_max_for(*head);
    const std::uint64_t stated = stated_body(*head);
    // Of chunks it is known when they are there whether they are too many.
    const bool reads = stated <= body_max || (stated == kUnstated && body_max != 0);
    if (!reads) {
      connection.left_out = stated;
      connection.linger = true;
      connection.head = without_body(bytes);
    }
  }
  if (evhttp_connection* owner = owner_of(connection.buffers)) {
    evhttp_connection_set_max_body_size(owner, static_cast<ev_ssize_t>(body_max));
  }
  // With what chunks take beyond that: no more than what they hold, where they are not tiny.
  bufferevent_setwatermark(connection.buffers, EV_READ, 0, options_.head_bytes_max + 2 * body_max);
  wait_for(connection, body_max);
  pass_on(connection);
}

void AdminIntake::wait_for(Connection& connection, std::uint64_t bytes) {
  const auto seconds = std::chrono::seconds(bytes / options_.bytes_per_second_min);
  connection.deadline = loop_.now() + options_.transfer_grace + seconds;
  if (!sweep_.is_running()) sweep_.start_periodic(kSweepInterval);
}

std::uint64_t AdminIntake::begin(evhttp_request* request) {
  Connection* connection = find(evhttp_request_get_connection(request));
  if (connection == nullptr) return 0;
  connection->phase = Phase::kAnswer;
  connection->deadline.reset();
  bufferevent_setwatermark(connection->buffers, EV_READ, 0, options_.head_bytes_max);
  evhttp_request_set_on_complete_cb(request, &on_complete, this);
  if (!sweep_.is_running()) sweep_.start_periodic(kSweepInterval);
  return std::exchange(connection->left_out, 0);
}

void AdminIntake::on_complete(evhttp_request* request, void* context) {
  auto& intake = *static_cast<AdminIntake*>(context);
  Connection* connection = intake.find(evhttp_request_get_connection(request));
  if (connection == nullptr) return;
  if (connection->linger) {
    // evhttp closes what it has; the peer still sends, and is to see the answer.
    const int kept = ::fcntl(bufferevent_getfd(connection->buffers), F_DUPFD_CLOEXEC, 0);
    if (kept >= 0) Lingering::of(intake.loop_).take(Socket(kept), nullptr);
    return;
  }
  connection->phase = Phase::kHead;
  connection->deadline.reset();
  intake.ended();
  intake.take(*connection);  // what was sent before the answer came
}

void AdminIntake::on_close(evhttp_connection* closed, void* context) {
  auto& intake = *static_cast<AdminIntake*>(context);
  bufferevent* buffers = evhttp_connection_get_bufferevent(closed);
  if (intake.connections_.erase(bufferevent_get_input(buffers)) != 0) intake.ended();
}

void AdminIntake::ended() {
  if (options_.on_end) options_.on_end();
}

std::size_t AdminIntake::under_way() const {
  return static_cast<std::size_t>(std::ranges::count_if(
      connections_, [](const auto& entry) { return entry.second.phase != Phase::kHead; }));
}

void AdminIntake::sweep() {
  std::vector<evhttp_connection*> late;
  for (auto& [input, connection] : connections_) {
    // Those that are gone are among the others.
    if (connection.phase == Phase::kHead) continue;
    const std::size_t unsent = evbuffer_get_length(bufferevent_get_output(connection.buffers));
    if (connection.phase == Phase::kAnswer && !connection.deadline && unsent != 0) {
      wait_for(connection, unsent);
    }
    if (!connection.deadline || loop_.now() < *connection.deadline) continue;
    if (evhttp_connection* owner = owner_of(connection.buffers)) late.push_back(owner);
  }
  for (evhttp_connection* owner : late) {
    if (options_.on_cut) options_.on_cut();
    evhttp_connection_free(owner);
  }
  if (under_way() == 0) sweep_.cancel();
}

}  // namespace encore::net
