// The cost of a request in the leaf of HTTP/2, compared with a bare loop of nghttp2: bytes of a
// client go in, those of the responses are copied into a buffer, as a socket would.
//   h2_bench [--with=leaf|nghttp2] [--streams=1] [--requests=200000]
// Prints CPU nanoseconds a request; `valgrind --tool=callgrind` counts instructions of it.
#include <nghttp2/nghttp2.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "proxy/h2/server_session.h"
#include "proxy/http/parser.h"

using namespace encore;

namespace {

constexpr std::size_t kBodyBytes = 1024;

std::string argument(int argc, char** argv, std::string_view name, std::string_view otherwise) {
  const std::string start = "--" + std::string(name) + "=";
  for (int i = 1; i < argc; ++i) {
    if (std::string_view(argv[i]).starts_with(start)) return argv[i] + start.size();
  }
  return std::string(otherwise);
}

nghttp2_nv field(std::string_view name, std::string_view value) {
  return {reinterpret_cast<std::uint8_t*>(const_cast<char*>(name.data())),
          reinterpret_cast<std::uint8_t*>(const_cast<char*>(value.data())), name.size(),
          value.size(), NGHTTP2_NV_FLAG_NO_COPY_NAME | NGHTTP2_NV_FLAG_NO_COPY_VALUE};
}

// The client's bytes: what opens the connection, and reads of `streams` requests each.
struct Input {
  std::string opening;
  std::vector<std::string> reads;
};

Input input_of(std::size_t streams, std::size_t requests) {
  Input input;
  input.opening = h2::kPreface;
  const h2::SettingValue wide = {h2::Setting::kInitialWindowSize, 0x7fffffff};
  h2::append_settings(std::span(&wide, 1), input.opening);
  h2::append_window_update(0, 0x7fffffff - 65535, input.opening);
  nghttp2_hd_deflater* deflater = nullptr;
  nghttp2_hd_deflate_new(&deflater, 4096);
  std::array<nghttp2_nv, 6> fields = {field(":method", "GET"),
                                      field(":scheme", "http"),
                                      field(":authority", "bench.example"),
                                      field(":path", "/object/1"),
                                      field("user-agent", "h2load nghttp2/1.52.0"),
                                      field("accept", "*/*")};
  h2::StreamId id = 1;
  for (std::size_t at = 0; at < requests; at += streams) {
    std::string& bytes = input.reads.emplace_back();
    for (std::size_t i = 0; i < streams; ++i, id += 2) {
      std::array<std::uint8_t, 500> block;
      const ssize_t size =
          nghttp2_hd_deflate_hd(deflater, block.data(), block.size(), fields.data(), fields.size());
      h2::append_frame_header({.length = static_cast<std::uint32_t>(size),
                               .type = h2::FrameType::kHeaders,
                               .flags = h2::kFlagEndHeaders | h2::kFlagEndStream,
                               .stream = id},
                              bytes);
      bytes.append(reinterpret_cast<const char*>(block.data()), static_cast<std::size_t>(size));
    }
  }
  nghttp2_hd_deflate_del(deflater);
  return input;
}

// Copies the output as a socket would.
class Socket {
 public:
  void write(const void* bytes, std::size_t size) {
    if (used_ + size > sizeof buffer_) used_ = 0;
    std::copy_n(static_cast<const char*>(bytes), size, buffer_ + used_);
    used_ += size;
    written += size;
  }
  std::size_t written = 0;

 private:
  char buffer_[1 << 18] = {};
  std::size_t used_ = 0;
};

const std::string kBody(kBodyBytes, 'x');
constexpr std::string_view kHead =
    "HTTP/1.1 200 OK\r\nServer: encore\r\nDate: Sat, 28 Nov 2026 05:00:00 GMT\r\n"
    "Content-Type: text/plain\r\nLast-Modified: Fri, 27 Nov 2026 05:00:00 GMT\r\n"
    "Content-Length: 1024\r\nAge: 17\r\n";

class Leaf final : public h2::ServerHandler, public h2::StreamHandler {
 public:
  void run(std::string_view bytes, Socket& socket) {
    session_.receive(bytes, now_);
    std::array<iovec, 128> room;
    while (session_.has_output()) {
      const h2::Batch batch = session_.gather(room, 256 * 1024);
      for (std::size_t i = 0; i < batch.parts; ++i) socket.write(room[i].iov_base, room[i].iov_len);
      session_.sent(batch.bytes, now_);
    }
  }
  std::size_t answered() const { return counters_.streams; }

  h2::StreamHandler* on_request(h2::StreamId stream, const h2::Request& request) override {
    if (http::parse_request(request.text, limits_, head_, error_) != http::ParseStatus::kComplete) {
      std::abort();
    }
    Source& source = sources_[stream / 2 % sources_.size()];
    source.at = 0;
    session_.respond(stream, kHead, h2::ServerSession::Framing::kLength, &source);
    return this;
  }
  h2::StreamHandler* on_connect(h2::StreamId, const h2::Connect&) override { return nullptr; }
  void on_connection_end(const h2::ConnectionEnd&) override { std::abort(); }
  void on_content(h2::StreamId, std::string_view) override {}
  void on_content_end(h2::StreamId, std::string_view) override {}
  void on_writable(h2::StreamId stream) override {
    if (session_.status(stream) == h2::SendStatus::kDone) session_.release(stream);
  }
  void on_gone(h2::StreamId, h2::ErrorCode) override {}

