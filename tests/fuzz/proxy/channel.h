// Channel: one connection of the world's, plain or under TLS. Bytes go through it as through ::send
// and ::recv on a non-blocking descriptor, and its events come as the loop's do. Plain it is no
// more than that. Under TLS what is encrypted goes out in pieces of any size, in the midst of
// records and of the handshake, with pauses between, and the connection may end at any of them.
//
// Input of its peer under TLS must be TLS (fault()), and ends by a close_notify: an end without one
// is reported as a reset, for the bytes before it may not be the whole.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "tests/fuzz/proxy/loop.h"
#include "tests/fuzz/proxy/random.h"
#include "tests/fuzz/proxy/tls_ends.h"

namespace encore::proxyfuzz {

// How a connection under TLS treats what it sends.
struct Layer {
  // The number of sent bytes at which a fault occurs; kNever: none does.
  static constexpr std::uint64_t kNever = std::numeric_limits<std::uint64_t>::max();
  static Layer draw(Random& random);

  double split = 0;  // percent of the calls: a piece is sent
  double stall = 0;  // and a pause follows
  std::uint64_t stops_at = kNever;
  std::uint64_t damages_at = kNever;  // one bit of that byte
};

class Channel final : public Handler {
 public:
  explicit Channel(Loop& loop);
  ~Channel() override;
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  // Takes the descriptor over. `handler` outlives the connection. REQUIRES of both: closed.
  void open(int descriptor, Handler& handler, std::uint32_t events);
  void open_secured(int descriptor, Handler& handler, std::uint32_t events, Ssl ssl,
                    const Layer& layer, Random random);
  // Its events go to another from now on, who wants to read. REQUIRES: open.
  void set_handler(Handler& handler);
  bool is_open() const { return descriptor_ >= 0; }
  bool is_secured() const { return secured_ != nullptr; }

  // All below REQUIRE: open, but for close().
  // As Loop::modify().
  void want(std::uint32_t events);
  // As ::send and ::recv: -1 and errno where nothing was taken or came.
  ssize_t send(std::string_view first, std::string_view second = {});
  ssize_t recv(std::span<char> into);
  // No more is sent; what was is, in time.
  void shut_down();
  // True if the system has all that was sent, and under TLS our close_notify behind it. Else want
  // to write, and ask again.
  bool say_end();
  bool has_sent_all() const;
  // Leaves, resets, or shows the peer that what was sent is not the whole.
  enum class Close : std::uint8_t { kLeave, kReset, kCut };
  void close(Close how);
  // Gives a plain one to somebody else.
  int release();

  // See loop.h.
  bool was_heard() const;
  bool was_broken() const;
  bool had_read_all() const;
  // How often something came since this was asked last. REQUIRES: under TLS.
  std::size_t take_reads();
  // Returns the fault in its peer's TLS; empty: none.
  std::string fault() const;
  // The protocol that ALPN has chosen; empty: none yet, or there is no TLS.
  std::string_view protocol() const;
  // It has reached its stop; a plain one never does.
  bool has_stopped() const;
  // Has both sides change their keys, as often. REQUIRES: under TLS, of a client.
  void change_keys(int times);

  void on_ready(std::uint32_t events) override;

 private:
  struct Secured;

  bool shake();
  bool fill();
  void collect();
  void pump();
  bool send_piece();
  void fail(int& error);
  bool is_writable() const;
  bool is_readable() const;
  void arm();
  void deliver(std::uint32_t events);

  Loop& loop_;
  int descriptor_ = -1;
  Handler* handler_ = nullptr;
  std::uint32_t wants_ = 0;
  std::uint64_t opened_ = 0;  // how often it was opened or closed
  std::unique_ptr<Secured> secured_;
};

}  // namespace encore::proxyfuzz
