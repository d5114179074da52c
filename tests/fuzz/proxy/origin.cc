#include "tests/fuzz/proxy/origin.h"

#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <optional>

#include "tests/fuzz/proxy/arrived.h"

namespace encore::proxyfuzz {
namespace {

// A body that is read into room for no more than its rest.
constexpr std::size_t kLargeBytes = 16384;
constexpr double kBehindHead = 0.02;  // seconds
constexpr std::size_t kReadBytes = 65536;

std::string describe(const Event& event, std::string_view end) {
  std::array<char, 400> text;
  const int size = std::snprintf(
      text.data(), text.size(),
      "%.3f origin: asked at %.3f by tag %llu (%s): #%llu %d content %llu%s", event.decided,
      event.received, static_cast<unsigned long long>(event.request ? event.request->tag : 0),
      event.method.c_str(), static_cast<unsigned long long>(event.serial), event.status,
      static_cast<unsigned long long>(event.content ? event.content->name.number : 0),
      std::string(end).c_str());
  std::string out(text.data(), static_cast<std::size_t>(size));
  for (const std::string_view name :
       {"Cache-Control", "Expires", "Vary", "ETag", "Last-Modified", "Set-Cookie", "Age"}) {
    for (const Field& field : event.fields) {
      if (same_name(field.name, name)) out += "; " + field.name + ": " + field.value;
    }
  }
  return out;
}

}  // namespace

class OriginConnection final : public Handler {
 public:
  OriginConnection(Origin& origin, std::uint64_t number, std::unique_ptr<Line> line)
      : origin_(origin), world_(origin.world_), number_(number), line_(std::move(line)) {}
  ~OriginConnection() override {
    origin_.loop_.cancel(timer_);
    origin_.loop_.cancel(break_);
    set_busy(false);
    set_spoiled(false);
    line_->close(Line::Close::kLeave);
  }

  // It is a stream of HTTP/2, where names of fields are in lower case.
  void set_stream() { is_stream_ = true; }
  // That has come already.
  void take_begun(const std::string& bytes) {
    in_ = bytes;
    take();
  }

  // The proxy has read all of the last answer, or wants no more of it.
  void set_heard() {
    if (answered_ != 0) world_.note_heard(answered_);
    answered_ = 0;
  }
  void note_heard() {
    // OpenSSL may hold bytes that it has read and not decrypted.
    if (!busy_ && !line_->is_secured() && line_->was_heard()) set_heard();
  }

  void break_handshake(Random& random) {
    const double seconds = 0.001 * static_cast<double>(random.between(1, 60));
    break_ = origin_.loop_.after(seconds, [this, reset = random.percent(50)] {
      break_ = {};
      world_.count("tls: an origin broke a handshake");
      world_.last_trouble = std::max(world_.last_trouble, now() + world_.passed_by);
      end(reset);
    });
  }

  // The server has failed. An answer that has begun ends where it is; what has not is asked of
  // another where that may be.
  void die() {
    std::array<char, kReadBytes> bytes;
    const ssize_t size = line_->recv(bytes);
    if (size > 0) in_.append(bytes.data(), static_cast<std::size_t>(size));
    if (!in_.empty()) note_failed_request();
    bool reset = false;
    if (busy_ && cause_ != nullptr) {
      cause_->met_failure = true;
      reset = number_ % 2 == 0;
      if (reply_.event != nullptr && head_left_.size() != reply_.head.size()) {
        reply_.event->cut = true;
        note_cut();
        // An end would be that of an answer that lasts until then.
        reset = true;
      }
    }
    end(reset);
  }

