// System: the kernel of a simulation. Time, descriptors, TCP connections with what they hold in
// each direction, and all that goes wrong with them, from one seed. Each call has the contract of
// the system call that it is named after: -1 and errno on failure. In plain weather it acts as
// Linux does on loopback; tests/simulate/kernel_test.cc compares the two.
//
// Nothing runs by itself: step() goes on to what happens next (bytes arrive, a loop's turn comes).
// One thread. The system that is current is what the wrapped calls of this program go to.
#pragma once

#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tests/simulate/adversity.h"
#include "tests/simulate/byte_queue.h"
#include "tests/simulate/poller.h"

namespace encore::simulate {

// Owner of a descriptor: limits, interruptions and checks are the proxy's alone.
enum class Side : std::uint8_t { kProxy, kWorld };

constexpr int kFirstDescriptor = 1 << 20;

class System final : public PolledSystem {
 public:
  System(std::uint64_t seed, const Adversity& adversity,
         std::int64_t wall_seconds = kWallSecondsAtStart);
  ~System();
  System(const System&) = delete;
  System& operator=(const System&) = delete;

  // The one that is current: made last, and not yet gone. Null without one.
  static System* current();

  // Start of the clocks: 10^5 s after boot, in 2025.
  static constexpr std::int64_t kMonotonicStart = 100'000LL * 1'000'000'000;
  static constexpr std::int64_t kWallSecondsAtStart = 1'750'000'000;

  // Nanoseconds of the monotonic clock.
  std::int64_t now() const override { return now_; }
  std::int64_t wall_now() const { return now_ + wall_offset_; }
  std::int64_t wall_seconds_at_start() const { return wall_seconds_at_start_; }
  void step_wall_clock(std::int64_t nanoseconds) { wall_offset_ += nanoseconds; }
  std::uint64_t random() { return random_.next(); }
  // Goes on to what happens next. False where nothing is to come.
  bool step();
  // Digest of all that has happened so far.
  std::uint64_t digest() const { return digest_; }
  void mix_into_digest(std::uint64_t value) { digest_ = proxyfuzz::mix(digest_ ^ value); }
  std::uint64_t steps() const { return steps_; }

  int socket(Side side, int family, int type);
  int bind(int descriptor, const sockaddr* address, socklen_t size);
  int listen(int descriptor, int backlog);
  int connect(int descriptor, const sockaddr* address, socklen_t size);
  int accept(Side side, int descriptor, sockaddr* peer, socklen_t* size);
  ssize_t recv(int descriptor, void* bytes, std::size_t size, int flags);
  ssize_t send(int descriptor, std::span<const iovec> parts);
  int shutdown(int descriptor, int how);
  int close(int descriptor);
  int setsockopt(int descriptor, int level, int option, const void* value, socklen_t size);
  int getsockopt(int descriptor, int level, int option, void* value, socklen_t* size);
  int getsockname(int descriptor, sockaddr* address, socklen_t* size);
  int ioctl(int descriptor, unsigned long request, int* value);
  // A file that nothing is read from: it takes up a descriptor.
  int open_null(Side side);
  int eventfd(Side side, std::uint64_t count);
  ssize_t read_eventfd(int descriptor, std::uint64_t* count);
  ssize_t write_eventfd(int descriptor, std::uint64_t count);

  // True if it was the network that ended the connection. For what the world knows.
  bool was_broken(int descriptor) const;
  // True if all that was sent has been read by the other side, when it closed if it has.
  bool was_heard(int descriptor) const;
  // True if the other side has read when all that was sent to it had arrived, before it began to
  // send what has come from it last.
  bool had_read_all(int descriptor) const;
  // Each call of the other side that ended its half of the connection, or all.
  struct Ending {
    std::uint64_t order = 0;  // among all endings and moves
    std::int64_t at = 0;
    std::size_t undelivered = 0;  // its bytes that were still on their way
  };
  std::span<const Ending> other_endings(int descriptor) const;
  // When the other side had last sent or read a byte, or was connected, before that.
  std::int64_t other_moved_before(int descriptor, std::uint64_t order) const;
  // Told when the network ends or refuses a connection between the proxy and an origin, or the
  // proxy has no descriptor: an error has a cause then.
  enum class NetworkFault : std::uint8_t { kShort, kLong };  // long: until a connect's time is up
  std::function<void(NetworkFault)> on_trouble;
  // Called when the network ends a connection of the proxy's, with any other end.
  std::function<void()> on_break;
  // The same of one to an origin, with the proxy's descriptor.
  std::function<void(int)> on_origin_break;
  // Told of what no program may do: a call on what is closed, a descriptor closed while watched.
  std::function<void(const std::string&)> on_fault;

