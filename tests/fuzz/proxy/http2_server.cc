#include "tests/fuzz/proxy/http2_server.h"

#include <sys/epoll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>
#include <vector>

#include "tests/fuzz/proxy/http2_fields.h"

namespace encore::proxyfuzz {
namespace {

constexpr std::string_view kPreface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
// From the first GOAWAY, which refuses nothing, to the last.
constexpr double kGoawaySeconds = 0.5;

// The fields of a connection are none of a stream's (RFC 9113 8.2.2).
Fields without_hops(const Fields& fields) {
  const std::vector<std::string> named = members(fields, "Connection");
  Fields out;
  for (const Field& field : fields) {
    const auto is_it = [&](const std::string& name) { return same_name(name, field.name); };
    if (same_name(field.name, "Connection") || same_name(field.name, "Transfer-Encoding") ||
        std::ranges::any_of(named, is_it)) {
      continue;
    }
    out.push_back({lower(field.name), field.value});
  }
  return out;
}

// Cookies come in crumbs (RFC 9113 8.2.3).
void add_field(Fields& fields, std::string_view name, std::string_view value) {
  if (name == "cookie") {
    for (Field& field : fields) {
      if (field.name != "Cookie") continue;
      field.value += "; " + std::string(value);
      return;
    }
  }
  const bool is_pseudo = name.starts_with(':');
  fields.push_back({is_pseudo ? std::string(name) : usual_name(name), std::string(value)});
}

std::string value_of(const Fields& fields, std::string_view name) {
  const Field* const found = find(fields, name);
  return found == nullptr ? std::string() : found->value;
}

void append_chunk(std::string_view bytes, std::string& out) {
  std::array<char, 24> line;
  const int size = std::snprintf(line.data(), line.size(), "%zx\r\n", bytes.size());
  out.append(line.data(), static_cast<std::size_t>(size));
  out += bytes;
  out += "\r\n";
}

}  // namespace

// Callbacks for nghttp2.
struct Http2ServerCallbacks {
  static Http2Server& server(void* user) { return *static_cast<Http2Server*>(user); }
  static std::string_view text(const std::uint8_t* bytes, std::size_t size) {
    return {reinterpret_cast<const char*>(bytes), size};
  }

  static int on_begin_headers(nghttp2_session*, const nghttp2_frame* frame, void* user) {
    if (frame->headers.cat == NGHTTP2_HCAT_REQUEST) {
      server(user).streams_.try_emplace(frame->hd.stream_id);
    }
    return 0;
  }

  static int on_header(nghttp2_session*, const nghttp2_frame* frame, const std::uint8_t* name,
                       std::size_t name_size, const std::uint8_t* value, std::size_t value_size,
                       std::uint8_t, void* user) {
    Http2Server::Stream* const stream = server(user).stream_of(frame->hd.stream_id);
    if (stream != nullptr) {
      add_field(stream->fields, text(name, name_size), text(value, value_size));
    }
    return 0;
  }

