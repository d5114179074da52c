// The floor of a miss: a relay that copies requests to one upstream and responses back, unread but
// for the response's length. Upstream connections are pooled and stay registered in the same loop;
// the client is written in the upstream's callback.
//   relay --port=P --upstream=P
// One request at a time a connection, without body; responses must have Content-Length.
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <vector>

#include "tests/bench/canned.h"

namespace {

constexpr std::size_t kReadBytes = 65536;
char buffer[kReadBytes];

struct Client;

struct Upstream {
  int fd = -1;
  event read{};
  Client* client = nullptr;   // waits for the response; null in the pool, or if it left
  std::size_t body_left = 0;  // for a response whose head has been seen
  bool in_body = false;
};

struct Client {
  int fd = -1;
  event read{};
  Upstream* upstream = nullptr;
};

struct Relay {
  event_base* base = nullptr;
  std::uint16_t upstream_port = 0;
  event accept{};
  std::vector<Upstream*> pool;
};

Relay relay;

void close_upstream(Upstream* upstream) {
  event_del(&upstream->read);
  close(upstream->fd);
  delete upstream;
}

void close_client(Client* client) {
  if (client->upstream != nullptr) close_upstream(client->upstream);
  event_del(&client->read);
  close(client->fd);
  delete client;
}

void drop_from_pool(Upstream* upstream) {
  std::erase(relay.pool, upstream);
  close_upstream(upstream);
}

// Writes all of it; a loopback socket takes a response of the sizes used here in one call.
bool write_all(int fd, const char* data, std::size_t bytes) {
  while (bytes > 0) {
    ssize_t put = write(fd, data, bytes);
    if (put < 0 && errno != EINTR) return false;
    if (put > 0) {
      data += put;
      bytes -= static_cast<std::size_t>(put);
    }
  }
  return true;
}

// Applies `bytes` to the state of the response in progress. False if they mean nothing.
bool account(Upstream* upstream, std::string_view bytes) {
  if (!upstream->in_body) {
    std::size_t end = bytes.find("\r\n\r\n");
    std::size_t field = bytes.find("Content-Length: ");
    if (end == std::string_view::npos || field > end) return false;
    const char* digits = bytes.data() + field + 16;
    std::from_chars(digits, bytes.data() + bytes.size(), upstream->body_left);
    upstream->in_body = true;
    bytes.remove_prefix(end + 4);
  }
  if (bytes.size() > upstream->body_left) return false;
  upstream->body_left -= bytes.size();
  return true;
}

void on_upstream(evutil_socket_t fd, short, void* argument) {
  auto* upstream = static_cast<Upstream*>(argument);
  ssize_t got = read(fd, buffer, sizeof buffer);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  Client* client = upstream->client;
  if (client == nullptr) {
    drop_from_pool(upstream);
    return;
  }
  if (got <= 0 || !account(upstream, {buffer, static_cast<std::size_t>(got)}) ||
      !write_all(client->fd, buffer, static_cast<std::size_t>(got))) {
    close_client(client);
    return;
  }
  if (upstream->body_left == 0) {
    upstream->in_body = false;
    upstream->client = nullptr;
    client->upstream = nullptr;
    relay.pool.push_back(upstream);
  }
}

Upstream* take_upstream() {
  if (!relay.pool.empty()) {
    Upstream* upstream = relay.pool.back();
    relay.pool.pop_back();
    return upstream;
  }
  auto* upstream = new Upstream;
  upstream->fd = encore::bench::connect_to(relay.upstream_port);
  event_assign(&upstream->read, relay.base, upstream->fd, EV_READ | EV_PERSIST, on_upstream,
               upstream);
  event_add(&upstream->read, nullptr);
  return upstream;
}

void on_client(evutil_socket_t fd, short, void* argument) {
  auto* client = static_cast<Client*>(argument);
  ssize_t got = read(fd, buffer, sizeof buffer);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got <= 0) {
    close_client(client);
    return;
  }
  if (client->upstream == nullptr) {
    client->upstream = take_upstream();
    client->upstream->client = client;
  }
  if (!write_all(client->upstream->fd, buffer, static_cast<std::size_t>(got))) close_client(client);
}

void on_acceptable(evutil_socket_t listener, short, void*) {
  for (int fd; (fd = encore::bench::accept_one(listener)) >= 0;) {
    auto* client = new Client;
    client->fd = fd;
    event_assign(&client->read, relay.base, fd, EV_READ | EV_PERSIST, on_client, client);
    event_add(&client->read, nullptr);
  }
}

}  // namespace

int main(int argc, char** argv) {
  using encore::bench::number_argument;
  relay.base = event_base_new();
  relay.upstream_port = static_cast<std::uint16_t>(number_argument(argc, argv, "upstream", 0));
  auto port = static_cast<std::uint16_t>(number_argument(argc, argv, "port", 0));
  event_assign(&relay.accept, relay.base, encore::bench::listen_on(port), EV_READ | EV_PERSIST,
               on_acceptable, nullptr);
  event_add(&relay.accept, nullptr);
  encore::bench::run_until_signal(relay.base);
  return 0;
}
