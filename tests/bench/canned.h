// The parts that the load programs share: a listener, canned responses, and a connection that
// answers every request head with one write out of memory. This is the least that a server on
// libevent can do, so it is the floor that the proxy is measured against.
// Confined to the thread that runs the event loop.
#pragma once

#include <event2/event.h>
#include <event2/event_struct.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace encore::bench {

// Opens a non-blocking listening socket on 127.0.0.1. Ends the program with a message where the
// port cannot be had. Processes may share a port: the kernel spreads the connections.
int listen_on(std::uint16_t port);

// Goes on in `workers` processes, this one and its children, which end with it.
void fork_workers(std::size_t workers);

// Accepts one connection, non-blocking and without Nagle's delay. -1 where none is waiting.
int accept_one(int listener);

// Connects to 127.0.0.1, non-blocking and without Nagle's delay. Ends the program on failure.
int connect_to(std::uint16_t port);

// A whole response, head and body, with `extra` (lines that end in CRLF) among its fields. The
// body is `body_bytes` of text that differs with `salt`.
std::string canned_response(std::size_t body_bytes, std::string_view extra, std::size_t salt);

// The target of a request whose first line starts at `head`: "/x" of "GET /x HTTP/1.1".
std::string_view target_of(std::string_view head);

// Chooses the bytes to answer with. They are borrowed and must outlive the server.
class Responder {
 public:
  virtual ~Responder() = default;
  virtual std::string_view respond(std::string_view target) = 0;
};

// Listens on `port` and answers every connection through `responder` until the loop ends. Both
// are borrowed for the life of the program. Requests must have no body.
void serve(event_base* base, std::uint16_t port, Responder* responder);

// Runs the loop until SIGTERM or SIGINT. Ignores SIGPIPE.
void run_until_signal(event_base* base);

// The value of "--name=V" among the arguments, or `fallback`. Ends the program with a message
// where the value is not a number.
std::size_t number_argument(int argc, char** argv, std::string_view name, std::size_t fallback);

}  // namespace encore::bench
