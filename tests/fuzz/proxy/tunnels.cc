#include "tests/fuzz/proxy/tunnels.h"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <utility>

#include "tests/fuzz/proxy/content.h"

namespace encore::proxyfuzz {
namespace {

// Numbers of contents that no URL has; clients' are even.
constexpr std::uint64_t kNumbers = std::uint64_t{1} << 38;
// "C" and ten digits: where a content says its number.
constexpr std::size_t kNameBytes = 11;

std::uint64_t number_of_client(const Request& request) { return kNumbers + 2 * request.tag; }

std::uint64_t random_size(Random& random) {
  return random.pick<std::uint64_t>({0, 1, 300, 3000, 3000, 40000, 200000});
}

}  // namespace

class Tunnels::End final : public Handler {
 public:
  End(Tunnels& tunnels, Side& side, const Opened& opened)
      : tunnels_(tunnels),
        side_(side),
        random_(tunnels.world_.seed(), 't', side.number),
        is_slow_(opened.is_slow || random_.percent(10)),
        is_broken_(opened.is_broken),
        speaks_first_(side.number % 2 == 0 || random_.percent(50)),
        unsent_(opened.unsent) {
    side_.descriptor = opened.descriptor;
    total_ = std::max(side_.sent, random_size(random_));
    if (opened.has_ended) total_ = side_.sent;
    side_.has_ended = opened.has_ended;
    if (random_.percent(15)) {
      breaks_at_ = random_.pick<std::uint64_t>({1, 500, 5000, 50000});
      breaks_with_reset_ = random_.percent(50);
    }
    if (random_.percent(10)) pause_ = 0.6;
    tunnels_.loop_.add(side_.descriptor, *this, EPOLLIN | EPOLLOUT);
  }
  ~End() override {
    tunnels_.loop_.cancel(timer_);
    if (side_.descriptor >= 0) disconnect(false);
  }