 private:
  struct Source final : h2::ContentSource {
    Peeked peek(std::span<iovec> room, std::size_t bytes_max) override {
      if (at == kBodyBytes) return {};
      const std::size_t bytes = std::min(bytes_max, kBodyBytes - at);
      room[0] = {const_cast<char*>(kBody.data()) + at, bytes};
      return {.state = State::kReady, .parts = 1, .bytes = bytes};
    }
    void advance(std::size_t bytes) override { at += bytes; }
    std::size_t at = 0;
  };

  const h2::Options options_;
  const http::Limits limits_;
  http::RequestHead head_;
  http::ParseError error_;
  h2::Counters counters_;
  std::array<Source, 128> sources_;
  const MonotonicTime now_ = monotonic_now();
  h2::ServerSession session_{options_, counters_, *this};
};

class Bare {
 public:
  explicit Bare(Socket& socket) : socket_(socket) {
    nghttp2_session_callbacks* callbacks = nullptr;
    nghttp2_session_callbacks_new(&callbacks);
    nghttp2_session_callbacks_set_send_callback(callbacks, &on_send);
    nghttp2_session_callbacks_set_send_data_callback(callbacks, &on_send_data);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, &on_frame);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, &on_header);
    nghttp2_session_server_new(&session_, callbacks, this);
    nghttp2_session_callbacks_del(callbacks);
    nghttp2_submit_settings(session_, NGHTTP2_FLAG_NONE, nullptr, 0);
  }
  ~Bare() { nghttp2_session_del(session_); }
  Bare(const Bare&) = delete;
  Bare& operator=(const Bare&) = delete;

  void run(std::string_view bytes) {
    nghttp2_session_mem_recv(session_, reinterpret_cast<const std::uint8_t*>(bytes.data()),
                             bytes.size());
    nghttp2_session_send(session_);
  }
  std::size_t answered() const { return answered_; }

 private:
  static ssize_t on_send(nghttp2_session*, const std::uint8_t* bytes, std::size_t size, int,
                         void* self) {
    static_cast<Bare*>(self)->socket_.write(bytes, size);
    return static_cast<ssize_t>(size);
  }
  static int on_send_data(nghttp2_session*, nghttp2_frame*, const std::uint8_t* header,
                          std::size_t size, nghttp2_data_source*, void* self) {
    static_cast<Bare*>(self)->socket_.write(header, h2::kFrameHeaderBytes);
    static_cast<Bare*>(self)->socket_.write(kBody.data(), size);
    return 0;
  }
  static ssize_t on_read(nghttp2_session*, std::int32_t, std::uint8_t*, std::size_t,
                         std::uint32_t* flags, nghttp2_data_source*, void*) {
    *flags |= NGHTTP2_DATA_FLAG_EOF | NGHTTP2_DATA_FLAG_NO_COPY;
    return static_cast<ssize_t>(kBodyBytes);
  }
  static int on_header(nghttp2_session*, const nghttp2_frame*, const std::uint8_t*, std::size_t,
                       const std::uint8_t*, std::size_t, std::uint8_t, void*) {
    return 0;
  }
  static int on_frame(nghttp2_session* session, const nghttp2_frame* frame, void* self) {
    if (frame->hd.type != NGHTTP2_HEADERS) return 0;
    ++static_cast<Bare*>(self)->answered_;
    const std::array<nghttp2_nv, 7> fields = {
        field(":status", "200"),
        field("server", "encore"),
        field("date", "Sat, 28 Nov 2026 05:00:00 GMT"),
        field("content-type", "text/plain"),
        field("last-modified", "Fri, 27 Nov 2026 05:00:00 GMT"),
        field("content-length", "1024"),
        field("age", "17")};
    nghttp2_data_provider provider = {{.fd = 0}, &on_read};
    nghttp2_submit_response(session, frame->hd.stream_id, fields.data(), fields.size(), &provider);
    return 0;
  }

  Socket& socket_;
  nghttp2_session* session_ = nullptr;
  std::size_t answered_ = 0;
};

double cpu_nanoseconds() {
  timespec time = {};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e9 + static_cast<double>(time.tv_nsec);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string with = argument(argc, argv, "with", "leaf");
  const auto streams = static_cast<std::size_t>(std::stoul(argument(argc, argv, "streams", "1")));
  const auto requests =
      static_cast<std::size_t>(std::stoul(argument(argc, argv, "requests", "200000")));
  const Input input = input_of(streams, requests);
  const auto socket = std::make_unique<Socket>();
  const auto leaf = std::make_unique<Leaf>();
  Bare bare(*socket);
  const bool is_leaf = with == "leaf";
  const auto run = [&](std::string_view bytes) {
    if (is_leaf) {
      leaf->run(bytes, *socket);
    } else {
      bare.run(bytes);
    }
  };
  run(input.opening);
  const double before = cpu_nanoseconds();
  for (const std::string& bytes : input.reads) run(bytes);
  const double used = cpu_nanoseconds() - before;
  const std::size_t answered = is_leaf ? leaf->answered() : bare.answered();
  std::printf("%s, %zu streams: %.0f ns a request, %zu answered, %zu bytes sent\n", with.c_str(),
              streams, used / static_cast<double>(requests), answered, socket->written);
  return answered == requests ? 0 : 1;
}
