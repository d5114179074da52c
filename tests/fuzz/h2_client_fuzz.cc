// Sessions of HTTP/2 with origins: whatever the bytes and however they are cut, a reported response
// is one head and no more, each stream ends once, and limits hold. The first byte chooses how the
// input is cut and what is asked.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>

#include "base/check.h"
#include "proxy/h2/client_session.h"
#include "proxy/http/framing.h"
#include "proxy/http/parser.h"

using namespace encore;
using namespace encore::h2;

namespace {

constexpr http::Limits kHeadLimits{.head_bytes_max = 16384, .fields_max = 1000};

class Source final : public ContentSource {
 public:
  Peeked peek(std::span<iovec> room, std::size_t bytes_max) override {
    if (left_ == 0) return {};
    const std::size_t bytes = std::min({left_, bytes_max, kText.size()});
    room[0] = {const_cast<char*>(kText.data()), bytes};
    return {.state = State::kReady, .parts = 1, .bytes = bytes};
  }
  void advance(std::size_t bytes) override {
    ENCORE_CHECK(bytes <= left_, "no more is taken than was shown");
    left_ -= bytes;
  }

 private:
  static constexpr std::string_view kText = "content of a request, as long as it may be";
  std::size_t left_ = 5000;
};

class World final : public ClientHandler, public StreamHandler {
 public:
  World(std::uint8_t character, std::size_t step)
      : character_(character), step_(step), session_(options(), counters_, *this) {}

  void run(std::string_view input) {
    for (int i = 0; i < 4; ++i) ask(i);
    take();
    give(std::string_view("\0\0\0\4\0\0\0\0\0", 9));
    give(input);
    take();
    session_.check_timeouts(now_ + std::chrono::seconds(20));
    session_.check_timeouts(now_ + std::chrono::seconds(60));
    take();
    session_.drop();
    ENCORE_CHECK(open_.empty(), "each stream ends");
    ENCORE_CHECK(session_.stream_count() == 0, "none is left");
  }

  void on_interim(StreamId stream, const Response& response) override {
    check_head(stream, response);
    ENCORE_CHECK(response.status < 200, "an interim response is one");
    if (character_ % 8 == 1) stop(stream);
  }
  void on_response(StreamId stream, const Response& response) override {
    check_head(stream, response);
    ENCORE_CHECK(answered_.insert(stream).second, "a request has one response");
    if (character_ % 8 == 2) stop(stream);
    if (!response.has_content) end(stream);
  }
  void on_connection_end(const ConnectionEnd& why) override { events_ += why.why; }
  void on_content(StreamId stream, std::string_view bytes) override {
    ENCORE_CHECK(open_.contains(stream) && answered_.contains(stream), "content has a head");
    bytes_ += bytes.size();
    if (character_ % 2 == 0) session_.consume(stream, bytes.size());
    if (character_ % 8 == 3) stop(stream);
  }
  void on_content_end(StreamId stream, std::string_view trailers) override {
    ENCORE_CHECK(open_.contains(stream), "ends come on open streams");
    events_ += std::to_string(stream) + " ended " + std::string(trailers);
    end(stream);
  }
  void on_writable(StreamId stream) override {
    ENCORE_CHECK(open_.contains(stream), "events come on open streams");
  }
  void on_gone(StreamId stream, ErrorCode code) override {
    ENCORE_CHECK(open_.erase(stream) == 1, "a stream goes once");
    events_ += std::to_string(stream) + std::string(to_string(code));
  }
  const std::string& events() const { return events_; }

 private:
  Options options() const {
    Options options;
    options.head_bytes_max = 4096;
    options.fields_max = 50;
    options.stream_window_bytes = 70000;
    options.connection_window_bytes = 80000;
    return options;
  }
  void ask(int i) {
    if (!session_.can_request()) return;
    const bool has_content = (i + character_) % 3 == 0;
    const std::string_view head = (i + character_) % 4 == 0
                                      ? "HEAD /x HTTP/1.1\r\nHost: a.example\r\n\r\n"
                                      : "GET /x HTTP/1.1\r\nHost: a.example\r\nAccept: */*\r\n\r\n";
    const StreamId stream = session_.request(
        {.head = head,
         .scheme = "https",
         .content = has_content ? &sources_[static_cast<std::size_t>(i)] : nullptr},
        *this);
    ENCORE_CHECK(stream != 0, "a sound request is sent");
    open_.insert(stream);
  }
  void stop(StreamId stream) {
    if (open_.erase(stream) == 1) session_.reset(stream, ErrorCode::kCancel);
  }
  // The response has ended: what is left of the request is not wanted.
  void end(StreamId stream) {
    if (open_.erase(stream) == 0) return;
    if (session_.status(stream) == SendStatus::kDone) {
      session_.release(stream);
    } else {
      session_.reset(stream, ErrorCode::kNoError);
    }
  }
  void check_head(StreamId stream, const Response& response) {
    ENCORE_CHECK(open_.contains(stream), "heads come on open streams");
    http::ResponseHead head;
    http::ParseError error;
    const auto status = http::parse_response(response.text, kHeadLimits, head, error);
    ENCORE_CHECK(status != http::ParseStatus::kIncomplete, "what is told is a whole head");
    events_ += std::to_string(stream) + response.text;
    if (status == http::ParseStatus::kBad) return;
    ENCORE_CHECK(head.head_size == response.text.size(), "and no more");
    ENCORE_CHECK(head.status == response.status, "of the status that is told");
    ENCORE_CHECK(http::response_framing(http::Method::kGet, head).kind != http::BodyKind::kError,
                 "its framing is sound");
  }
  void give(std::string_view bytes) {
    while (!bytes.empty()) {
      const std::string part(bytes.substr(0, step_));
      const std::size_t used = session_.receive(part, now_);
      ENCORE_CHECK(used == part.size() || session_.is_paused(), "all is read");
      if (session_.is_paused()) take();
      bytes.remove_prefix(used);
    }
    ENCORE_CHECK(session_.memory_bytes() < 100000, "memory has a limit");
  }
  void take() {
    std::array<iovec, 16> room;
    for (int i = 0; session_.has_output(); ++i) {
      ENCORE_CHECK(i < 100000, "what is to be sent comes to an end");
      const Batch batch = session_.gather(room, 5000);
      session_.sent(character_ >= 128 ? std::min<std::size_t>(batch.bytes, 700) : batch.bytes,
                    now_);
    }
  }

  const std::uint8_t character_;
  const std::size_t step_;
  const MonotonicTime now_ = MonotonicTime(std::chrono::hours(1));
  Counters counters_;
  std::array<Source, 4> sources_;
  std::set<StreamId> open_;
  std::set<StreamId> answered_;
  std::string events_;
  std::size_t bytes_ = 0;
  ClientSession session_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2 || size > 65536) return 0;
  const std::string_view input(reinterpret_cast<const char*>(data + 1), size - 1);
  World whole(data[0], SIZE_MAX);
  whole.run(input);
  World cut(data[0], 1 + data[0] % 16);
  cut.run(input);
  // A stream that stops at the first piece of content never sees that the rest is too long.
  ENCORE_CHECK(data[0] % 8 == 3 || whole.events() == cut.events(), "cuts change nothing");
  return 0;
}
