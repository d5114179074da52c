#include "proxy/h2/server_session.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/check.h"
#include "proxy/h2/field_encoder.h"

namespace encore::h2 {
namespace {

constexpr std::size_t kEarlyPrioritiesMax = 16;

bool has_no_content(unsigned status) { return status < 200 || status == 204 || status == 304; }

}  // namespace

ServerSession::ServerSession(const Options& options, Counters& counters, ServerHandler& handler)
    : Session(Role::kServer, options, counters), handler_(handler) {
  const std::array<SettingValue, 5> settings = {{
      {Setting::kMaxConcurrentStreams, options.streams_max},
      {Setting::kInitialWindowSize, static_cast<std::uint32_t>(options.stream_window_bytes)},
      {Setting::kMaxHeaderListSize, static_cast<std::uint32_t>(options.head_bytes_max)},
      {Setting::kNoRfc7540Priorities, 1},
      {Setting::kEnableConnectProtocol, 1},
  }};
  begin(std::span(settings).first(options.takes_protocols ? 5 : 4));
}

void ServerSession::send_interim(StreamId id, std::string_view head) {
  Stream* const stream = streams().find(id);
  if (stream == nullptr || is_ended()) return;
  ENCORE_CHECK(stream->sending == Stream::Sending::kNothing, "interim responses go first");
  if (head.size() < 12 || head.substr(9, 3) == "101") return;
  send_headers(*stream, [head](std::string& block) {
    std::optional<std::uint64_t> length;
    append_response(std::span(&head, 1), block, length);
    return false;
  });
}

void ServerSession::respond(StreamId id, std::span<const std::string_view> head, Framing framing,
                            ContentSource* content, const std::string* trailers) {
  Stream* const stream = streams().find(id);
  if (stream == nullptr || is_ended()) return;
  ENCORE_CHECK(stream->sending == Stream::Sending::kNothing, "a request has one response");
  ENCORE_CHECK(framing == Framing::kNone || content != nullptr, "content has a source");
  std::optional<std::uint64_t> length;
  bool ends = false;
  send_headers(*stream, [&](std::string& block) {
    const unsigned status = append_response(head, block, length);
    ENCORE_CHECK(status >= 200, "a response has a status line");
    ends = framing == Framing::kNone || stream->is_head || has_no_content(status) ||
           (framing == Framing::kLength && length == 0U);
    return ends;
  });
  if (ends) return;
  const bool has_length = framing == Framing::kLength && length.has_value();
  send_content(*stream, *content, has_length ? *length : Stream::kOpenEnd,
               has_length ? nullptr : trailers);
}

Session::Purpose ServerSession::on_new_stream(const FrameHeader& header) {
  const StreamId id = header.stream;
  if (id <= last_peer_stream() && ended().was_reset(id)) return Purpose::kDiscard;
  if (id % 2 == 0 || id <= last_peer_stream()) {
    const bool was_there = ended().was_other(id);
    fail(was_there ? ErrorCode::kStreamClosed : ErrorCode::kProtocolError,
         "HEADERS on a closed stream");
    return Purpose::kNone;
  }
  // Behind the second GOAWAY nothing is answered, not even with a reset.
  if (is_refusing()) return Purpose::kDiscard;
  set_last_peer_stream(id);
  if (streams().open_count() < options().streams_max) return Purpose::kHead;
  counters().add(Limit::kStreamsRefused);
  fail_stream(id, ErrorCode::kRefusedStream, to_string(Limit::kStreamsRefused));
  return Purpose::kDiscard;
}

Session::Purpose ServerSession::on_further_headers(const FrameHeader& header, Stream& stream) {
  if (header.has(kFlagEndStream)) return Purpose::kTrailers;
  refuse(stream.id, Malformed::kNoTrailers);
  return Purpose::kDiscard;
}

FieldSink& ServerSession::begin_block(Purpose purpose) {
  const ListSize limit(2 * options().head_bytes_max, options().fields_max);
  switch (purpose) {
    case Purpose::kHead:
      return text_.emplace<RequestText>(
          RequestText::Form{.is_absolute = options().has_absolute_form,
                            .takes_protocols = options().takes_protocols},
          limit);
    case Purpose::kTrailers:
      return text_.emplace<TrailerText>(limit);
    case Purpose::kNone:
    case Purpose::kDiscard:
      break;
  }
  return text_.emplace<DiscardedText>(limit);
}

void ServerSession::on_block(const Block& block) {
  Text text = std::exchange(text_, std::monostate());
  if (auto* const head = std::get_if<RequestText>(&text); head != nullptr) {
    on_head(block, *head);
  } else if (const auto* const trailers = std::get_if<TrailerText>(&text); trailers != nullptr) {
    Stream* const stream = streams().find(block.stream);
    if (stream == nullptr) return;
    if (trailers->malformed() != Malformed::kNone) {
      refuse(block.stream, trailers->malformed());
    } else {
      end_receiving(*stream, trailers->text());
    }
  }
}

void ServerSession::on_head(const Block& block, RequestText& text) {
  const Malformed reason = text.finish(!block.ends_stream);
  if (reason != Malformed::kNone) {
    refuse(block.stream, reason);
    return;
  }
  Stream& stream = open(block.stream);
  stream.is_head = text.is_head();
  stream.priority = text.priority();
  stream.expected = text.length().value_or(Stream::kOpenEnd);
  if (block.ends_stream) stream.receiving = Stream::Receiving::kEnded;
  std::erase_if(early_priorities_, [&](const auto& early) {
    if (early.first == block.stream) stream.priority = early.second;
    return early.first <= block.stream;
  });
  begin_stream(block, text);
}

void ServerSession::begin_stream(const Block& block, RequestText& text) {
  StreamHandler* handler = nullptr;
  if (text.kind() == RequestText::Kind::kRequest) {
    handler = handler_.on_request(block.stream, {.text = text.text(),
                                                 .scheme = text.scheme(),
                                                 .authority = text.authority(),
                                                 .has_content = !block.ends_stream});
  } else {
    handler = handler_.on_connect(block.stream, {.text = text.text(),
                                                 .authority = text.authority(),
                                                 .protocol = text.protocol(),
                                                 .scheme = text.scheme(),
                                                 .has_content = !block.ends_stream});
  }
  Stream* const stream = streams().find(block.stream);
  if (stream == nullptr) return;
  ENCORE_CHECK(handler != nullptr || stream->content == nullptr, "content has a handler");
  stream->handler = handler;
  if (handler == nullptr && stream->sending == Stream::Sending::kNothing) {
    reset(block.stream, ErrorCode::kInternalError);
  }
}

bool ServerSession::is_idle(StreamId stream) const {
  return stream % 2 == 0 || (stream > last_peer_stream() && !is_refusing());
}

void ServerSession::on_priority_update(StreamId id, std::string_view value) {
  if (id == 0 || id % 2 == 0) {
    fail(ErrorCode::kProtocolError, "PRIORITY_UPDATE of no stream");
    return;
  }
  if (id <= last_peer_stream()) {
    set_priority(id, parse_priority(value));
    return;
  }
  std::erase_if(early_priorities_, [id](const auto& early) { return early.first == id; });
  if (early_priorities_.size() < kEarlyPrioritiesMax) {
    early_priorities_.emplace_back(id, parse_priority(value));
  }
}

}  // namespace encore::h2