  void on_ready(std::uint32_t events) override {
    if (side_.descriptor >= 0 && (events & EPOLLOUT) != 0) send();
    if (side_.descriptor >= 0 && (events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0) read();
  }

  // False where the end is over.
  bool take(std::string_view bytes) {
    moved();
    name_.append(bytes.substr(0, kNameBytes - std::min(name_.size(), kNameBytes)));
    if (side_.peer == nullptr && name_.size() == kNameBytes) {
      std::uint64_t number = 0;
      std::from_chars(name_.data() + 1, name_.data() + kNameBytes, number, 16);
      if (!tunnels_.pair(side_, number)) return end(true);
    }
    rest_ += bytes;
    if (side_.peer == nullptr) return true;
    if (!check()) return end(true);
    if (breaks_at_ != 0 && side_.received + side_.sent >= breaks_at_) return break_off();
    if (!speaks_first_) {
      speaks_first_ = true;
      send();
    }
    return side_.descriptor >= 0;
  }

 private:
  void moved() { side_.last_moved = now(); }

  // Checks that the bytes that have come are those of the other end.
  bool check() {
    const std::size_t difference =
        find_difference({.number = side_.peer->number}, side_.received, rest_);
    if (difference != std::string_view::npos) {
      tunnels_.fault(side_, "byte " + std::to_string(side_.received + difference) +
                                " is not what the other end sent:\n" +
                                rest_.substr(difference, 300));
      return false;
    }
    side_.received += rest_.size();
    rest_.clear();
    if (side_.received > side_.peer->sent) {
      tunnels_.fault(side_, "more than the other end has sent");
      return false;
    }
    return true;
  }

  void read() {
    std::array<char, 65536> bytes;
    const ssize_t size = ::recv(side_.descriptor, bytes.data(), is_slow_ ? 3000 : bytes.size(), 0);
    if (size < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (size < 0) {
      tunnels_.judge_break(side_);
      end(false);
      return;
    }
    if (size == 0) {
      on_end();
      return;
    }
    if (!take(std::string_view(bytes.data(), static_cast<std::size_t>(size)))) return;
    if (is_slow_ && random_.percent(50)) rest(0.001 * static_cast<double>(random_.below(30)));
  }

  // Takes and gives nothing for a while.
  void rest(double seconds) {
    tunnels_.loop_.modify(side_.descriptor, 0);
    tunnels_.loop_.cancel(timer_);
    timer_ = tunnels_.loop_.after(seconds, [this] {
      timer_ = {};
      wait();
    });
  }

  void wait() {
    const bool sends = speaks_first_ && !side_.has_ended;
    tunnels_.loop_.modify(side_.descriptor, (heard_end_ ? 0U : EPOLLIN) | (sends ? EPOLLOUT : 0U));
  }

  void on_end() {
    moved();
    heard_end_ = true;
    if (side_.peer != nullptr && !check()) {
      end(true);
      return;
    }
    if (is_broken_) {
      tunnels_.judge_break(side_);
      end(false);
      return;
    }
    tunnels_.judge_end(side_);
    if (side_.has_ended) {
      end(false);
      return;
    }
    speaks_first_ = true;
    wait();
  }

  void send() {
    if (!speaks_first_ || side_.has_ended) return wait();
    if (timer_.second != 0) return;
    while (side_.sent < total_ || !unsent_.empty()) {
      if (unsent_.empty()) {
        const std::uint64_t piece =
            std::min<std::uint64_t>(total_ - side_.sent, random_.between(1, 20000));
        append_content({.number = side_.number}, side_.sent, side_.sent + piece, unsent_);
        side_.sent += piece;
      }
      const ssize_t size = ::send(side_.descriptor, unsent_.data(), unsent_.size(), MSG_NOSIGNAL);
      if (size < 0 && (errno == EAGAIN || errno == ENOTCONN)) return wait();
      if (size < 0) {
        // Bytes that the other side sent before may still be there; nothing more is sent.
        tunnels_.judge_break(side_);
        end(false);
        return;
      }
      tunnels_.note_sent(side_);
      moved();
      unsent_.erase(0, static_cast<std::size_t>(size));
      if (breaks_at_ != 0 && side_.received + side_.sent >= breaks_at_) {
        (void)break_off();
        return;
      }
      if (random_.percent(10)) return rest(std::exchange(pause_, 0.002) * random_share());
    }
    if (pause_ > 0.1) return rest(std::exchange(pause_, 0.0));
    finish();
  }

  double random_share() { return 0.5 + 0.005 * static_cast<double>(random_.below(100)); }

  void finish() {
    side_.has_ended = true;  // which moves no byte
    ::shutdown(side_.descriptor, SHUT_WR);
    if (heard_end_) {
      end(false);
    } else {
      wait();
    }
  }

  bool break_off() {
    side_.has_failed = true;
    // Without a reset its end comes behind what the system has taken.
    if (!breaks_with_reset_) side_.has_ended = true;
    side_.sent -= unsent_.size();
    if (side_.number % 2 != 0) tunnels_.last_broken_off_ = now();
    tunnels_.world_.count("tunnel: broken off by an end");
    return end(breaks_with_reset_);
  }

  void disconnect(bool reset) {
    side_.has_failed = side_.has_failed || was_broken(side_.descriptor) || !heard_end_;
    tunnels_.loop_.remove(side_.descriptor);
    if (reset) {
      close_with_reset(side_.descriptor);
    } else {
      ::close(side_.descriptor);
    }
    side_.descriptor = -1;
  }

  bool end(bool reset) {
    tunnels_.loop_.cancel(timer_);
    disconnect(reset);
    tunnels_.remove(side_.number);
    return false;
  }

  Tunnels& tunnels_;
  Side& side_;
  Random random_;
  bool is_slow_;
  bool is_broken_;
  bool speaks_first_;
  bool heard_end_ = false;
  std::uint64_t total_ = 0;
  std::uint64_t breaks_at_ = 0;  // bytes of both directions; 0: never
  bool breaks_with_reset_ = false;
  double pause_ = 0.002;
  std::string unsent_;
  std::string name_;
  std::string rest_;  // until it is known whose it is
  Loop::Timer timer_{};
};

Tunnels::Tunnels(Loop& loop, World& world, std::uint16_t port)
    : loop_(loop), world_(world), port_(port), listener_(listen_on_loopback(port_)) {
  loop_.add(listener_, *this, EPOLLIN);
}

Tunnels::~Tunnels() {
  ends_.clear();
  loop_.remove(listener_);
  ::close(listener_);
}

Tunnels::Side& Tunnels::make_side(std::uint64_t number) {
  auto& side = sides_[number];
  side = std::make_unique<Side>();
  side->number = number;
  side->started = side->last_sent = side->last_moved = now();
  return *side;
}

void Tunnels::remove(std::uint64_t number) {
  const auto found = ends_.find(number);
  if (found == ends_.end()) return;
  loop_.dispose(std::move(found->second));
  ends_.erase(found);
}

std::shared_ptr<Request> Tunnels::compose(Random& random, int user) {
  auto request = world_.make_request(world_.own());
  request->user = user;
  request->method = "CONNECT";
  request->own_path = host + ":" + std::to_string(port_);
  if (random.percent(30)) request->fields.push_back({"User-Agent", "tunneller"});
  return request;
}

std::string Tunnels::compose_early(Random& random, const Request& request) {
  Side& side = make_side(number_of_client(request));
  std::string early;
  if (!random.percent(30)) return early;
  side.sent = random.pick<std::uint64_t>({1, 100, 5000});
  append_content({.number = side.number}, 0, side.sent, early);
  return early;
}

void Tunnels::note_end(const Request& request) {
  sides_.at(number_of_client(request))->has_ended = true;
}

void Tunnels::note_gone(const Request& request, std::size_t unsent) {
  Side& side = *sides_.at(number_of_client(request));
  side.sent -= std::min<std::uint64_t>(side.sent, unsent);
  side.has_ended = side.has_failed = true;
}

void Tunnels::note_broken(const Request& request, std::size_t unsent) {
  Side& side = *sides_.at(number_of_client(request));
  side.sent -= std::min<std::uint64_t>(side.sent, unsent);
  side.has_failed = true;
}

bool Tunnels::may_have_failed(const Request& request) const {
  const double since = request.started - world_.slack;
  return world_.last_trouble >= since || last_broken_off_ >= since - world_.way;
}

// Without a tunnel there is a reason for it.
void Tunnels::judge_refusal(const Request& request, const Answer& answer) {
  world_.count("tunnel: refused with " + std::to_string(answer.status));
  const bool failed = answer.status >= 502 && answer.status <= 504;
  if (failed && may_have_failed(request)) return;
  world_.report("tunnel", "refused without a cause", &request, answer.raw + answer.kept);
}

void Tunnels::open(const Request& request, const Answer& answer, Opened opened) {
  world_.count("tunnel: opened");
  // RFC 9110 9.3.6.
  if (find(answer.head.fields, "Content-Length") != nullptr ||
      find(answer.head.fields, "Transfer-Encoding") != nullptr) {
    world_.report("tunnel", "an answer to CONNECT with a length", &request, answer.raw);
  }
  Side& side = *sides_.at(number_of_client(request));
  side.started = request.started;
  side.is_behind_answers = opened.is_behind_answers;
  side.head_bytes = answer.raw.size();
  auto end = std::make_unique<End>(*this, side, opened);
  End& made = *end;
  ends_[side.number] = std::move(end);
  if (!opened.unread.empty()) (void)made.take(opened.unread);
}

void Tunnels::on_ready(std::uint32_t) {
  while (true) {
    const int descriptor = accept_connection(listener_);
    if (descriptor < 0) return;
    Side& side = make_side(kNumbers + 2 * ++accepted_ + 1);
    ends_[side.number] = std::make_unique<End>(
        *this, side, Opened{.descriptor = descriptor, .unread = {}, .unsent = {}});
  }
}

void Tunnels::fault(const Side& at, const std::string& what) {
  const auto text = [](const Side& side) {
    return std::string(side.number % 2 == 0 ? "client" : "server") + " " +
           std::to_string((side.number - kNumbers) / 2) + ": sent " + std::to_string(side.sent) +
           (side.has_ended ? " and its end" : "") + (side.has_failed ? ", failed" : "") +
           ", received " + std::to_string(side.received) + ", began at " +
           std::to_string(side.started) + ", sent last at " + std::to_string(side.last_sent) + "\n";
  };
  world_.report("tunnel", what, nullptr,
                "now " + std::to_string(now()) + ", the proxy was last told to end at " +
                    std::to_string(std::max(world_.last_ending, world_.ending_since)) + "\n" +
                    text(at) +
                    (at.peer != nullptr ? text(*at.peer) : "nothing is known of its other end\n"));
}

// By the number that its bytes say. One end has one other.
bool Tunnels::pair(Side& at, std::uint64_t number) {
  const auto found = sides_.find(number);
  if (found == sides_.end() || number % 2 == at.number % 2) {
    fault(at, "bytes that no other end sent, of number " + std::to_string(number));
    return false;
  }
  Side& other = *found->second;
  if (other.peer != nullptr && other.peer != &at) {
    fault(other, "its bytes come to another end as well");
    return false;
  }
  at.peer = &other;
  other.peer = &at;
  return true;
}

bool Tunnels::may_be_cut(const Side& at) const {
  // After a drain's time what is left is cut. It began with the client's request.
  const double started = at.peer != nullptr ? std::min(at.started, at.peer->started) : at.started;
  return started < std::max(world_.last_ending, world_.ending_since) &&
         now() - started >= drain_min && world_.last_ending > 0;
}

// For how long the proxy had moved nothing in either direction when it did that. Bytes that it
// reads from then on are for nobody.
double Tunnels::still_for(const Side& at, const OtherEnding& when) const {
  double moved = 0;
  for (const Side* side : {&at, static_cast<const Side*>(at.peer)}) {
    if (side == nullptr || side->descriptor < 0) continue;
    moved = std::max(moved, other_moved_before(side->descriptor, when.order).value_or(0));
  }
  return when.at - moved;
}

// True if the proxy may have ended it because nothing moved: for its time, or for half of a drain.
bool Tunnels::may_be_idle(const Side& at, Seen seen) const {
  const auto endings = other_endings(at.descriptor);
  if (!endings) return may_be_silent(at);
  constexpr double kRounding = 1e-6;
  for (const OtherEnding& each : *endings) {
    const double still = still_for(at, each) + kRounding;
    if (still >= idle_min || (world_.last_ending > 0 && still >= drain_min / 2)) return true;
    if (seen == Seen::kEnd) break;  // the first is what shows
  }
  return false;
}

// For where the system does not tell. For about as long as neither end has sent anything nothing
// has moved in the proxy, which may have been still for longer: sent bytes may wait before it.
// Bytes that are sent then may come too late.
bool Tunnels::may_be_silent(const Side& at) const {
  double last = at.last_sent;
  if (at.peer != nullptr) last = std::max(last, at.peer->last_sent);
  const bool was_idle = at.was_idle || (at.peer != nullptr && at.peer->was_idle);
  return was_idle || now() - last + world_.piece >= idle_min;
}

void Tunnels::note_sent(Side& at) const {
  at.was_idle = may_be_silent(at);
  at.last_sent = now();
}

// An end of the stream came: it is the other's, behind all of its bytes.
void Tunnels::judge_end(Side& at) {
  world_.count("tunnel: an end passed on");
  if (at.peer == nullptr || may_be_idle(at, Seen::kEnd)) return;
  const bool is_whole = at.received == at.peer->sent;
  if (at.peer->has_ended && is_whole) return;
  if (may_stand_for_break(at)) {
    world_.count("tunnel: an end in the place of a break");
    return judge_break(at);
  }
  if (!at.peer->has_ended) fault(at, "an end that the other one did not send");
  if (!is_whole) fault(at, "an end in front of what the other one sent");
}

// A reset would have taken with it what the client was still to get of the answers in front of its
// tunnel. All that was written behind those has come.
bool Tunnels::may_stand_for_break(const Side& at) const {
  const auto endings = other_endings(at.descriptor);
  if (!endings) return at.is_behind_answers;
  return !endings->empty() && endings->front().undelivered > at.head_bytes + at.received;
}

void Tunnels::judge_break(Side& at) {
  world_.count("tunnel: a break passed on");
  if (was_broken(at.descriptor)) return;
  at.has_failed = true;
  if (at.peer == nullptr || may_be_cut(at) || may_be_idle(at, Seen::kBreak)) return;
  const Side& peer = *at.peer;
  if (peer.has_failed) return;
  // For an end that is done only the trouble itself shows that the network has lost what it had
  // sent.
  const bool is_lost = peer.descriptor >= 0 ? was_broken(peer.descriptor)
                                            : std::max(world_.last_trouble, world_.last_break) >=
                                                  at.started - world_.slack;
  if (is_lost) return;
  fault(at, "broken off, though the other end is well");
}

void Tunnels::check_progress(double bound) {
  for (const auto& [number, end] : ends_) {
    const Side& side = *sides_.at(number);
    if (now() - side.last_moved < bound) continue;
    fault(side, "no progress for " + std::to_string(bound) + " s");
    return;
  }
}

}  // namespace encore::proxyfuzz
