#include "tests/fuzz/proxy/http2_client.h"

#include <sys/epoll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>
#include <vector>

#include "tests/fuzz/proxy/asking.h"

namespace encore::proxyfuzz {
namespace {

constexpr std::uint64_t kFrameBytesMax = 16384;
constexpr std::uint32_t kNoError = 0;
constexpr std::uint32_t kInternalError = 2;
constexpr std::uint32_t kCancel = 8;
// Content of all streams that a client which has ended its side can still be sent.
constexpr std::uint32_t kEnoughWindow = 16 << 20;

std::size_t line_bytes(const Field& field) { return field.name.size() + field.value.size() + 4; }

// Each cookie may be a field of its own (RFC 9113 8.2.3).
void append_cookies(Random& random, const std::string& value, Fields& out) {
  const std::size_t semicolon = random.percent(50) ? value.find("; ") : std::string::npos;
  out.push_back({"cookie", value.substr(0, semicolon)});
  if (semicolon != std::string::npos) out.push_back({"cookie", value.substr(semicolon + 2)});
}

std::string target_of(const Request& request) {
  if (!request.own_path.empty()) return request.own_path;
  std::string out = request.spelling.empty() ? request.url->path : request.spelling;
  return request.query.empty() ? out : out + "?" + request.query;
}

// Appends the fields that name the server and the path. Returns the bytes of the request line and
// of Host.
std::size_t append_target(const Ring& ring, Random& random, const Request& request, Fields& out) {
  const bool is_tls = ring.has_tls[static_cast<std::size_t>(request.listener)];
  const std::string scheme = is_tls && !ring.absolute ? "https" : "http";
  const std::string path = target_of(request);
  // A forward proxy is asked itself by the name that its configuration has, and in no form of a URL
  // (RFC 9113 8.3.1).
  const bool asks_proxy = !request.own_path.empty() && ring.absolute;
  const std::string host = asks_proxy ? "proxy.test" : host_of(ring, *request.url);
  out.push_back({":method", request.method});
  out.push_back({":scheme", scheme});
  out.push_back({":path", path});
  const bool by_host = asks_proxy || (!ring.absolute && random.percent(20));
  if (!by_host) out.push_back({":authority", host});
  if (by_host || random.percent(10)) out.push_back({"host", host});
  const std::size_t front = ring.absolute && !by_host ? scheme.size() + 3 + host.size() : 0;
  return request.method.size() + 1 + front + path.size() + 11 + line_bytes({"host", host});
}

}  // namespace

Http2Text to_http2(const Ring& ring, Random& random, Request& request) {
  Http2Text out;
  request.http10 = false;
  std::erase_if(request.fields, [](const Field& field) { return field.name == "Connection"; });
  for (Field& field : request.fields) field.name = lower(field.name);
  if (random.percent(10)) {
    const auto priority = random.pick<std::string_view>({"u=0", "u=1, i", "u=7", "i", "u=9"});
    request.fields.push_back({"priority", std::string(priority)});
  }
  const bool has_length = find(request.fields, "content-length") != nullptr;
  // An upload may have no length; that of none may be an end of its own.
  if (has_length && random.percent(50)) {
    std::erase_if(request.fields,
                  [](const Field& field) { return field.name == "content-length"; });
  }
  const bool names_length = find(request.fields, "content-length") != nullptr;
  out.upload = {.is_there = request.body_bytes != 0 || (has_length && random.percent(30)),
                .bytes = request.body_bytes,
                .trailers = {}};
  if (out.upload.is_there && random.percent(30)) {
    out.upload.trailers.push_back({"x-trail", std::to_string(request.tag)});
  }
  request.trailers = out.upload.trailers;
  out.bytes = append_target(ring, random, request, out.fields) + 2 + request.body_bytes;
  if (out.upload.is_there && !names_length) {
    out.bytes += line_bytes({"transfer-encoding", "chunked"});
  }
  for (const Field& field : request.fields) {
    out.bytes += line_bytes(field);
    if (field.name == "cookie") {
      append_cookies(random, field.value, out.fields);
    } else {
      out.fields.push_back(field);
    }
  }
  return out;
}

Http2Client::Http2Client(Ring& ring, std::size_t number)
    : ring_(ring),
      world_(ring.world),
      random_(ring.world.seed(), 'c', number),
      asker_{.user = static_cast<int>(number % kUsers)},
      channel_(ring.loop) {
  schedule(0.001 * static_cast<double>(number));
}

Http2Client::~Http2Client() {
  ring_.loop.cancel(timer_);
  ring_.loop.cancel(pause_);
  channel_.close(Channel::Close::kLeave);
}

void Http2Client::schedule(double seconds) {
  ring_.loop.cancel(timer_);
  timer_ = ring_.loop.after(seconds, [this] {
    timer_ = {};
    begin();
  });
}

void Http2Client::connect() {
  const int buffer = slow_ ? 4096 : 0;
  const int descriptor = ring_.front == nullptr ? connect_to_loopback(ring_.proxy_port, buffer)
                                                : ring_.front->connect(random_, asker_, buffer);
  if (ring_.tls != nullptr && ring_.has_tls[static_cast<std::size_t>(asker_.listener)]) {
    Random of_layer(random_.next());
    Ssl ssl = ring_.tls->make_client(of_layer, TlsEnds::Offer::kHttp2);
    channel_.open_secured(descriptor, *this, EPOLLIN | EPOLLOUT, std::move(ssl),
                          Layer::draw(of_layer), of_layer);
    world_.count("tls: clients' connections");
  } else {
    channel_.open(descriptor, *this, EPOLLIN | EPOLLOUT);
  }
  world_.count("http2: connections");
  plan_ = Http2Wire::draw_plan(random_);
  if (half_close_) plan_.window = plan_.connection_window = kEnoughWindow;
  streams_max_ = random_.pick<std::size_t>({1, 2, 4, 8, 20});
  Http2Events& events = *this;
  wire_.emplace(plan_, Random(random_.next()), events);
  out_.clear();
  has_goaway_ = shut_down_ = broken_ = answered_ = is_over_ = may_be_revoked_ = false;
}

// How the connection is treated until it has no stream.
void Http2Client::plan_misbehaviour() {
  leave_at_ = 0;
  half_close_ = slow_ = false;
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

void Http2Client::begin() {
  if (ring_.requests_left == 0) return;
  if (ring_.paused) return schedule(0.05);
  if (!streams_.empty() && (has_goaway_ || shut_down_ || half_close_)) return;
  if (streams_.empty()) {
    if (channel_.is_open() && (has_goaway_ || shut_down_ || broken_ || random_.percent(3))) {
      if (ring_.on_leave && !has_goaway_) ring_.on_leave(nullptr);
      channel_.close(Channel::Close::kLeave);
    }
    plan_misbehaviour();
    // Windows that hold all that may come are said when a connection begins.
    if (half_close_ && channel_.is_open() &&
        std::min(plan_.window, plan_.connection_window) < kEnoughWindow) {
      channel_.close(Channel::Close::kLeave);
    }
    if (!channel_.is_open()) connect();
    bytes_here_ = 0;
    reads_here_ = 0;
    if (channel_.is_secured()) channel_.take_reads();
    is_active_ = true;
    ++ring_.active;
  }
  ask_at_once();
}

// Some requests that go out together.
void Http2Client::ask_at_once() {
  const std::size_t room = streams_max_ - std::min(streams_max_, streams_.size());
  std::size_t batch = random_.percent(30) ? random_.between(1, 8) : 1;
  for (batch = std::min(std::max<std::size_t>(room, streams_.empty() ? 1 : 0), batch);
       batch > 0 && ring_.requests_left > 0; --batch) {
    add();
  }
  if (streams_.size() > 1) world_.count("http2: requests beside others", streams_.size() - 1);
  if (random_.percent(2)) wire_->ping();
  if (random_.percent(1) && !half_close_) {
    plan_.window = random_.pick<std::uint32_t>({1200, 65535, 1 << 20});
    wire_->set_window(plan_.window);
  }
  std::string together;
  for (const auto& [id, stream] : streams_) {
    together +=
        " " + stream.request->method + " " + stream.request->url->path + stream.request->own_path;
  }
  together += half_close_ ? ", half-closed" : slow_ ? ", slow" : "";
  for (const auto& [id, stream] : streams_) {
    if (stream.request->batch.empty()) stream.request->batch = together;
  }
  flush();
  if (channel_.is_open() && leave_at_ == 1 && random_.percent(50)) {
    world_.count("request: left before an answer");
    return finish_all(Ending::kLeft);
  }
  // Others may follow while these are in progress.
  if (!streams_.empty() && streams_.size() < streams_max_ && random_.percent(50)) {
    schedule(0.0001 * static_cast<double>(random_.below(60)));
  }
  if (wire_->is_uploading()) pause();
  if (streams_.empty()) on_stream_end();
}

void Http2Client::add() {
  const std::shared_ptr<Request> request = compose(ring_, random_, asker_);
  const Http2Text text = to_http2(ring_, random_, *request);
  const std::int32_t id = wire_->request(text.fields, text.upload);
  request->stream = id;
  note_begun(ring_, request, now(), {.bytes = text.bytes, .may_be_left = text.upload.is_there});
  world_.count("http2: requests");
  Stream& stream = streams_[id];
  stream.request = request;
  stream.progress = request->started;
  if (!ring_.misbehave) return;
  stream.holds = random_.percent(8);
  if (random_.percent(3)) stream.leave_at = random_.pick<std::uint64_t>({1, 300, 5000, 30000});
  if (random_.percent(1)) reset_stream(streams_.find(id));
}

void Http2Client::flush() {
  if (!channel_.is_open() || shut_down_) return;
  if (!broken_) wire_->take_output(out_);
  while (!out_.empty() && !broken_) {
    const ssize_t size = channel_.send(out_);
    if (size < 0 && (errno == EAGAIN || errno == ENOTCONN)) {
      channel_.want((slow_ && pause_.second != 0 ? 0U : EPOLLIN) | EPOLLOUT);
      return;
    }
    if (size < 0) {
      broken_ = true;  // answers from before the end are still to be read
      out_.clear();
      break;
    }
    out_.erase(0, static_cast<std::size_t>(size));
  }
  channel_.want(slow_ && pause_.second != 0 ? 0U : EPOLLIN);
  shut_down_if_sent();
}

void Http2Client::shut_down_if_sent() {
  if (!half_close_ || streams_.empty() || broken_ || wire_->is_uploading()) return;
  world_.count("request: half-closed");
  channel_.shut_down();
  half_close_ = false;
  shut_down_ = true;
}

void Http2Client::on_ready(std::uint32_t events) {
  if (channel_.is_open() && (events & EPOLLOUT) != 0) flush();
  if (!channel_.is_open() || (events & (EPOLLIN | EPOLLHUP | EPOLLERR)) == 0) return;
  if (slow_ && !streams_.empty() && random_.percent(50)) {
    // Takes nothing for a while.
    world_.count("request: slow reading");
    channel_.want(out_.empty() ? 0U : EPOLLOUT);
    return pause();
  }
  read();
}

// Held windows, uploads that have stopped, and a slow reader go on some time later.
void Http2Client::pause() {
  if (pause_.second != 0) return;
  pause_ = ring_.loop.after(0.001 * static_cast<double>(random_.between(1, 80)), [this] {
    pause_ = {};
    if (!channel_.is_open()) return;
    wire_->resume_uploads();
    for (auto& [id, stream] : streams_) consume(id, stream);
    if (wire_->is_uploading()) pause();
    flush();
    if (channel_.is_open() && slow_) read();
  });
}

void Http2Client::consume(std::int32_t id, Stream& stream) {
  if (stream.unconsumed == 0) return;
  wire_->consume_stream(id, std::exchange(stream.unconsumed, 0));
}

void Http2Client::read() {
  if (!channel_.is_open()) return;
  std::array<char, 65536> bytes;
  const std::size_t most = slow_ ? 3000 : bytes.size();
  const ssize_t size = channel_.recv(std::span(bytes).first(most));
  if (size < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (size <= 0) {
    if (const std::string wrong = channel_.fault(); !wrong.empty()) {
      world_.report("tls", "a client: " + wrong,
                    streams_.empty() ? nullptr : streams_.begin()->second.request.get(), "");
    }
    return finish_all(size == 0 ? Ending::kClosed : Ending::kReset);
  }
  if (channel_.is_secured() && channel_.protocol() != "h2") on_fault("h2 was not chosen");
  bytes_here_ += static_cast<std::uint64_t>(size);
  reads_here_ += channel_.is_secured() ? channel_.take_reads() : 1;
  is_reading_ = true;
  const bool goes_on = wire_->receive({bytes.data(), static_cast<std::size_t>(size)});
  is_reading_ = false;
  if (!goes_on || std::exchange(is_over_, false)) return finish_all(Ending::kLeft);
  go_on();
}

void Http2Client::go_on() {
  bool holds = false;
  for (auto& [id, stream] : streams_) {
    if (stream.holds && stream.unconsumed != 0) {
      holds = true;
    } else {
      consume(id, stream);
    }
  }
  if (holds) pause();
  if (leave_at_ != 0 && bytes_here_ >= leave_at_ && !streams_.empty()) {
    world_.count("request: left during an answer");
    return finish_all(Ending::kLeft);
  }
  for (auto at = streams_.begin(); at != streams_.end();) {
    const auto each = at++;
    const std::uint64_t wanted = each->second.leave_at;
    if (wanted != 0 && wire_->bytes_of(each->first) >= wanted) reset_stream(each);
  }
  flush();
  if (streams_.empty()) on_stream_end();
}

void Http2Client::on_head(std::int32_t id, int status, Fields fields) {
  const auto at = streams_.find(id);
  if (at == streams_.end()) return;
  Stream& stream = at->second;
  const Request& request = *stream.request;
  stream.progress = now();
  Answer& answer = stream.answer;
  answer = Answer();
  answer.status = status;
  answer.head_at = now();
  answer.head.start = "HTTP/2 " + std::to_string(status);
  answer.head.fields = std::move(fields);
  answer.raw = answer.head.start + "\r\n";
  for (const Field& field : answer.head.fields) append_line(field, answer.raw);
  if (status < 200) return ring_.oracle.judge_interim(request, answer.head);
  const bool has_none = request.method == "HEAD" || status == 204 || status == 304;
  answer.body = BodyReader(has_none ? BodyReader::Kind::kNone : BodyReader::Kind::kFrames);
  judge_drain(stream);
  stream.has_head = true;
  if (!ring_.oracle.judge_head(request, answer)) is_over_ = true;
}

// RFC 9113 6.8. An answer that comes so late was written after the drain had begun, in its worker's
// turn.
void Http2Client::judge_drain(const Stream& stream) {
  const double on_its_way = static_cast<double>(reads_here_ + 1) * world_.piece;
  if (has_goaway_ || streams_.size() > 1 || slow_ ||
      stream.answer.head_at <= world_.ending_since + on_its_way) {
    return;
  }
  world_.report("drain", "an answer comes, and no GOAWAY in front of it", stream.request.get(),
                stream.answer.raw);
}

void Http2Client::on_content(std::int32_t id, std::string_view bytes) {
  wire_->consume_connection(bytes.size());
  const auto at = streams_.find(id);
  if (at == streams_.end() || is_over_) return;
  Stream& stream = at->second;
  stream.progress = now();
  stream.unconsumed += bytes.size();
  if (!ring_.oracle.judge_content(*stream.request, stream.answer, bytes)) is_over_ = true;
}

void Http2Client::on_end(std::int32_t id, Fields trailers) {
  const auto at = streams_.find(id);
  if (at == streams_.end() || is_over_) return;
  Stream& stream = at->second;
  const std::shared_ptr<Request> request = stream.request;
  answered_ = true;
  if (stream.answer.body.kind() == BodyReader::Kind::kFrames) {
    stream.answer.body.end(std::move(trailers));
  }
  // No frame has more than these (RFC 9113 4.2): cuts are by windows alone.
  const bool fits = stream.answer.content_bytes <= kFrameBytesMax;
  const std::uint64_t frames = std::max<std::uint64_t>(wire_->frames_of(id), 1);
  note_answered(ring_, request, stream.answer, wire_->bytes_of(id), fits ? frames - 1 : 0);
  consume(id, stream);
  streams_.erase(at);
  wire_->drop(id);
}

void Http2Client::on_reset(std::int32_t id, std::uint32_t code) {
  const auto at = streams_.find(id);
  if (at == streams_.end() || is_over_) return;
  if (code != kNoError && code != kInternalError && code != kCancel) {
    world_.report("framing", "a stream is reset with the code " + std::to_string(code),
                  at->second.request.get(), at->second.answer.raw);
  }
  finish(at, Why::kReset, Ending::kReset);
}

void Http2Client::on_goaway(std::int32_t last, std::uint32_t code, std::string_view why) {
  has_goaway_ = true;
  world_.count("http2: GOAWAY");
  if (code != kNoError) {
    on_fault("the proxy ends the connection with the code " + std::to_string(code) + ", " +
             std::string(why));
    return;
  }
  for (auto at = streams_.upper_bound(last); at != streams_.end();) {
    const auto each = at++;
    world_.count("http2: requests that were refused");
    finish(each, Why::kRefused, Ending::kReset);
  }
}

void Http2Client::on_fault(const std::string& what) {
  const Request* const request =
      streams_.empty() ? nullptr : streams_.begin()->second.request.get();
  world_.report("framing", what, request, "");
  is_over_ = true;
}

void Http2Client::reset_stream(Streams::iterator at) {
  world_.count("http2: streams that their clients have reset");
  wire_->reset(at->first);
  finish(at, Why::kLeft, Ending::kLeft);
}

// Why a stream without an answer is no finding; empty: it is one.
std::string Http2Client::why_silent(const Stream& stream, Why why, Ending ending, bool crossed) {
  const double since = stream.request->started - world_.slack;
  if (why == Why::kLeft) return "(left)";
  if (why == Why::kRefused) return "(refused)";
  if (why == Why::kEnded && (crossed || world_.last_ending >= since)) return "(left)";
  if (channel_.was_broken()) return "(left)";
  if (why == Why::kEnded && answered_ && ending == Ending::kClosed &&
      (may_be_revoked_ || ring_.oracle.may_be_revoked())) {
    may_be_revoked_ = true;  // with all others on the connection
    return "(revoked)";
  }
  return ring_.oracle.may_be_cut() ? "(cut)" : "";
}

void Http2Client::finish(Streams::iterator at, Why why, Ending ending) {
  const std::int32_t id = at->first;
  Stream& stream = at->second;
  const std::shared_ptr<Request> request = stream.request;
  const double since = request->started - world_.slack;
  const bool crossed = !channel_.was_heard() && (answered_ || world_.last_trouble >= since);
  if (why == Why::kLeft && ring_.on_leave) ring_.on_leave(request.get());
  request->ended = now();
  if (stream.has_head) {
    request->answer = summary(stream.answer, ending);
    if (why != Why::kLeft && !channel_.was_broken()) {
      ring_.oracle.judge_end(*request, stream.answer, ending);
    }
  } else {
    request->answer = why_silent(stream, why, ending, crossed);
    if (request->answer.empty()) {
      request->answer = "(ended without an answer)";
      world_.report("lost",
                    why == Why::kReset ? "the stream was reset without an answer"
                                       : "the connection ended without an answer",
                    request.get(), "");
    }
  }
  if (ring_.accounts != nullptr) {
    ring_.accounts->note_unfinished(*request, wire_->bytes_of(id));
  }
  --request->url->clients;
  streams_.erase(at);
  wire_->drop(id);
}

// The connection is of no more use.
void Http2Client::finish_all(Ending ending) {
  const Why why = ending == Ending::kLeft ? Why::kLeft : Why::kEnded;
  while (!streams_.empty()) finish(streams_.begin(), why, ending);
  channel_.close(why == Why::kLeft && leave_with_reset_ ? Channel::Close::kReset
                                                        : Channel::Close::kLeave);
  out_.clear();
  on_stream_end();
}

void Http2Client::leave(bool reset) {
  leave_with_reset_ = reset;
  if (!streams_.empty()) world_.count("request: left with all others");
  if (channel_.is_open()) finish_all(Ending::kLeft);
}

// No stream is left.
void Http2Client::on_stream_end() {
  if (!std::exchange(is_active_, false)) return;
  --ring_.active;
  schedule(random_.percent(75) ? 0 : 0.0001 * static_cast<double>(random_.below(60)));
}

void Http2Client::check_progress(bool origin_is_busy, double bound) {
  if (origin_is_busy) return;
  for (auto& [id, stream] : streams_) {
    if (now() - stream.progress < bound) continue;
    world_.report("hang", "no progress for " + std::to_string(bound) + " s", stream.request.get(),
                  stream.answer.raw);
    stream.progress = now();
  }
}

double draw_http2(std::uint64_t seed) {
  return Random(seed, '2', 0xffff).pick({0.0, 30.0, 70.0, 100.0});
}

std::unique_ptr<AnyClient> make_client(Ring& ring, std::size_t number) {
  Random random(ring.world.seed(), '2', number);
  if (random.percent(ring.http2)) return std::make_unique<Http2Client>(ring, number);
  return std::make_unique<Client>(ring, number);
}

}  // namespace encore::proxyfuzz
