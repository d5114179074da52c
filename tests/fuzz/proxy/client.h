// One connection's worth of a client over HTTP/1: composes requests from its stream of random
// numbers, sends them, reads the answers (or leaves in the middle, or takes its time) and has each
// judged. And what it shares with those that speak HTTP/2 (http2_client.h).
#pragma once

#include <array>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tests/fuzz/proxy/accounts.h"
#include "tests/fuzz/proxy/channel.h"
#include "tests/fuzz/proxy/loop.h"
#include "tests/fuzz/proxy/oracle.h"
#include "tests/fuzz/proxy/published.h"
#include "tests/fuzz/proxy/ring.h"
#include "tests/fuzz/proxy/tunnels.h"
#include "tests/fuzz/proxy/world.h"

namespace encore::proxyfuzz {

// A connection's worth of a client, whatever it speaks.
class AnyClient : public Handler {
 public:
  // Goes immediately, whatever it waits for.
  virtual void leave(bool reset) = 0;
  // Tells of a request that has waited too long. Call now and then.
  virtual void check_progress(bool origin_is_busy, double bound) = 0;
};

// Percent of the clients that speak HTTP/2 in the history with that seed: half of all of them.
double draw_http2(std::uint64_t seed);
// One that speaks HTTP/1 or HTTP/2, as the ring wants it.
std::unique_ptr<AnyClient> make_client(Ring& ring, std::size_t number);

class Client final : public AnyClient {
 public:
  Client(Ring& ring, std::size_t number);
  ~Client() override;
  void on_ready(std::uint32_t events) override;
  void leave(bool reset) override;
  void check_progress(bool origin_is_busy, double bound) override;

 private:
  void schedule(double seconds);
  void begin();
  void connect();
  void add(std::shared_ptr<Request> request);
  void add_tunnel();
  void hand_over();
  void plan_misbehaviour();
  void flush();
  // Returns the events that it waits for to go on sending.
  std::uint32_t sending() const;
  void read();
  void keep_unread();
  void take();
  bool take_head();
  bool take_body();
  void on_end();
  // The batch has that many bytes that belong to no answer that has ended.
  std::uint64_t take_bytes(std::uint64_t unread);
  void finish_front(Ending ending);
  void drop_rest();
  void disconnect(bool reset);

  Ring& ring_;
  World& world_;
  Random random_;
  Asker asker_;
  Channel channel_;
  bool said_close_ = false;  // an answer is the connection's last
  bool shut_down_ = false;   // we send no more
  bool broken_ = false;      // nor can we: a send has failed
  bool pipelined_ = false;   // this batch is more than one
  bool answered_ = false;    // the connection has been used before
  std::string out_;
  std::string in_;           // bytes that have come and are not judged yet, between two reads
  std::string_view unread_;  // and within one
  std::deque<std::shared_ptr<Request>> waiting_;
  Answer answer_;
  bool have_head_ = false;
  std::uint64_t bytes_here_ = 0;  // in this batch
  std::uint64_t told_here_ = 0;   // the part of these that belongs to answers that have ended
  std::size_t reads_here_ = 0;
  std::uint64_t leave_at_ = 0;  // goes after so many bytes; 0: stays
  bool leave_with_reset_ = false;
  bool half_close_ = false;
  bool slow_ = false;
  double progress_ = 0;
  Loop::Timer timer_{};
};

}  // namespace encore::proxyfuzz