  void set_descriptors_max(std::size_t most) { descriptors_max_ = most; }
  // Returns the number of the proxy's.
  std::size_t descriptors() const { return proxy_descriptors_; }
  std::string describe_descriptors() const;
  // The proxy's connections: those that it has accepted and those to origins, without those that
  // are being made.
  struct Sockets {
    std::size_t clients = 0;
    std::size_t origins = 0;
    std::size_t connecting = 0;
  };
  Sockets proxy_sockets() const;
  // True if a client's socket has not taken all that the proxy had for it, since the last call.
  bool take_blocked() { return std::exchange(is_client_blocked_, false); }
  // Bytes that its calls have moved, since the start.
  struct Traffic {
    std::uint64_t to_clients = 0;
    std::uint64_t from_clients = 0;
    std::uint64_t to_origins = 0;
    std::uint64_t from_origins = 0;
    Traffic operator-(const Traffic& before) const {
      return {.to_clients = to_clients - before.to_clients,
              .from_clients = from_clients - before.from_clients,
              .to_origins = to_origins - before.to_origins,
              .from_origins = from_origins - before.from_origins};
    }
  };
  const Traffic& traffic() const { return traffic_; }
  void tell_fault(const std::string& what);
  // No connection goes wrong any more, and nothing is late.
  void calm() { adversity_ = Adversity::none(); }
  const Adversity& adversity() const { return adversity_; }

  // For pollers.
  void add(Poller& poller) override;
  void remove(Poller& poller) override;
  bool add_watch(Watch& watch) override;
  void remove_watch(Watch& watch) override;
  std::uint8_t readiness(int descriptor) const override;
  void schedule_wake(Poller& poller, std::int64_t at) override;
  void wake_soon(Poller& poller) override;
  std::uint64_t next_order() override { return random_.next(); }

 private:
  struct Port {
    std::uint32_t ip = 0;
    std::uint16_t port = 0;
    bool operator==(const Port&) const = default;
  };
  // A side sent or read bytes, or was connected.
  struct Move {
    std::uint64_t order = 0;
    std::int64_t at = 0;
  };
  // One end of a connection. `in` holds its input: first what has arrived, then what is on its way.
  struct End {
    explicit End(BytePool& pool) : in(pool) {}
    ByteQueue in;
    std::size_t arrived = 0;
    std::size_t in_max = 0;       // for bytes that have arrived and wait to be read
    std::size_t transit_max = 0;  // for bytes on their way: the sender's buffer
    int descriptor = -1;
    std::int64_t due = -1;  // time of the next delivery
    int error = 0;
    bool waits = false;       // to be accepted
    bool fin_sent = false;    // by the other end
    bool fin_came = false;    // all of it has arrived
    bool reset_sent = false;  // by the other end, or the network
    bool dead = false;        // a reset has arrived
    bool closed = false;
    bool broken = false;   // by the network
    bool unheard = false;  // the other end closed without reading all of what came
    bool is_proxys = false;
    bool read_all = false;    // was read when all that was sent had arrived
    bool other_knew = false;  // the other end had so, before it sent what is here
    std::vector<Move> moves;  // one of each moment
    std::vector<Ending> endings;
  };
  struct Link {
    explicit Link(BytePool& pool) : ends{End(pool), End(pool)} {}
    std::array<End, 2> ends;  // the connecting end, and the other one
    std::int64_t latency = 0;
    std::uint32_t generation = 0;
    bool used = false;
    bool to_origin = false;
    Port from;
    Port to;
  };
  struct Listener {
    std::vector<std::uint32_t> waiting;  // links
    std::size_t waiting_max = 0;
  };
  enum class Kind : std::uint8_t {
    kFree,
    kFresh,
    kConnecting,
    kFailed,
    kStream,
    kListener,
    kEvent
  };
  struct Descriptor {
    Kind kind = Kind::kFree;
    Side side = Side::kProxy;
    bool reset_on_close = false;
    bool sends_no_more = false;
    bool reads_no_more = false;
    bool has_address = false;
    bool shares_port = false;
    int error = 0;
    std::uint32_t link = 0;
    std::uint8_t end = 0;
    Port address;
    std::size_t receive_buffer = 0;
    std::size_t unsent_max = 0;  // it is writable with less unsent (TCP_NOTSENT_LOWAT); 0: with any
    std::uint64_t count = 0;     // an eventfd's
    std::uint32_t generation = 0;
    Listener listener;
    std::vector<Watch*> watches;
  };
  enum class What : std::uint8_t { kWake, kArrive, kConnect };
  struct Item {
    std::int64_t at = 0;
    std::uint64_t order = 0;
    std::uint32_t subject = 0;  // number of a poller, link times two plus end, or descriptor
    std::uint32_t generation = 0;
    What what = What::kWake;
  };

