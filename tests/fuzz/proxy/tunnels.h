// Tunnels: CONNECT, and both ends of the result. Each end sends the bytes of a content of its own,
// which say whose they are, and ends as its stream of random numbers wants: sends all, ends its
// side and waits for the other's end, or breaks off. The bytes that an end gets must be those that
// the other one sent, in order, and its end must be the other one's. One thread.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "tests/fuzz/proxy/loop.h"
#include "tests/fuzz/proxy/oracle.h"
#include "tests/fuzz/proxy/world.h"

namespace encore::proxyfuzz {

class Tunnels final : public Handler {
 public:
  // Listens on `port`, to which `host` leads.
  Tunnels(Loop& loop, World& world, std::uint16_t port);
  ~Tunnels() override;

  std::shared_ptr<Request> compose(Random& random, int user);
  // Composes the bytes that the client sends before it is answered.
  std::string compose_early(Random& random, const Request& request);
  // The client has ended its side, or has gone, before it was answered; so many bytes of what was
  // composed were not sent.
  void note_end(const Request& request);
  void note_gone(const Request& request, std::size_t unsent);
  // The client's connection takes no more of its bytes, though some that came may be left to read.
  void note_broken(const Request& request, std::size_t unsent);
  // True if the server of some tunnel may have failed since then: that of `request` among them.
  bool may_have_failed(const Request& request) const;
  // An answer other than a tunnel.
  void judge_refusal(const Request& request, const Answer& answer);
  // There is a tunnel: the client's connection is an end of it from now on.
  struct Opened {
    int descriptor = -1;
    std::string_view unread;  // behind the head of the answer
    std::string unsent;       // composed bytes
    bool has_ended = false;   // the client sends no more
    bool is_slow = false;
    bool is_broken = false;          // see note_broken(): its end is no end but a break
    bool is_behind_answers = false;  // to what was asked together with it
  };
  void open(const Request& request, const Answer& answer, Opened opened);
  void on_ready(std::uint32_t events) override;
  // Tells of an end at which nothing has happened for so long.
  void check_progress(double bound);

  std::string host = "127.0.0.1";
  // Limits of the configuration that end them: the least time, among all that were in force, in
  // which nothing moves, and that of a drain.
  double idle_min = std::numeric_limits<double>::infinity();
  double drain_min = std::numeric_limits<double>::infinity();

 private:
  // Knowledge of one end, also when it has gone.
  struct Side {
    std::uint64_t number = 0;  // its content's
    std::uint64_t sent = 0;
    std::uint64_t received = 0;
    bool has_ended = false;   // it has sent its end
    bool has_failed = false;  // or has broken off, or lost its connection
    bool is_behind_answers = false;
    std::uint64_t head_bytes = 0;  // bytes of the answer in front of what is received
    double started = 0;
    double last_sent = 0;
    bool was_idle = false;  // for as long as may end a tunnel
    double last_moved = 0;
    int descriptor = -1;
    Side* peer = nullptr;  // known by what it has sent
  };
  class End;

  Side& make_side(std::uint64_t number);
  void remove(std::uint64_t number);
  void fault(const Side& at, const std::string& what);
  bool pair(Side& at, std::uint64_t number);
  // True if something else than its two ends may have ended it.
  bool may_be_cut(const Side& at) const;
  // How an end sees that its tunnel is over.
  enum class Seen : std::uint8_t { kEnd, kBreak };
  bool may_be_idle(const Side& at, Seen seen) const;
  double still_for(const Side& at, const OtherEnding& when) const;
  bool may_be_silent(const Side& at) const;
  void note_sent(Side& at) const;
  void judge_end(Side& at);
  bool may_stand_for_break(const Side& at) const;
  void judge_break(Side& at);

  Loop& loop_;
  World& world_;
  std::uint16_t port_;
  int listener_;
  std::uint64_t accepted_ = 0;
  double last_broken_off_ = -1e9;  // by a server, perhaps before it was known to be connected
  std::map<std::uint64_t, std::unique_ptr<Side>> sides_;  // by number
  std::map<std::uint64_t, std::unique_ptr<End>> ends_;
};

}  // namespace encore::proxyfuzz
