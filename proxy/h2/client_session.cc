#include "proxy/h2/client_session.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/check.h"
#include "proxy/h2/field_encoder.h"
#include "proxy/http/list.h"

namespace encore::h2 {
namespace {

struct RequestLine {
  std::string_view method;
  std::string_view target;
};

// Takes the line at the front; empty views where it is none.
RequestLine take_request_line(std::string_view& head) {
  const std::size_t end = head.find("\r\n");
  if (end == std::string_view::npos) return {};
  const std::string_view line = head.substr(0, end);
  const std::size_t first = line.find(' ');
  const std::size_t second = line.rfind(' ');
  if (first == std::string_view::npos || second == first) return {};
  head.remove_prefix(end + 2);
  return {line.substr(0, first), line.substr(first + 1, second - first - 1)};
}

// The lines in front of Host's and behind it, and its value.
struct HostSplit {
  std::string_view before;
  std::string_view host;
  std::string_view behind;
};

HostSplit split_host(std::string_view lines) {
  constexpr std::string_view kName = "host:";
  for (std::size_t at = 0; at < lines.size();) {
    const std::size_t end = std::min(lines.find("\r\n", at), lines.size());
    const std::string_view line = lines.substr(at, end - at);
    const std::size_t next = std::min(end + 2, lines.size());
    if (line.size() >= kName.size() && http::equals_lower(line.substr(0, kName.size()), kName)) {
      std::string_view value = line.substr(kName.size());
      while (value.starts_with(' ')) value.remove_prefix(1);
      return {lines.substr(0, at), value, lines.substr(next)};
    }
    at = next;
  }
  return {lines, {}, {}};
}

}  // namespace

ClientSession::ClientSession(const Options& options, Counters& counters, ClientHandler& handler)
    : Session(Role::kClient, options, counters), handler_(handler) {
  const std::array<SettingValue, 4> settings = {{
      {Setting::kEnablePush, 0},
      {Setting::kInitialWindowSize, static_cast<std::uint32_t>(options.stream_window_bytes)},
      {Setting::kMaxHeaderListSize, static_cast<std::uint32_t>(options.head_bytes_max)},
      {Setting::kNoRfc7540Priorities, 1},
  }};
  begin(settings);
}

bool ClientSession::can_request() const {
  return !is_ended() && !is_draining() && !is_peer_draining() && next_ < kStreamIdMax &&
         stream_count() < std::min(peer_streams_max_, options().streams_max);
}

StreamId ClientSession::request(const Asked& asked, StreamHandler& handler) {
  ENCORE_CHECK(can_request(), "a request needs a stream");
  std::string_view lines = asked.head;
  const RequestLine line = take_request_line(lines);
  if (line.method.empty() || line.target.empty()) return 0;
  const HostSplit split = split_host(lines);
  const bool is_connect = line.method == "CONNECT";
  Stream& stream = open(std::exchange(next_, next_ + 2));
  stream.handler = &handler;
  stream.is_head = line.method == "HEAD";
  std::optional<std::uint64_t> length;
  const bool ends = asked.content == nullptr;
  send_headers(stream, [&](std::string& block) {
    append_pseudo(":method", asked.protocol.empty() ? line.method : "CONNECT", block);
    if (!asked.protocol.empty()) append_pseudo(":protocol", asked.protocol, block);
    append_pseudo(":authority", is_connect ? line.target : split.host, block);
    if (!is_connect) {
      append_pseudo(":scheme", asked.scheme, block);
      append_pseudo(":path", line.target, block);
    }
    append_fields(split.before, block, length);
    append_fields(split.behind, block, length);
    return ends;
  });
  if (!ends) {
    send_content(stream, *asked.content, length.value_or(Stream::kOpenEnd),
                 length ? nullptr : asked.trailers);
  }
  return stream.id;
}

Session::Purpose ClientSession::on_new_stream(const FrameHeader& header) {
  if (!is_idle(header.stream) && ended().was_reset(header.stream)) return Purpose::kDiscard;
  fail(is_idle(header.stream) ? ErrorCode::kProtocolError : ErrorCode::kStreamClosed,
       "HEADERS on no stream");
  return Purpose::kNone;
}

Session::Purpose ClientSession::on_further_headers(const FrameHeader& header, Stream& stream) {
  if (!stream.has_response) return Purpose::kHead;
  if (header.has(kFlagEndStream)) return Purpose::kTrailers;
  refuse(stream.id, Malformed::kNoTrailers);
  return Purpose::kDiscard;
}

FieldSink& ClientSession::begin_block(Purpose purpose) {
  const ListSize limit(2 * options().head_bytes_max, options().fields_max);
  switch (purpose) {
    case Purpose::kHead:
      return text_.emplace<ResponseText>(limit);
    case Purpose::kTrailers:
      return text_.emplace<TrailerText>(limit);
    case Purpose::kNone:
    case Purpose::kDiscard:
      break;
  }
  return text_.emplace<DiscardedText>(limit);
}

void ClientSession::on_block(const Block& block) {
  Text text = std::exchange(text_, std::monostate());
  Stream* const stream = streams().find(block.stream);
  if (stream == nullptr) return;
  if (auto* const head = std::get_if<ResponseText>(&text); head != nullptr) {
    on_head(block, *stream, *head);
  } else if (const auto* const trailers = std::get_if<TrailerText>(&text); trailers != nullptr) {
    if (trailers->malformed() != Malformed::kNone) {
      refuse(block.stream, trailers->malformed());
    } else {
      end_receiving(*stream, trailers->text());
    }
  }
}

void ClientSession::on_head(const Block& block, Stream& stream, ResponseText& text) {
  Malformed reason = text.finish(!block.ends_stream && !stream.is_head);
  const bool is_interim = text.status() < 200;
  const bool has_content =
      !stream.is_head && text.status() != 204 && text.status() != 304 && !is_interim;
  // An interim response ends nothing, and what has no content has no bytes of it.
  if (reason == Malformed::kNone && is_interim && block.ends_stream) reason = Malformed::kBadStatus;
  if (reason == Malformed::kNone && block.ends_stream && has_content &&
      text.length().value_or(0) != 0) {
    reason = Malformed::kLengthMismatch;
  }
  if (reason != Malformed::kNone) {
    refuse(block.stream, reason);
    return;
  }
  const Response response = {
      .text = text.text(), .status = text.status(), .has_content = !block.ends_stream};
  if (is_interim) {
    handler_.on_interim(block.stream, response);
    return;
  }
  stream.has_response = true;
  stream.expected = has_content ? text.length().value_or(Stream::kOpenEnd) : 0;
  if (block.ends_stream) {
    stream.receiving = Stream::Receiving::kEnded;
    if (stream.is_over()) streams().count_over();
  }
  handler_.on_response(block.stream, response);
}

void ClientSession::on_setting(Setting setting, std::uint32_t value) {
  if (setting == Setting::kMaxConcurrentStreams) peer_streams_max_ = value;
  if (setting == Setting::kEnableConnectProtocol) takes_protocols_ = value == 1;
}

void ClientSession::on_goaway(StreamId last, ErrorCode) {
  for (const StreamId id : streams().ids()) {
    Stream* const stream = streams().find(id);
    if (id > last && stream != nullptr) forsake(*stream, ErrorCode::kRefusedStream);
  }
}

}  // namespace encore::h2