  Descriptor* find(int descriptor);
  const Descriptor* find(int descriptor) const;
  // With a fault told where it is not open.
  Descriptor* checked(int descriptor, const char* call);
  int make(Side side, Kind kind);
  int fail(int error);
  bool is_interrupted(const Descriptor& at);
  void fault(const std::string& what) { tell_fault(what); }
  bool has_descriptor(Side side);
  void tell(int descriptor);
  std::uint8_t readiness_of(const Descriptor& at) const;
  int take_error(Descriptor& at);
  static bool is_writable(const Link& link, const Descriptor& at);
  // Bytes for this end that its sender still has.
  static std::size_t unsent_to(const End& end);

  // Both directions have ended: there is no connection any more.
  static bool is_over(const Link& link) { return link.ends[0].fin_came && link.ends[1].fin_came; }

  void push(What what, std::int64_t at, std::uint32_t subject, std::uint32_t generation);
  void arrive(std::uint32_t link, std::size_t end);
  void arrive_reset(End& end);
  void schedule_arrival(std::uint32_t link, std::size_t end);
  void reset_other(std::uint32_t link, std::size_t end);
  void break_link(std::uint32_t link);
  void end_of(std::uint32_t link, std::size_t end, bool reset);
  void free_if_unused(std::uint32_t link);
  void note_move(End& own);
  void note_ending(Link& link, std::size_t which);
  void finish_connect(int descriptor);
  int choose_listener(const Port& to);
  std::uint32_t make_link(const Descriptor& connecting, const Descriptor& listener);
  std::size_t buffer_bytes();
  void close_listener(Descriptor& at);

  Random random_;
  Adversity adversity_;
  std::int64_t now_ = 0;
  std::int64_t wall_seconds_at_start_;
  std::int64_t wall_offset_;
  std::uint64_t digest_ = 0;
  std::uint64_t steps_ = 0;
  std::uint64_t order_ = 0;  // numbers moves and endings
  std::vector<Item> items_;  // a heap
  std::vector<Poller*> pollers_;
  std::vector<std::unique_ptr<Descriptor>> descriptors_;
  std::vector<std::uint32_t> free_descriptors_;
  BytePool bytes_;
  std::vector<std::unique_ptr<Link>> links_;
  std::vector<std::uint32_t> free_links_;
  std::vector<int> listeners_;
  std::size_t proxy_descriptors_ = 0;
  Traffic traffic_;
  std::size_t descriptors_max_ = SIZE_MAX;
  std::uint16_t next_port_ = 32768;
  System* before_;
  bool is_client_blocked_ = false;
};

}  // namespace encore::simulate
