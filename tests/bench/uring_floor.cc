// The floors of a hit and of a miss by io_uring: as floor_server and relay, with one system call
// for all that a turn of the loop reads, writes and waits for. A send and the receive that follows
// it are linked.
//   uring_floor --port=P --bytes=1024
//   uring_floor --port=P --upstream=P
// Compared with those in docs/decisions/0623.
// One request at a time a connection, without body. A relay's responses must arrive whole, in one
// read.
#include <liburing.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "tests/bench/canned.h"

namespace {

constexpr unsigned kEntries = 4096;
constexpr std::size_t kReadBytes = 16384;

enum class Awaits { kRequest, kResponse };

struct Connection {
  int client = -1;
  int upstream = -1;
  Awaits awaits = Awaits::kRequest;
  char buffer[kReadBytes];
};

struct Server {
  io_uring ring{};
  int listener = -1;
  std::uint16_t upstream_port = 0;
  std::string canned;
};

Server server;

io_uring_sqe* next_entry(Connection* connection) {
  io_uring_sqe* entry = io_uring_get_sqe(&server.ring);
  if (entry == nullptr) {
    std::fputs("uring_floor: more connections than entries\n", stderr);
    std::exit(1);
  }
  io_uring_sqe_set_data(entry, connection);
  return entry;
}

void accept_next() {
  io_uring_prep_multishot_accept(next_entry(nullptr), server.listener, nullptr, nullptr, 0);
}

void receive(Connection* connection, Awaits what) {
  connection->awaits = what;
  const int from = what == Awaits::kRequest ? connection->client : connection->upstream;
  io_uring_prep_recv(next_entry(connection), from, connection->buffer, kReadBytes, 0);
}

// Then receives what follows it.
void send(Connection* connection, int to, const char* bytes, std::size_t count, Awaits then) {
  io_uring_sqe* entry = next_entry(connection);
  io_uring_prep_send(entry, to, bytes, count, MSG_WAITALL | MSG_NOSIGNAL);
  entry->flags |= IOSQE_IO_LINK | IOSQE_CQE_SKIP_SUCCESS;
  receive(connection, then);
}

void close_all(Connection* connection) {
  close(connection->client);
  if (connection->upstream >= 0) close(connection->upstream);
  delete connection;
}

void on_received(Connection* connection, std::size_t bytes) {
  if (connection->awaits == Awaits::kResponse) {
    return send(connection, connection->client, connection->buffer, bytes, Awaits::kRequest);
  }
  if (connection->upstream >= 0) {
    return send(connection, connection->upstream, connection->buffer, bytes, Awaits::kResponse);
  }
  send(connection, connection->client, server.canned.data(), server.canned.size(),
       Awaits::kRequest);
}

void on_accepted(int client) {
  auto* connection = new Connection;
  connection->client = client;
  if (server.upstream_port != 0)
    connection->upstream = encore::bench::connect_to(server.upstream_port);
  receive(connection, Awaits::kRequest);
}

void on_done(const io_uring_cqe& done) {
  auto* connection = static_cast<Connection*>(io_uring_cqe_get_data(&done));
  if (connection == nullptr) {
    if (done.res >= 0) on_accepted(done.res);
    if ((done.flags & IORING_CQE_F_MORE) == 0) accept_next();
  } else if (done.res > 0) {
    on_received(connection, static_cast<std::size_t>(done.res));
  } else if (done.res != -ECANCELED) {
    // A failed send cancels the receive behind it.
    close_all(connection);
  }
}

}  // namespace

int main(int argc, char** argv) {
  using encore::bench::number_argument;
  server.upstream_port = static_cast<std::uint16_t>(number_argument(argc, argv, "upstream", 0));
  server.canned =
      encore::bench::canned_response(number_argument(argc, argv, "bytes", 1024), "Age: 1\r\n", 0);
  const auto port = static_cast<std::uint16_t>(number_argument(argc, argv, "port", 0));
  const int failed = io_uring_queue_init(kEntries, &server.ring,
                                         IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN);
  if (failed != 0) {
    std::fprintf(stderr, "uring_floor: no io_uring here: %s\n", std::strerror(-failed));
    return 1;
  }
  server.listener = encore::bench::listen_on(port);
  accept_next();
  for (;;) {
    if (const int status = io_uring_submit_and_wait(&server.ring, 1);
        status < 0 && status != -EINTR) {
      std::fprintf(stderr, "uring_floor: %s\n", std::strerror(-status));
      return 1;
    }
    io_uring_cqe* done = nullptr;
    unsigned head = 0;
    unsigned count = 0;
    io_uring_for_each_cqe(&server.ring, head, done) {
      on_done(*done);
      ++count;
    }
    io_uring_cq_advance(&server.ring, count);
  }
}