  static int on_frame(nghttp2_session*, const nghttp2_frame* frame, void* user) {
    Http2Server& self = server(user);
    const std::int32_t id = frame->hd.stream_id;
    const bool ends = (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0;
    if (frame->hd.type == NGHTTP2_GOAWAY && frame->goaway.error_code != NGHTTP2_NO_ERROR) {
      self.owner_.on_fault(
          "the proxy ends the connection with the code " +
          std::to_string(frame->goaway.error_code) + ", " +
          std::string(text(frame->goaway.opaque_data, frame->goaway.opaque_data_len)));
    }
    if (frame->hd.type == NGHTTP2_RST_STREAM && frame->rst_stream.error_code != NGHTTP2_CANCEL &&
        frame->rst_stream.error_code != NGHTTP2_NO_ERROR) {
      self.owner_.on_fault("the proxy resets a stream with the code " +
                           std::to_string(frame->rst_stream.error_code));
    }
    Http2Server::Stream* const stream = self.stream_of(id);
    if (stream == nullptr) return 0;
    if (frame->hd.type == NGHTTP2_HEADERS) {
      if (!stream->has_head) {
        self.begin_request(id, *stream, ends);
      } else {
        self.end_request(id, *stream, std::exchange(stream->fields, {}));
      }
    } else if (frame->hd.type == NGHTTP2_DATA && ends) {
      self.end_request(id, *stream, {});
    }
    return 0;
  }

  static int on_data(nghttp2_session*, std::uint8_t, std::int32_t id, const std::uint8_t* bytes,
                     std::size_t size, void* user) {
    Http2Server& self = server(user);
    Http2Server::Stream* const stream = self.stream_of(id);
    if (stream == nullptr || size == 0) return 0;
    if (stream->is_chunked) {
      append_chunk(text(bytes, size), stream->in);
    } else {
      stream->in += text(bytes, size);
    }
    self.changed_.push_back(id);
    return 0;
  }

  static int on_close(nghttp2_session*, std::int32_t id, std::uint32_t, void* user) {
    Http2Server& self = server(user);
    const auto found = self.streams_.find(id);
    if (found == self.streams_.end()) return 0;
    found->second.is_gone = true;
    self.changed_.push_back(id);
    return 0;
  }

  static int on_invalid_frame(nghttp2_session*, const nghttp2_frame* frame, int error, void* user) {
    // More requests than there may be, which crossed the settings that say so.
    if (error == NGHTTP2_ERR_REFUSED_STREAM) {
      server(user).owner_.count("http2 origin: requests that crossed a limit");
      server(user).owner_.on_trouble();
      return 0;
    }
    server(user).owner_.on_fault(invalid_frame(*frame, error));
    return 0;
  }

  static int on_invalid_header(nghttp2_session*, const nghttp2_frame*, const std::uint8_t* name,
                               std::size_t size, const std::uint8_t*, std::size_t, std::uint8_t,
                               void* user) {
    server(user).owner_.on_fault(invalid_header(name, size));
    return 0;
  }

  static ssize_t padding(nghttp2_session*, const nghttp2_frame* frame, std::size_t most,
                         void* user) {
    Http2Server& self = server(user);
    return padded_length(self.random_, self.plan_.pads, *frame, most);
  }

  static ssize_t read_content(nghttp2_session* session, std::int32_t id, std::uint8_t* into,
                              std::size_t most, std::uint32_t* flags, nghttp2_data_source*,
                              void* user) {
    Http2Server& self = server(user);
    Http2Server::Stream* const stream = self.stream_of(id);
    if (stream == nullptr) return NGHTTP2_ERR_DEFERRED;
    const std::size_t left = stream->content.size() - stream->sent;
    if (left == 0 && !stream->ends) return NGHTTP2_ERR_DEFERRED;
    const std::size_t piece = self.random_.percent(20) ? self.random_.between(1, 2000) : most;
    const std::size_t size = std::min({left, most, piece, self.plan_.piece_max});
    std::memcpy(into, stream->content.data() + stream->sent, size);
    stream->sent += size;
    // At times the end is a frame of its own.
    if (size != left || !stream->ends || (size != 0 && self.random_.percent(20))) {
      return static_cast<ssize_t>(size);
    }
    end_content(session, id, stream->trailers, flags);
    return static_cast<ssize_t>(size);
  }

  static nghttp2_session_callbacks* make() {
    nghttp2_session_callbacks* made = nullptr;
    check_http2(nghttp2_session_callbacks_new(&made) == 0, "no callbacks");
    nghttp2_session_callbacks_set_on_begin_headers_callback(made, on_begin_headers);
    nghttp2_session_callbacks_set_on_header_callback(made, on_header);
    nghttp2_session_callbacks_set_on_frame_recv_callback(made, on_frame);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(made, on_data);
    nghttp2_session_callbacks_set_on_stream_close_callback(made, on_close);
    nghttp2_session_callbacks_set_on_invalid_frame_recv_callback(made, on_invalid_frame);
    nghttp2_session_callbacks_set_on_invalid_header_callback(made, on_invalid_header);
    nghttp2_session_callbacks_set_select_padding_callback(made, padding);
    return made;
  }
};

Http2Server::Plan Http2Server::draw_plan(Random& random) {
  Plan out;
  out.window = random.pick<std::uint32_t>({200, 5000, 65535, 65535});
  out.streams_max = random.pick<std::uint32_t>({1, 2, 5, 100});
  out.table_bytes = random.pick<std::uint32_t>({4096, 4096, 0, 65536});
  out.piece_max = random.pick<std::size_t>({500, 2000, 4000});
  out.pads = random.pick({0.0, 0.0, 30.0});
  out.refuses = random.pick({0.0, 0.0, 1.0, 5.0});
  out.goes_away = random.pick({0.0, 1.0, 5.0});
  out.closes = random.pick({0.0, 10.0, 50.0});
  return out;
}

Http2Server::Http2Server(const Plan& plan, Random random, Loop& loop,
                         std::unique_ptr<Channel> channel, Http2ServerOwner& owner)
    : plan_(plan), random_(random), loop_(loop), channel_(std::move(channel)), owner_(owner) {}

Http2Server::~Http2Server() {
  loop_.cancel(last_goaway_);
  for (auto& [id, stream] : streams_) {
    if (stream.line != nullptr) stream.line->server_ = nullptr;
  }
  nghttp2_session_del(session_);
}

Http2Server::Stream* Http2Server::stream_of(std::int32_t id) {
  const auto found = streams_.find(id);
  return found == streams_.end() ? nullptr : &found->second;
}

// --- bytes ---

void Http2Server::on_ready(std::uint32_t events) {
  if ((events & EPOLLOUT) != 0) flush();
  if (channel_ != nullptr && channel_->is_open() &&
      (events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0) {
    read();
  }
}

void Http2Server::read() {
  std::array<char, 65536> bytes;
  while (channel_ != nullptr && channel_->is_open()) {
    const ssize_t size = channel_->recv(bytes);
    if (size < 0 && (errno == EAGAIN || errno == EINTR)) break;
    if (size <= 0) {
      if (const std::string wrong = channel_->fault(); !wrong.empty()) owner_.on_fault(wrong);
      return lose();
    }
    if (!receive({bytes.data(), static_cast<std::size_t>(size)})) return;
    tell_users();
  }
  flush();
}

// False: this is no connection of HTTP/2, or no longer one.
bool Http2Server::receive(std::string_view bytes) {
  std::string begin;
  if (session_ == nullptr) {
    begun_ += bytes;
    if (!take_preface(begun_)) return false;
    if (session_ == nullptr) return true;
    begin = std::exchange(begun_, {});
    bytes = begin;
  }
  is_receiving_ = true;
  const ssize_t used = nghttp2_session_mem_recv(
      session_, reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
  is_receiving_ = false;
  if (used >= 0) return true;
  owner_.on_fault(std::string("bytes that are no HTTP/2: ") +
                  nghttp2_strerror(static_cast<int>(used)));
  lose();
  return false;
}

// False: it is another connection's.
bool Http2Server::take_preface(std::string_view bytes) {
  const std::size_t size = std::min(bytes.size(), kPreface.size());
  if (bytes.substr(0, size) != kPreface.substr(0, size)) {
    owner_.on_other(std::move(channel_), std::exchange(begun_, {}));
    owner_.on_gone(*this);
    return false;
  }
  if (size != kPreface.size()) return true;
  static nghttp2_session_callbacks* const callbacks = Http2ServerCallbacks::make();
  check_http2(nghttp2_session_server_new(&session_, callbacks, this) == 0, "no session");
  const std::array<nghttp2_settings_entry, 3> settings = {
      {{NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, plan_.streams_max},
       {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, plan_.window},
       {NGHTTP2_SETTINGS_HEADER_TABLE_SIZE, plan_.table_bytes}}};
  check_http2(
      nghttp2_submit_settings(session_, NGHTTP2_FLAG_NONE, settings.data(), settings.size()) == 0,
      "no settings");
  owner_.count("http2 origin: connections");
  return true;
}

// No user runs within a call of nghttp2's.
void Http2Server::tell_users() {
  while (!changed_.empty()) {
    const std::int32_t id = changed_.front();
    changed_.pop_front();
    Stream* const stream = stream_of(id);
    if (stream == nullptr) continue;
    if (!stream->has_begun && !stream->in.empty()) {
      stream->has_begun = true;
      auto line = std::make_unique<Http2Line>(*this, id);
      stream->line = line.get();
      owner_.on_line(std::move(line));
    }
    if (stream->line != nullptr) {
      stream->line->handler_->on_ready(EPOLLIN);
    } else if (stream->is_gone) {
      streams_.erase(id);
    }
  }
}

void Http2Server::flush() {
  if (is_receiving_ || session_ == nullptr || channel_ == nullptr || !channel_->is_open()) return;
  while (!has_ended_) {
    if (out_.empty()) {
      const std::uint8_t* bytes = nullptr;
      const ssize_t size = nghttp2_session_mem_send(session_, &bytes);
      check_http2(size >= 0, "nothing can be sent");
      if (size == 0) break;
      out_.assign(reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(size));
    }
    const ssize_t size = channel_->send(out_, {});
    if (size < 0 && errno == EAGAIN) {
      channel_->want(EPOLLIN | EPOLLOUT);
      return;
    }
    if (size <= 0) return lose();
    out_.erase(0, static_cast<std::size_t>(size));
  }
  channel_->want(EPOLLIN | (channel_->has_sent_all() ? 0U : EPOLLOUT));
  if (!changed_.empty()) tell_users();
}

// The connection has ended.
void Http2Server::lose() {
  channel_->close(Channel::Close::kLeave);
  for (auto& [id, stream] : streams_) {
    stream.is_gone = true;
    changed_.push_back(id);
  }
  tell_users();
  owner_.on_gone(*this);
}

// --- requests ---

void Http2Server::begin_request(std::int32_t id, Stream& stream, bool ends) {
  const Fields fields = std::exchange(stream.fields, {});
  stream.has_head = true;
  if (has_ended_ || random_.percent(plan_.refuses)) {
    owner_.count("http2 origin: requests that were refused");
    owner_.on_refused(fields);
    nghttp2_submit_rst_stream(session_, NGHTTP2_FLAG_NONE, id, NGHTTP2_REFUSED_STREAM);
    return;
  }
  const std::string method = value_of(fields, ":method");
  stream.is_head = method == "HEAD";
  stream.may_repeat = method == "GET" || stream.is_head;
  if (streams_.size() > 1) owner_.count("http2 origin: concurrent requests");
  stream.in = method + " " + value_of(fields, ":path") + " HTTP/1.1\r\n";
  append_line({"Host", value_of(fields, ":authority")}, stream.in);
  for (const Field& field : fields) {
    if (!field.name.starts_with(':')) append_line(field, stream.in);
  }
  stream.is_chunked = !ends && find(fields, "Content-Length") == nullptr;
  if (stream.is_chunked) append_line({"Transfer-Encoding", "chunked"}, stream.in);
  stream.in += "\r\n";
  changed_.push_back(id);
}

void Http2Server::end_request(std::int32_t id, Stream& stream, const Fields& trailers) {
  if (stream.is_chunked) {
    stream.in += "0\r\n";
    for (const Field& field : trailers) append_line(field, stream.in);
    stream.in += "\r\n";
  }
  changed_.push_back(id);
}

// --- answers ---

void Http2Server::take_answer(std::int32_t id, Stream& stream) {
  while (!stream.has_answer) {
    if (!take_head(id, stream)) break;
  }
  std::string_view rest = stream.out;
  while (stream.has_answer && !rest.empty() && !stream.body.is_done()) {
    std::string_view content;
    std::string error;
    check_http2(stream.body.next(rest, content, error), "an answer that is none");
    stream.content += content;
  }
  stream.out = rest;
  if (stream.has_answer && stream.body.is_done()) {
    stream.ends = true;
    for (const Field& field : stream.body.trailers()) {
      stream.trailers.push_back({lower(field.name), field.value});
    }
  }
  nghttp2_session_resume_data(session_, id);
  flush();
}

// False: it is not all there.
bool Http2Server::take_head(std::int32_t id, Stream& stream) {
  Head head;
  std::string error;
  const std::size_t size = read_head(stream.out, head, error);
  check_http2(error.empty(), "a head that is none");
  if (size == 0) return false;
  stream.out.erase(0, size);
  const std::string status = head.start.substr(std::string_view("HTTP/1.1 ").size(), 3);
  Fields fields = without_hops(head.fields);
  fields.insert(fields.begin(), {":status", status});
  if (status.front() == '1') {
    const std::vector<nghttp2_nv> pairs = pairs_of(fields);
    nghttp2_submit_headers(session_, NGHTTP2_FLAG_NONE, id, nullptr, pairs.data(), pairs.size(),
                           nullptr);
    return true;
  }
  stream.has_answer = true;
  if (stream.is_head || status == "204" || status == "304") {
    stream.body = BodyReader();
  } else if (find(head.fields, "Transfer-Encoding") != nullptr) {
    stream.body = BodyReader(BodyReader::Kind::kChunked);
  } else if (const Field* const length = find(head.fields, "Content-Length")) {
    stream.body = BodyReader(BodyReader::Kind::kLength,
                             static_cast<std::uint64_t>(number(length->value).value_or(0)));
  } else {
    stream.body = BodyReader(BodyReader::Kind::kClose);
  }
  begin_answer(id, stream, fields);
  const bool says_close = std::ranges::any_of(
      members(head.fields, "Connection"), [](const std::string& each) { return each == "close"; });
  if (says_close && random_.percent(plan_.goes_away)) go_away();
  return false;
}

void Http2Server::begin_answer(std::int32_t id, Stream& stream, const Fields& fields) {
  const nghttp2_data_provider provider{.source = {},
                                       .read_callback = Http2ServerCallbacks::read_content};
  const std::vector<nghttp2_nv> pairs = pairs_of(fields);
  // An end of no content may be a frame of its own.
  const bool is_bare = stream.body.is_done() &&
                       (stream.body.kind() == BodyReader::Kind::kNone || random_.percent(70));
  nghttp2_submit_response(session_, id, pairs.data(), pairs.size(), is_bare ? nullptr : &provider);
}

// Its user wants no more of it.
void Http2Server::close_line(std::int32_t id, Line::Close how) {
  Stream* const stream = stream_of(id);
  if (stream == nullptr) return;
  stream->line = nullptr;
  if (stream->is_gone) {
    streams_.erase(id);
    return;
  }
  if (stream->has_answer && stream->body.kind() == BodyReader::Kind::kClose &&
      how == Line::Close::kLeave) {
    stream->ends = true;
    nghttp2_session_resume_data(session_, id);
  }
  if (!stream->ends) cut(id, *stream);
  flush();
}

// Ends the answer where it stands.
void Http2Server::cut(std::int32_t id, const Stream& stream) {
  if (streams_.size() == 1 && out_.empty() && !is_receiving_ && random_.percent(plan_.closes)) {
    owner_.count("http2 origin: connections that end under a request");
    owner_.on_trouble();
    has_ended_ = true;
    channel_->shut_down();
    return;
  }
  std::uint32_t code = random_.pick<std::uint32_t>(
      {NGHTTP2_INTERNAL_ERROR, NGHTTP2_CANCEL, NGHTTP2_ENHANCE_YOUR_CALM});
  if (!stream.has_answer && stream.may_repeat && random_.percent(50)) code = NGHTTP2_REFUSED_STREAM;
  owner_.count("http2 origin: streams that are reset");
  nghttp2_submit_rst_stream(session_, NGHTTP2_FLAG_NONE, id, code);
}

// It takes no more requests: first those that are on their way still, or none from now on.
void Http2Server::go_away() {
  if (std::exchange(has_said_goaway_, true) || has_ended_) return;
  owner_.count("http2 origin: GOAWAY");
  const auto say_last = [this] {
    owner_.on_trouble();
    nghttp2_submit_goaway(session_, NGHTTP2_FLAG_NONE,
                          nghttp2_session_get_last_proc_stream_id(session_), NGHTTP2_NO_ERROR,
                          nullptr, 0);
  };
  if (random_.percent(40)) return say_last();
  nghttp2_submit_shutdown_notice(session_);
  last_goaway_ = loop_.after(kGoawaySeconds, [this, say_last] {
    last_goaway_ = {};
    if (channel_ == nullptr || !channel_->is_open() || has_ended_) return;
    say_last();
    flush();
  });
}

// --- a stream's user ---

ssize_t Http2Line::send(std::string_view first, std::string_view second) {
  Http2Server::Stream* const stream = server_ == nullptr ? nullptr : server_->stream_of(id_);
  if (stream == nullptr || stream->is_gone) {
    errno = EPIPE;
    return -1;
  }
  stream->out += first;
  stream->out += second;
  server_->take_answer(id_, *stream);
  return static_cast<ssize_t>(first.size() + second.size());
}

ssize_t Http2Line::recv(std::span<char> into) {
  Http2Server::Stream* const stream = server_ == nullptr ? nullptr : server_->stream_of(id_);
  if (stream == nullptr) return 0;
  if (stream->in.empty()) {
    if (stream->is_gone) return 0;
    errno = EAGAIN;
    return -1;
  }
  const std::size_t size = std::min(into.size(), stream->in.size());
  std::memcpy(into.data(), stream->in.data(), size);
  stream->in.erase(0, size);
  return static_cast<ssize_t>(size);
}

void Http2Line::close(Close how) {
  if (!std::exchange(is_open_, false)) return;
  if (Http2Server* const server = std::exchange(server_, nullptr)) server->close_line(id_, how);
}

}  // namespace encore::proxyfuzz