  void on_ready(std::uint32_t events) override {
    if (line_->is_open() && (events & EPOLLOUT) != 0) flush();
    if (line_->is_open() && (events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0) read();
  }

 private:
  void set_busy(bool busy) {
    if (busy == busy_) return;
    busy_ = busy;
    if (busy) {
      ++origin_.busy_;
    } else {
      --origin_.busy_;
    }
  }

  void set_spoiled(bool spoiled) {
    if (spoiled == spoiled_) return;
    spoiled_ = spoiled;
    if (spoiled) {
      ++world_.spoiled;
    } else {
      --world_.spoiled;
      world_.last_spoiled = now();
    }
  }

  // The proxy gets nothing from an incomplete record.
  void note_cut() {
    if (cause_ != nullptr && world_.on_origin_gone) world_.on_origin_gone(*cause_);
    // A client with a part of it asks for the rest.
    if (url_->random.percent(30)) world_.come_back_to(*url_);
    url_->last_cut = now();
    if (line_->is_secured()) url_->last_drop = now();
  }

  void end(bool reset) { end(reset ? Line::Close::kReset : Line::Close::kLeave); }

  void end(Line::Close how) {
    if (!line_->is_open()) return;
    origin_.loop_.cancel(timer_);
    origin_.loop_.cancel(break_);
    line_->close(how);
    set_busy(false);
    set_spoiled(false);
    const auto found = origin_.connections_.find(number_);
    origin_.loop_.dispose(std::move(found->second));
    origin_.connections_.erase(found);
  }

  void read() {
    std::array<char, kReadBytes> bytes;
    while (true) {
      const ssize_t size = line_->recv(bytes);
      if (size < 0 && (errno == EAGAIN || errno == EINTR)) break;
      if (size <= 0) {
        if (const std::string wrong = line_->fault(); !wrong.empty()) {
          world_.report("tls", "an origin: " + wrong, cause_.get(), "");
        }
        if (busy_) world_.count("origin: the proxy left during an answer");
        set_heard();
        end(false);
        return;
      }
      in_.append(bytes.data(), static_cast<std::size_t>(size));
      if (!line_->is_secured() && static_cast<std::size_t>(size) < bytes.size()) break;
    }
    if (origin_.mood_ == Mood::kWell) {
      take();
    } else if (!in_.empty()) {
      fail();
    }
  }

  std::shared_ptr<Request> cause_of(std::string_view bytes) const {
    // From the second letter on: names of HTTP/2 are in lower case.
    constexpr std::string_view kName = "raceparent: ";
    const std::size_t at = bytes.find(kName);
    if (at == std::string_view::npos) return nullptr;
    const std::string_view value = bytes.substr(at + kName.size());
    return world_.request(
        static_cast<std::uint64_t>(number(value.substr(0, value.find('\r'))).value_or(0)));
  }

  // The part of a request that has arrived counts as sent, whether the rest does or not.
  void note_failed_request() {
    world_.last_failure = now();
    const auto cause = cause_of(in_);
    if (cause == nullptr || is_noted_) return;
    is_noted_ = true;
    if (cause->method == "POST" && cause->asked_origin != 0) {
      world_.report("origin-request", "a POST was sent twice", cause.get(), in_);
    }
    ++cause->asked_origin;
    cause->met_failure = true;
    world_.remember(*cause->url, [time = now(), tag = cause->tag, mood = origin_.mood_] {
      return std::to_string(time) + " a server failed tag " + std::to_string(tag) + ", mood " +
             std::to_string(static_cast<int>(mood));
    });
  }

  void fail() {
    note_failed_request();
    world_.count("origin: a server failed");
    if (origin_.mood_ == Mood::kSilent) {
      in_.clear();
      return;
    }
    if (origin_.mood_ == Mood::kDying && number_ % 3 == 0) {
      // An answer has begun: nobody may ask for another.
      (void)line_->send("HTTP/1.1 20", {});
      const auto cause = cause_of(in_);
      if (cause != nullptr) cause->url->last_drop = now();
      end(false);
      return;
    }
    end(origin_.mood_ == Mood::kResetting);
  }

  void take() {
    if (!have_head_) {
      std::string error;
      head_ = {};
      const std::size_t size = read_head(in_, head_, error);
      if (!error.empty()) {
        world_.report("origin-request", "a malformed request: " + error, nullptr, in_);
        end(true);
        return;
      }
      if (size == 0) return;
      if (busy_ && !leave_out_surplus()) {
        world_.report("origin-request", "a request before the last one was answered", nullptr, in_);
      }
      in_.erase(0, size);
      have_head_ = true;
      body_.clear();
      received_ = now();
      if (find(head_.fields, "Transfer-Encoding") != nullptr) {
        reader_ = BodyReader(BodyReader::Kind::kChunked);
      } else if (const Field* length = find(head_.fields, "Content-Length")) {
        reader_ = BodyReader(BodyReader::Kind::kLength,
                             static_cast<std::uint64_t>(number(length->value).value_or(0)));
      } else {
        reader_ = BodyReader();
      }
    }
    std::string_view rest = in_;
    std::string_view content;
    std::string error;
    while (!reader_.is_done() && !rest.empty()) {
      if (!reader_.next(rest, content, error)) {
        world_.report("origin-request", "a malformed request body: " + error, nullptr, in_);
        end(true);
        return;
      }
      body_ += content;
    }
    in_.erase(0, in_.size() - rest.size());
    if (!reader_.is_done()) return;
    have_head_ = false;
    on_request();
  }

  // True if the answer itself is all sent. Bytes that were still to come behind it do not come
  // then; as long as none of them was sent, nobody can know of them.
  bool leave_out_surplus() {
    if (reply_.event == nullptr || reply_.surplus == 0 || !head_left_.empty() ||
        body_left_.size() > reply_.surplus) {
      return false;
    }
    origin_.loop_.cancel(timer_);
    timer_ = {};
    reply_.event = nullptr;
    set_busy(false);
    if (body_left_.size() == reply_.surplus) {
      world_.count("origin: a request came before a surplus");
      set_spoiled(false);
    }
    body_left_ = {};
    due_ = 0;
    pieces_left_ = 0;
    return true;
  }

  void answer_check() {
    static constexpr std::string_view kWell = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
    (void)line_->send(kWell, {});
  }

  void on_request() {
    if (head_.start == "GET /health HTTP/1.1") return answer_check();
    const std::string method = head_.start.substr(0, head_.start.find(' '));
    const Field* tag = find(head_.fields, "Traceparent");
    const auto cause =
        tag == nullptr ? nullptr
                       : world_.request(static_cast<std::uint64_t>(number(tag->value).value_or(0)));
    Url* const url = cause == nullptr ? nullptr : cause->url;
    if (url == nullptr || world_.find_url(url->path) != url) {
      // A URL that is long gone may still be fetched in the background.
      if (tag == nullptr)
        world_.report("origin-request", "no such request", nullptr, text_of(head_));
      end(true);
      return;
    }
    if (is_stream_) take_names(*cause);
    set_heard();
    const ArrivedRequest arrived(world_, head_, body_);
    arrived.check(*cause, method);
    if (reader_.kind() == BodyReader::Kind::kChunked) {
      arrived.check_trailers(*cause, reader_.trailers());
    }
    ++cause->asked_origin;
    ++requests_here_;
    cause_ = cause;
    world_.count("origin: " + method);
    set_busy(true);
    if (spoiled_) {
      // RFC 9112 6.3: what is behind a message is not a part of it, nor the answer to another.
      if (line_->had_read_all()) {
        world_.report("surplus",
                      "a connection is used again that had more than an answer: " + spoiled_by_,
                      cause.get(), text_of(head_));
      }
      world_.count("origin: a request has crossed a surplus");
      drop(*url, true);
      return;
    }
    Random& random = url->random;
    if (!world_.has_servers && random.percent(url->character.drop)) {
      drop(*url, random.percent(50));
      return;
    }
    double delay = 0;
    if (random.percent(url->character.slow_head)) {
      delay = 0.001 * static_cast<double>(random.pick<std::uint64_t>({1, 3, 10, 30, 150}));
    }
    timer_ = origin_.loop_.after(delay, [this, url, method, cause] {
      timer_ = {};
      answer(*url, method, cause);
    });
  }

  // As its client, or the rule that has added them, wrote them.
  void take_names(const Request& cause) {
    for (Field& field : head_.fields) {
      const Field* const sent = find(cause.fields, field.name);
      if (sent != nullptr) field.name = sent->name;
      if (cause.rule == nullptr) continue;
      for (const Fields* const lines : {&cause.rule->request_set, &cause.rule->request_add}) {
        const Field* const line = find(*lines, field.name);
        if (line != nullptr && line->value == field.value) field.name = line->name;
      }
    }
  }

  void drop(Url& url, bool reset) {
    world_.count("origin: dropped without an answer");
    if (requests_here_ > 1) {
      ++cause_->dropped_kept;
      world_.count("origin: dropped a kept connection");
    }
    if (world_.on_origin_gone) world_.on_origin_gone(*cause_);
    url.last_drop = now();
    world_.remember(url, [time = now()] { return std::to_string(time) + " origin: dropped"; });
    end(reset);
  }

  void answer(Url& url, const std::string& method, const std::shared_ptr<Request>& cause) {
    const auto taken = ArrivedRequest(world_, head_, body_).taken_offer(*cause);
    reply_ = origin_.author_.write(url, method, head_.fields, cause, received_,
                                   taken ? &*taken : nullptr);
    url_ = &url;
    const Event& event = *reply_.event;
    answered_ = event.serial;
    world_.count("origin: status " + std::to_string(event.status));
    if (event.cut) world_.count("origin: cut");
    world_.remember(url, [&event] { return describe(event, event.cut ? ", cut" : ""); });
    if (reply_.surplus != 0) {
      set_spoiled(true);
      spoiled_by_ = "#" + std::to_string(event.serial) + " to a " + method + ", " +
                    std::to_string(event.status) + ", " +
                    std::to_string(reply_.body.size() - reply_.surplus) + " bytes and " +
                    std::to_string(reply_.surplus) +
                    " more, in pieces: " + std::to_string(reply_.pieces);
      world_.count("origin: more than the answer");
    }
    head_left_ = reply_.head;
    if (!reply_.interim.empty()) head_left_ = reply_.head.insert(0, reply_.interim);
    body_left_ = reply_.body;
    pieces_left_ = body_left_.empty() ? 1 : reply_.pieces;
    if (pieces_left_ > 1 && method == "GET" && event.status == 200) {
      world_.note_slow_body(url, now() + reply_.pause * static_cast<double>(pieces_left_));
    }
    if (reply_.surplus == 0 || body_left_.size() < kLargeBytes) return next_piece();
    // All at the same time, behind the head: the last read takes no more than the body.
    pieces_left_ = 1;
    reply_.pause = kBehindHead;
    flush();
  }

  void next_piece() {
    // The part that was due of the last piece has been sent.
    due_ = pieces_left_ <= 1 ? body_left_.size() : body_left_.size() / pieces_left_;
    --pieces_left_;
    flush();
  }

  void flush() {
    while (!head_left_.empty() || due_ != 0) {
      const ssize_t size = line_->send(head_left_, body_left_.substr(0, due_));
      if (size < 0 && errno == EAGAIN) {
        line_->want(EPOLLIN | EPOLLOUT);
        return;
      }
      if (size <= 0) {
        if (url_ != nullptr) note_cut();
        end(false);
        return;
      }
      const std::size_t of_head = std::min(head_left_.size(), static_cast<std::size_t>(size));
      head_left_.remove_prefix(of_head);
      body_left_.remove_prefix(static_cast<std::size_t>(size) - of_head);
      due_ -= static_cast<std::size_t>(size) - of_head;
    }
    line_->want(EPOLLIN | (line_->has_sent_all() ? 0U : EPOLLOUT));
    if (!busy_ || timer_.second != 0 || reply_.event == nullptr) return;
    if (pieces_left_ > 0) {
      timer_ = origin_.loop_.after(reply_.pause, [this] {
        timer_ = {};
        next_piece();
      });
      return;
    }
    const bool is_whole = !reply_.event->cut;
    const bool ends = reply_.end != Reply::End::kKeep;
    // Under TLS a part may wait to be sent: until then the answer is in progress.
    if (!(ends && is_whole ? line_->say_end() : line_->has_sent_all())) {
      return line_->want(EPOLLIN | EPOLLOUT);
    }
    if (!is_whole) note_cut();
    reply_.event = nullptr;
    set_busy(false);
    if (!ends) return;
    end(reply_.end == Reply::End::kReset ? Line::Close::kCut : Line::Close::kLeave);
  }

  Origin& origin_;
  World& world_;
  std::uint64_t number_;
  std::unique_ptr<Line> line_;
  bool is_stream_ = false;
  bool busy_ = false;
  std::string in_;
  Head head_;
  bool have_head_ = false;
  BodyReader reader_;
  std::string body_;
  double received_ = 0;
  Reply reply_;
  Url* url_ = nullptr;
  std::shared_ptr<Request> cause_;
  int requests_here_ = 0;
  bool is_noted_ = false;       // a request that was failed has been seen
  std::string_view head_left_;  // to be sent of the reply's
  std::string_view body_left_;
  std::size_t due_ = 0;  // bytes of it, now
  std::size_t pieces_left_ = 0;
  bool spoiled_ = false;  // more than an answer was sent
  std::string spoiled_by_;
  std::uint64_t answered_ = 0;  // the last event, as long as it is not heard
  Loop::Timer timer_{};
  // The end of a handshake that breaks: a request may be there before, for a session that is taken
  // up takes few bytes.
  Loop::Timer break_{};
};

Origin::Origin(Loop& loop, World& world, TlsEnds* tls, const Http2Server::Plan* http2)
    : loop_(loop), world_(world), tls_(tls), author_(world), listener_(listen_on_loopback(port_)) {
  if (http2 != nullptr) http2_ = *http2;
  loop_.add(listener_, *this, EPOLLIN);
}

Origin::~Origin() {
  servers_.clear();
  connections_.clear();
  loop_.remove(listener_);
  ::close(listener_);
}

void Origin::set_mood(Mood mood) {
  mood_ = mood;
  if (mood == Mood::kWell) return;
  world_.last_failure = now();
  std::vector<OriginConnection*> all;
  for (const auto& [number, connection] : connections_) all.push_back(connection.get());
  for (OriginConnection* const connection : all) connection->die();
}

void Origin::note_heard() {
  for (const auto& [number, connection] : connections_) connection->note_heard();
}

void Origin::on_ready(std::uint32_t) {
  while (true) {
    const int descriptor = accept_connection(listener_);
    if (descriptor < 0) return;
    accept(descriptor);
  }
}

void Origin::accept(int descriptor) {
  const std::uint64_t number = ++connections_made_;
  Random of_layer(world_.seed(), 'o', number);
  Ssl ssl = tls_ == nullptr ? Ssl() : tls_->make_server(of_layer);
  Layer layer = tls_ == nullptr ? Layer() : Layer::draw(of_layer);
  const bool breaks = tls_ != nullptr && of_layer.percent(world_.broken_handshakes);
  if (breaks) layer.stops_at = of_layer.below(150);
  auto made = std::make_unique<Channel>(loop_);
  Channel& channel = *made;
  const auto open = [&](Handler& handler) {
    if (tls_ == nullptr) return channel.open(descriptor, handler, EPOLLIN);
    channel.open_secured(descriptor, handler, EPOLLIN, std::move(ssl), layer, of_layer);
    world_.count("tls: origins' connections");
  };
  if (http2_ && !breaks) {
    Http2ServerOwner& owner = *this;
    auto server = std::make_unique<Http2Server>(*http2_, Random(world_.seed(), '5', number), loop_,
                                                std::move(made), owner);
    open(*server);
    servers_.push_back(std::move(server));
    return;
  }
  auto connection = std::make_unique<OriginConnection>(
      *this, number, std::make_unique<ChannelLine>(std::move(made)));
  OriginConnection& at = *connection;
  connections_[number] = std::move(connection);
  open(at);
  if (breaks) at.break_handshake(of_layer);
}

// --- over HTTP/2 ---

void Origin::on_line(std::unique_ptr<Http2Line> line) {
  const std::uint64_t number = ++connections_made_;
  Http2Line& at = *line;
  auto connection = std::make_unique<OriginConnection>(*this, number, std::move(line));
  connection->set_stream();
  at.set_handler(*connection);
  connections_[number] = std::move(connection);
  world_.count("http2 origin: requests");
}

void Origin::on_other(std::unique_ptr<Channel> channel, const std::string& bytes) {
  const std::uint64_t number = ++connections_made_;
  Channel& at = *channel;
  auto connection = std::make_unique<OriginConnection>(
      *this, number, std::make_unique<ChannelLine>(std::move(channel)));
  OriginConnection& made = *connection;
  at.set_handler(made);
  connections_[number] = std::move(connection);
  made.take_begun(bytes);
}

void Origin::on_refused(const Fields& fields) {
  const Field* const tag = find(fields, "Traceparent");
  if (tag == nullptr) return on_fault("a request without its tag");
  const auto cause = world_.request(static_cast<std::uint64_t>(number(tag->value).value_or(0)));
  if (cause != nullptr) cause->url->last_drop = now();
}

void Origin::on_trouble() {
  world_.last_trouble = std::max(world_.last_trouble, now() + world_.way);
}

void Origin::on_fault(const std::string& what) { world_.report("origin-http2", what, nullptr, ""); }

void Origin::count(std::string_view what) { world_.count(what); }

void Origin::on_gone(Http2Server& server) {
  const auto found =
      std::ranges::find(servers_, &server, [](const auto& each) { return each.get(); });
  if (found == servers_.end()) return;
  loop_.dispose(std::move(*found));
  servers_.erase(found);
}

}  // namespace encore::proxyfuzz
