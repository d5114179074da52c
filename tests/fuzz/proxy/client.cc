#include "tests/fuzz/proxy/client.h"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "tests/fuzz/proxy/asking.h"

namespace encore::proxyfuzz {
namespace {

constexpr double kTunnelPercent = 2;
// Behind what a slow client has not taken, the answer to its CONNECT waits, too.
constexpr double kSlowTunnelPercent = 25;

}  // namespace

Client::Client(Ring& ring, std::size_t number)
    : ring_(ring),
      world_(ring.world),
      random_(ring.world.seed(), 'c', number),
      asker_{.user = static_cast<int>(number % kUsers)},
      channel_(ring.loop) {
  schedule(0.001 * static_cast<double>(number));
}

Client::~Client() {
  ring_.loop.cancel(timer_);
  disconnect(false);
}

void Client::schedule(double seconds) {
  ring_.loop.cancel(timer_);
  timer_ = ring_.loop.after(seconds, [this] {
    timer_ = {};
    begin();
  });
}

void Client::disconnect(bool reset) {
  channel_.close(reset ? Channel::Close::kReset : Channel::Close::kLeave);
}

void Client::connect() {
  const int buffer = slow_ ? 4096 : 0;
  const int descriptor = ring_.front == nullptr ? connect_to_loopback(ring_.proxy_port, buffer)
                                                : ring_.front->connect(random_, asker_, buffer);
  if (ring_.tls != nullptr && ring_.has_tls[static_cast<std::size_t>(asker_.listener)]) {
    Random of_layer(random_.next());
    Ssl ssl = ring_.tls->make_client(of_layer, TlsEnds::Offer::kHttp1);
    channel_.open_secured(descriptor, *this, EPOLLIN | EPOLLOUT, std::move(ssl),
                          Layer::draw(of_layer), of_layer);
    world_.count("tls: clients' connections");
  } else {
    channel_.open(descriptor, *this, EPOLLIN | EPOLLOUT);
  }
  in_.clear();
  unread_ = {};
  said_close_ = false;
  shut_down_ = broken_ = false;
  answered_ = false;
}

// Draws the treatment of this batch, apart from being sent and read.
void Client::plan_misbehaviour() {
  leave_at_ = 0;
  half_close_ = false;
  slow_ = false;
  const std::uint64_t kind = random_.below(100);
  if (!ring_.misbehave) return;
  if (kind < 4) {
    leave_at_ = random_.pick<std::uint64_t>({1, 1, 300, 1000, 5000, 50000});
    leave_with_reset_ = random_.percent(50);
  } else if (kind < 6) {
    half_close_ = true;
  } else if (kind < 10) {
    slow_ = true;
  }
}

void Client::begin() {
  if (!waiting_.empty()) {  // a slow reader's pause has ended
    read();
    return;
  }
  if (ring_.requests_left == 0) return;
  if (ring_.paused) return schedule(0.05);
  if (channel_.is_open() && (said_close_ || shut_down_ || random_.percent(3))) {
    if (ring_.on_leave && !said_close_) ring_.on_leave(nullptr);
    disconnect(false);
  }
  plan_misbehaviour();
  asker_.is_slow = slow_;
  // Its socket holds little from the beginning.
  if (slow_ && channel_.is_open() && random_.percent(50)) disconnect(false);
  if (!channel_.is_open()) connect();
  // Behind what a slow client has not taken even a head waits.
  std::size_t batch = random_.percent(slow_ ? 50 : 10) ? random_.between(2, 5) : 1;
  bytes_here_ = told_here_ = 0;
  reads_here_ = 0;
  if (channel_.is_secured()) channel_.take_reads();
  progress_ = now();
  ++ring_.active;
  for (; batch > 0 && ring_.requests_left > 0; --batch) {
    add(compose(ring_, random_, asker_));
    // Requests behind one of HTTP/1.0 may go unanswered.
    if (waiting_.back()->http10) break;
  }
  if (ring_.tunnels != nullptr && random_.percent(slow_ ? kSlowTunnelPercent : kTunnelPercent)) {
    add_tunnel();
  }
  std::string together;
  for (const auto& request : waiting_) {
    together += " " + request->method + " " + request->url->path + request->own_path;
  }
  pipelined_ = waiting_.size() > 1;
  if (half_close_) {
    together += ", half-closed";
    const Request& last = *waiting_.back();
    if (!last.http10 && last.method != "CONNECT" && random_.percent(30)) {
      together += " in a head";
      out_ += "GET http://127";
    }
  }
  if (slow_) together += ", slow";
  for (const auto& request : waiting_) request->batch = together;
  flush();
  if (channel_.is_open() && leave_at_ == 1 && random_.percent(50)) {
    world_.count("request: left before an answer");
    finish_front(Ending::kLeft);
  }
}

void Client::add(std::shared_ptr<Request> request) {
  // Pipelining is HTTP/1.1's. HTTP/1.0 shows by a reset alone that a body without a length was cut,
  // which may cost it what came before.
  if (!waiting_.empty()) request->http10 = false;
  const std::string text = text_of(ring_, *request);
  note_begun(ring_, request, progress_, {.bytes = text.size()});
  out_ += text;
  waiting_.push_back(std::move(request));
}

// Behind the others, or in their place.
void Client::add_tunnel() {
  if (waiting_.back()->http10 || ring_.requests_left == 0) return;
  auto request = ring_.tunnels->compose(random_, asker_.user);
  std::string early = ring_.tunnels->compose_early(random_, *request);
  add(std::move(request));
  out_ += early;
}

// A connection for requests becomes an end of a tunnel.
void Client::hand_over() {
  const std::shared_ptr<Request> request = waiting_.front();
  waiting_.pop_front();
  request->ended = now();
  request->answer = "a tunnel";
  if (ring_.accounts != nullptr) ring_.accounts->note_unfinished(*request, 0);
  --request->url->clients;
  ring_.tunnels->open(*request, answer_,
                      {.descriptor = channel_.release(),
                       .unread = std::exchange(unread_, {}),
                       .unsent = out_,
                       .has_ended = shut_down_,
                       .is_slow = slow_,
                       .is_broken = broken_,
                       .is_behind_answers = pipelined_});
  in_.clear();
  half_close_ = false;
  on_end();
}

void Client::flush() {
  while (!out_.empty()) {
    const ssize_t size = channel_.send(out_);
    if (size < 0 && (errno == EAGAIN || errno == ENOTCONN)) {
      channel_.want(EPOLLIN | EPOLLOUT);
      return;
    }
    if (size < 0) {
      broken_ = true;
      if (!waiting_.empty() && waiting_.back()->method == "CONNECT") {
        ring_.tunnels->note_broken(*waiting_.back(), out_.size());
      }
      out_.clear();  // answers from before the end are still to be read
      break;
    }
    out_.erase(0, static_cast<std::size_t>(size));
  }
  channel_.want(EPOLLIN);
  if (half_close_ && !waiting_.empty()) {
    world_.count("request: half-closed");
    channel_.shut_down();
    if (waiting_.back()->method == "CONNECT") ring_.tunnels->note_end(*waiting_.back());
    half_close_ = false;
    shut_down_ = true;
  }
}

std::uint32_t Client::sending() const { return out_.empty() ? 0U : EPOLLOUT; }

void Client::on_ready(std::uint32_t events) {
  if (channel_.is_open() && (events & EPOLLOUT) != 0) flush();
  if (!channel_.is_open() || (events & (EPOLLIN | EPOLLHUP | EPOLLERR)) == 0) return;
  if (slow_ && !waiting_.empty() && random_.percent(50)) {
    // Takes nothing for a while.
    world_.count("request: slow reading");
    channel_.want(sending());
    ring_.loop.cancel(timer_);
    timer_ = ring_.loop.after(0.001 * static_cast<double>(random_.between(1, 80)), [this] {
      timer_ = {};
      if (!channel_.is_open()) return;
      channel_.want(EPOLLIN | sending());
      read();
    });
    return;
  }
  read();
}

void Client::read() {
  if (!channel_.is_open()) return;
  std::array<char, 65536> bytes;
  const std::size_t most = slow_ ? 3000 : bytes.size();
  const ssize_t size = channel_.recv(std::span(bytes).first(most));
  if (size < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (size <= 0) {
    const Ending ending = size == 0 ? Ending::kClosed : Ending::kReset;
    if (const std::string wrong = channel_.fault(); !wrong.empty()) {
      world_.report("tls", "a client: " + wrong, waiting_.empty() ? nullptr : waiting_[0].get(),
                    "");
    }
    if (waiting_.empty()) {
      disconnect(false);
    } else {
      finish_front(ending);
    }
    return;
  }
  if (waiting_.empty()) {
    world_.report("framing", "bytes that nobody asked for", nullptr,
                  std::string(bytes.data(), static_cast<std::size_t>(size)));
    disconnect(true);
    return;
  }
  progress_ = now();
  bytes_here_ += static_cast<std::uint64_t>(size);
  reads_here_ += channel_.is_secured() ? channel_.take_reads() : 1;
  unread_ = std::string_view(bytes.data(), static_cast<std::size_t>(size));
  if (!in_.empty()) unread_ = in_.append(unread_);
  take();
  keep_unread();
  if (channel_.is_open() && leave_at_ != 0 && bytes_here_ >= leave_at_ && !waiting_.empty()) {
    world_.count("request: left during an answer");
    finish_front(Ending::kLeft);
  }
}

void Client::keep_unread() {
  if (in_.empty()) {
    in_ = unread_;
  } else {
    in_.erase(0, in_.size() - unread_.size());
  }
  unread_ = in_;
}

void Client::take() {
  while (!waiting_.empty() && channel_.is_open()) {
    if (!have_head_ && !take_head()) return;
    if (have_head_ && !take_body()) return;
  }
  if (waiting_.empty() && !unread_.empty()) {
    world_.report("framing", "bytes behind the last answer", nullptr, unread_);
    unread_ = {};
    disconnect(true);
  }
}

// False: no more can be done now.
bool Client::take_head() {
  const Request& request = *waiting_.front();
  answer_ = Answer();
  std::string error;
  const std::size_t size = read_head(unread_, answer_.head, error);
  if (size == 0) return false;
  answer_.raw = unread_.substr(0, size);
  answer_.head_at = now();
  const std::string& start = answer_.head.start;
  const bool good = start.size() >= 13 && start.starts_with("HTTP/1.1 ") && start[12] == ' ';
  answer_.status = good ? static_cast<int>(number(start.substr(9, 3)).value_or(0)) : 0;
  if (!error.empty() || answer_.status < 100) {
    world_.report("framing", "a malformed head: " + error, &request, unread_.substr(0, 4000));
    finish_front(Ending::kLeft);
    return false;
  }
  unread_.remove_prefix(size);
  if (answer_.status < 200) {
    ring_.oracle.judge_interim(request, answer_.head);
    return true;
  }
  if (request.method == "CONNECT" && answer_.status == 200) {
    hand_over();
    return false;
  }
  // RFC 9112 6.3.
  const Fields& fields = answer_.head.fields;
  const Field* length = find(fields, "Content-Length");
  if (request.method == "HEAD" || answer_.status == 204 || answer_.status == 304) {
    answer_.body = BodyReader();
  } else if (find(fields, "Transfer-Encoding") != nullptr) {
    answer_.body = BodyReader(BodyReader::Kind::kChunked);
    if (length != nullptr) {
      world_.report("framing", "Content-Length beside Transfer-Encoding", &request, answer_.raw);
    }
    if (request.http10) {
      world_.report("framing", "chunked for HTTP/1.0", &request, answer_.raw);
    }
  } else if (length != nullptr) {
    answer_.body = BodyReader(BodyReader::Kind::kLength,
                              static_cast<std::uint64_t>(number(length->value).value_or(0)));
  } else {
    answer_.body = BodyReader(BodyReader::Kind::kClose);
  }
  bool keeps = !request.http10;
  for (const std::string& member : members(fields, "Connection")) {
    if (same_name(member, "close")) keeps = false;
    if (same_name(member, "keep-alive")) keeps = true;
  }
  if (!keeps || answer_.body.kind() == BodyReader::Kind::kClose) said_close_ = true;
  // RFC 9112 9.6. An answer that comes so late was written after the drain had begun, in its
  // worker's turn.
  const double on_its_way = static_cast<double>(reads_here_ + 1) * world_.piece;
  const bool alone = !pipelined_ && !slow_;
  if (!said_close_ && alone && answer_.head_at > world_.ending_since + on_its_way) {
    world_.report("drain", "an answer does not say that the connection ends", &request,
                  answer_.raw);
  }
  have_head_ = true;
  if (!ring_.oracle.judge_head(request, answer_)) {
    finish_front(Ending::kLeft);
    return false;
  }
  return true;
}

bool Client::take_body() {
  std::string error;
  while (true) {
    std::string_view content;
    if (!answer_.body.next(unread_, content, error)) {
      world_.report("framing", error, waiting_.front().get(), answer_.raw);
      finish_front(Ending::kLeft);
      return false;
    }
    if (!content.empty() && !ring_.oracle.judge_content(*waiting_.front(), answer_, content)) {
      finish_front(Ending::kLeft);
      return false;
    }
    if (answer_.body.is_done() || unread_.empty()) break;
  }
  if (!answer_.body.is_done()) return false;
  const std::shared_ptr<Request> request = waiting_.front();
  waiting_.pop_front();
  answered_ = true;
  have_head_ = false;
  note_answered(ring_, request, answer_, take_bytes(unread_.size()));
  if (waiting_.empty()) {
    on_end();
  } else if (said_close_) {
    // The rest goes unanswered, which the client knows.
    drop_rest();
    disconnect(false);
    on_end();
  }
  return true;
}

std::uint64_t Client::take_bytes(std::uint64_t unread) {
  const std::uint64_t before = std::exchange(told_here_, bytes_here_ - unread);
  return told_here_ - before;
}

// Waiting requests get no answer any more, or not all of it.
void Client::drop_rest() {
  // By TLS the proxy knows of what was sent, and not of what that became.
  std::uint64_t bytes = channel_.is_secured() ? 0 : take_bytes(0);
  for (const auto& other : waiting_) {
    if (ring_.accounts != nullptr) ring_.accounts->note_unfinished(*other, bytes);
    bytes = 0;
    if (other->ended == 0) other->ended = now();
    --other->url->clients;
  }
  waiting_.clear();
}

// The connection is of no more use; the answer at the front has ended as it is.
void Client::finish_front(Ending ending) {
  const std::shared_ptr<Request> request = waiting_.front();
  // One that met an ending proxy was never promised an answer; nor does the proxy answer for the
  // network.
  const double since = request->started - world_.slack;
  const bool crossed = !channel_.was_heard() && (answered_ || world_.last_trouble >= since);
  const bool silent = !have_head_ && unread_.empty();
  const bool unheard = silent && (crossed || world_.last_ending >= since);
  // A reset is how HTTP/1.0 learns of a cut, or of a body that is another than its digest says, and
  // it takes with it what is on its way.
  const bool wrong = request->url->blob != nullptr && world_.last_wrong >= since;
  const bool cut =
      request->http10 && ending == Ending::kReset && (request->url->last_cut >= since || wrong);
  const Request& last = *waiting_.back();
  const bool before_tunnel = last.method == "CONNECT";
  const bool ours = ending == Ending::kLeft || unheard || cut || channel_.was_broken();
  if (ending == Ending::kLeft && ring_.on_leave) ring_.on_leave(request.get());
  request->ended = now();
  if (before_tunnel) ring_.tunnels->note_gone(last, out_.size());
  if (have_head_) {
    request->answer = summary(answer_, ending);
    if (!ours) ring_.oracle.judge_end(*request, answer_, ending);
  } else if (ours) {
    request->answer = "(left)";
  } else if (silent && answered_ && ending == Ending::kClosed && ring_.oracle.may_be_revoked()) {
    // The connection ended behind an earlier response; this request may be sent on another.
    request->answer = "(revoked)";
  } else if (ring_.oracle.may_be_cut()) {
    // Its head had been written, and a reset took it along.
    request->answer = "(cut)";
  } else {
    request->answer = "(closed without an answer)";
    world_.report("lost", "the connection ended without an answer", request.get(), unread_);
  }
  drop_rest();
  have_head_ = false;
  unread_ = {};
  disconnect(ours && leave_with_reset_);
  on_end();
}

void Client::leave(bool reset) {
  if (waiting_.empty()) return disconnect(reset);
  world_.count("request: left with all others");
  leave_with_reset_ = reset;
  finish_front(Ending::kLeft);
}

void Client::on_end() {
  // Behind the beginning of a request comes its rest, or nothing.
  if (!out_.empty()) disconnect(false);
  out_.clear();
  --ring_.active;
  schedule(random_.percent(75) ? 0 : 0.0001 * static_cast<double>(random_.below(60)));
}

void Client::check_progress(bool origin_is_busy, double bound) {
  if (waiting_.empty() || origin_is_busy || now() - progress_ < bound) return;
  world_.report("hang", "no progress for " + std::to_string(bound) + " s", waiting_.front().get(),
                have_head_ ? std::string_view(answer_.raw) : unread_);
  progress_ = now();
}

}  // namespace encore::proxyfuzz
