#include "proxy/client/http1_stream.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "proxy/client/http1_text.h"
#include "proxy/http/hop_by_hop.h"

namespace encore::server {
namespace {

http::ChunkedDecoder::Limits chunk_limits(const RequestContext& request) {
  const config::Limits& limits = request.runtime->config.limits;
  return {.extension_bytes_max = limits.chunk_extension_bytes,
          .trailer_bytes_max = limits.trailers_bytes};
}

ClientStream::Status status_of(Http1Writer::Status status) {
  switch (status) {
    case Http1Writer::Status::kDone:
      return ClientStream::Status::kDone;
    case Http1Writer::Status::kBlocked:
      return ClientStream::Status::kBlocked;
    case Http1Writer::Status::kWaiting:
      return ClientStream::Status::kWaiting;
    case Http1Writer::Status::kMore:
      return ClientStream::Status::kMore;
    case Http1Writer::Status::kBroken:
      return ClientStream::Status::kBroken;
    case Http1Writer::Status::kDead:
      break;
  }
  return ClientStream::Status::kDead;
}

}  // namespace

Http1Stream::Http1Stream(Http1Carrier& carrier, const ExchangeServices& services,
                         std::shared_ptr<const RequestContext> request, CacheView found)
    : carrier_(carrier),
      request_(std::move(request)),
      body_(request_->framing, chunk_limits(*request_)),
      keeps_alive_(http::keep_alive(request_->head)),
      exchange_(services, *this, request_, std::move(found)) {}

// A request body that was not read to its end would be taken for the next request.
bool Http1Stream::may_go_on() const {
  return keeps_alive_ && body_.is_done() && !carrier_.is_draining();
}

// True if nothing that the client has sent, or did not send, can break the request any more.
bool Http1Stream::is_request_taken() const {
  return body_.is_done() || exchange_.content_demand() == Exchange::ContentDemand::kNever;
}

std::size_t Http1Stream::on_data(std::string_view bytes) {
  std::size_t used = 0;
  while (used < bytes.size() && !body_.is_done() && state_ != State::kEnded) {
    const Exchange::ContentDemand demand = exchange_.content_demand();
    if (demand == Exchange::ContentDemand::kLater) return used;
    if (demand == Exchange::ContentDemand::kNever) return bytes.size();
    const Http1RequestBody::Step step = body_.next(bytes.substr(used));
    used += step.used;
    switch (step.what) {
      case Http1RequestBody::What::kNothing:
        return used;
      case Http1RequestBody::What::kContent:
        exchange_.on_content(step.content);
        break;
      case Http1RequestBody::What::kEnd:
        exchange_.on_content_end(body_.trailers());
        break;
      case Http1RequestBody::What::kBad:
        exchange_.on_content_broken("bad-chunk");
        return bytes.size();
    }
  }
  return used;
}

void Http1Stream::on_peer_end() {
  // Bytes sent before the end come first: the rest of the body, further requests.
  if (state_ == State::kEnded || carrier_.stream().kept_bytes() != 0) return;
  // A half-closed client still reads (RFC 9112 9.6); one that has gone is seen when we write.
  keeps_alive_ = false;
  if (is_request_taken()) return;
  const After after = after_cut();
  on_gone({.detail = "unfinished-request", .unsent = unsent_after(after)});
  carrier_.on_stream_end(after);
}

void Http1Stream::on_gone(const ClientGone& why) {
  if (state_ == State::kEnded) return;
  state_ = State::kEnded;
  exchange_.on_gone(why);
}

// A length or the chunks show a client that some is missing. Only where the end of the connection
// is the end of the body must that be a reset, which also takes what the client has not read yet of
// responses before (RFC 9112 9.6).
Http1Stream::After Http1Stream::after_cut() const {
  return shown_ == Shown::kByConnection ? After::kAbort : After::kClose;
}

void Http1Stream::check_timeouts(MonotonicTime now) {
  exchange_.check_timeouts(now);
  if (state_ == State::kEnded) return;
  const Nanoseconds limit = request_->runtime->config.timeouts.client_write;
  const bool waits = state_ == State::kOpen && carrier_.has_peer_ended() && is_request_taken();
  // Only where it is the client that is waited for. Its input meanwhile does not count.
  const bool stalled = limit.count() != 0 && writer_.stalled_for(now, carrier_.stream()) >= limit;
  if (!stalled && !(waits && has_client_gone())) return;
  on_gone({.detail = stalled ? std::string_view("client-write") : "reset"});
  carrier_.on_stream_end(After::kAbort);
}

// A client that has closed its connection and one that has only ended its side of it look alike
// until something is sent: the first answers with a reset. Every response, interim ones too, begins
// with its version, so that goes ahead; the next look sees what came of it. Why waiting has no
// limit of its own: docs/decisions/0071.
bool Http1Stream::has_client_gone() {
  if (carrier_.stream().was_reset()) return true;
  if (knocked_) return false;
  const Http1Writer::Status status = writer_.send_ahead(carrier_.stream(), "HTTP/1.1 ");
  knocked_ = status == Http1Writer::Status::kDone;
  return status == Http1Writer::Status::kDead;
}

void Http1Stream::send_interim(std::string_view head) {
  ENCORE_CHECK(state_ == State::kOpen, "interim responses come before the final one");
  writer_.add_text(std::string(head));
}

void Http1Stream::begin(Response response, BodyReader& content) {
  ENCORE_CHECK(state_ == State::kOpen, "a request has one response");
  state_ = State::kBegun;
  const bool open = response.framing == Framing::kOpen;
  const bool chunked = open && request_->head.version == http::Version::kHttp11;
  if (open && !chunked) shown_ = Shown::kByConnection;
  if (shown_ == Shown::kByConnection || response.further == Further::kNone) keeps_alive_ = false;
  // The client is held to this, whatever ends meanwhile. Another request may follow the rest of the
  // content, too.
  keeps_alive_ = response.further == Further::kBehindContent
                     ? keeps_alive_ && !carrier_.is_draining()
                     : may_go_on();
  if (chunked) response.head += kChunkedField;
  response.head += connection_field(request_->head.version, keeps_alive_);
  response.head += kHeadEnd;
  writer_.add_text(std::move(response.head));
  if (response.framing == Framing::kNone) return;
  writer_.set_content(content,
                      chunked ? Http1Writer::Coding::kChunked : Http1Writer::Coding::kIdentity,
                      chunked ? response.trailers : nullptr);
}

ClientStream::Status Http1Stream::pump() {
  ENCORE_CHECK(state_ != State::kEnded, "nothing is sent behind the end");
  const Http1Writer::Status status = writer_.pump(carrier_.stream());
  carrier_.account(writer_);
  return status_of(status);
}

void Http1Stream::end(End how) {
  ENCORE_CHECK(state_ != State::kEnded, "a request ends once");
  ENCORE_CHECK(how != End::kDone || state_ == State::kBegun, "a whole response was begun");
  state_ = State::kEnded;
  switch (how) {
    case End::kDone:
      carrier_.on_stream_end(may_go_on() ? After::kNext : After::kClose);
      return;
    case End::kBroken:
      carrier_.on_stream_end(after_cut());
      return;
    case End::kReset:
      carrier_.on_stream_end(After::kAbort);
      return;
  }
}

void Http1Stream::switch_protocol(SwitchedConnection switched) {
  ENCORE_CHECK(state_ == State::kOpen, "a request has one response");
  state_ = State::kEnded;
  carrier_.on_switched(request_, std::exchange(writer_, {}), std::move(switched));
}

void Http1Stream::want_content() { carrier_.resume(); }

std::uint64_t Http1Stream::unsent_bytes() const {
  return std::min(writer_.sent_bytes(), carrier_.stream().bytes_unsent());
}

std::uint64_t Http1Stream::taken_bytes() const { return carrier_.stream().bytes_taken(); }

bool Http1Stream::has_taken_all() const {
  return carrier_.stream().bytes_taken() == carrier_.stream().bytes_written();
}

Nanoseconds Http1Stream::round_trip() const { return carrier_.stream().round_trip(); }

}  // namespace encore::server
