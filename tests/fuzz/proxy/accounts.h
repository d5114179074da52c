// Accounts: the proxy's access log, held against what clients have sent and got. Each request is
// logged once and each of its bytes is counted once, for every client and on every path out. One
// thread.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>

#include "tests/fuzz/proxy/world.h"

namespace encore::proxyfuzz {

class Accounts {
 public:
  // For [log] format: what take() reads.
  static constexpr std::string_view kFormat =
      "%{traceparent}i %{status}x %{bytes}x %{body_bytes}x %{request_bytes}x %{outcome}x %X";

  // Bytes of an answer as its client had them.
  struct ReceivedBytes {
    int status = 0;
    std::uint64_t bytes = 0;    // heads, interim ones too, framing and content
    std::uint64_t content = 0;  // the content among these
    // Frames of HTTP/2 beyond one that a window has cut the content into; 0: it fits in no one.
    std::uint64_t cuts = 0;
  };

  explicit Accounts(World& world) : world_(world) {}

  // Bytes of a request: its head, as text, and its content.
  struct Sent {
    std::uint64_t bytes = 0;
    // Its connection may be used again though a part of it was not read: a stream of HTTP/2.
    bool may_be_left = false;
  };
  // A client sends a request.
  void note_begun(const Request& request, const Sent& sent);
  // It has a whole answer.
  void note_whole(const Request& request, const ReceivedBytes& got);
  // It has a part of one, or nothing, and gets no more. `got` counts at least what it has.
  void note_unfinished(const Request& request, std::uint64_t bytes);

  // Lines of the log.
  void take(std::string_view lines);

  // Sums of all lines of one proxy.
  struct Sums {
    std::uint64_t requests = 0;
    std::uint64_t bytes = 0;
    std::uint64_t content = 0;
    // At most so many of the bytes were never taken by a socket: a reply that is gathered with
    // others counts as sent when it is written, and its client may leave before it has it.
    std::uint64_t untaken = 0;
    std::map<std::string, std::uint64_t, std::less<>> outcomes;
    std::map<std::string, std::uint64_t, std::less<>> rules;  // by what the world knows
    std::set<std::size_t> tables;                             // rules that held
  };
  // That proxy has ended, and all that it logged was taken: nothing is missing. Returns its sums,
  // and begins anew.
  Sums settle();

 private:
  enum class Client : std::uint8_t { kOpen, kWhole, kUnfinished };
  struct Line {
    int status = 0;
    std::uint64_t bytes = 0;
    std::uint64_t content = 0;
    std::uint64_t taken = 0;
    std::string outcome;
    char connection = '-';
  };
  struct Entry {
    Client client = Client::kOpen;
    bool has_line = false;
    bool was_broken = false;  // the network has taken some connection during it
    Sent sent;
    ReceivedBytes got;
    Line line;
  };

  void take_line(std::string_view text);
  void compare(std::uint64_t tag, const Entry& entry);
  void match(std::uint64_t tag, Entry& entry);
  void report(std::uint64_t tag, const Entry& entry, const std::string& what);

  World& world_;
  std::unordered_map<std::uint64_t, Entry> open_;  // by tag: one side is missing
  Sums sums_;
};

}  // namespace encore::proxyfuzz
