#include "proxy/client/http2_responder.h"

#include <algorithm>

#include "proxy/client/http1_writer.h"
#include "proxy/client/read_limits.h"
#include "proxy/h2/frame.h"

namespace encore::server {
void Http2Responder::check_read_rate(MonotonicTime now) {
  if (session().status(id_) != h2::SendStatus::kBlocked) {
    pace_.record_unblocked();
    account(client());
    return;
  }
  pace_.record_blocked(now, taken_bytes());
  account(client());
  if (pace_.is_below(minimum_read_rate(carrier_.services().runtime->config))) cut();
}

void Http2Responder::account(const net::Address& client) {
  const bool is_blocked = session().status(id_) == h2::SendStatus::kBlocked;
  if (!is_blocked && holding_.bytes() == 0) return;
  holding_.set(carrier_.services().transfer_memory, client, is_blocked ? held_bytes() : 0);
}

bool Http2Responder::is_slow() const { return is_slow_for(pace_, held_bytes()); }

bool Http2Responder::is_over_share() const {
  return holding_.is_over(
      carrier_.services().runtime->config.limits.transfer_memory_per_client_bytes);
}

std::uint64_t Http2Responder::sent_bytes() const {
  sent_bytes_ = std::max(sent_bytes_, session().sent_bytes(id_));
  return sent_bytes_;
}

// Streams share the kernel's buffer: until all of a response is written, the last bytes of the
// connection may be any stream's.
std::uint64_t Http2Responder::unsent_bytes() const {
  const net::Stream& stream = carrier_.connection_stream();
  const std::uint64_t unsent = stream.bytes_unsent();
  const std::uint64_t behind = end_position_ == 0 ? 0 : stream.bytes_written() - end_position_;
  return std::min(sent_bytes(), unsent - std::min(unsent, behind));
}

// The kernel takes megabytes of which a client that leaves gets nothing: what is recorded of a
// response as delivered is what went out to it. Under TLS there is more of it in the kernel than
// was written here, so that this errs on the safe side.
bool Http2Responder::await_delivery() {
  if (sent_bytes() <= Http1Writer::kLittleBytes) return true;
  const net::Stream& stream = carrier_.connection_stream();
  if (!is_written()) end_position_ = stream.bytes_written();
  if (stream.bytes_unsent() <= stream.bytes_written() - end_position_) return true;
  carrier_.await_delivery();
  return false;
}

std::uint64_t Http2Responder::taken_bytes() const {
  const std::uint64_t sent = sent_bytes();
  const std::uint64_t in_kernel = carrier_.connection_stream().bytes_in_kernel();
  taken_bytes_ = std::max(taken_bytes_, sent - std::min(sent, in_kernel));
  return taken_bytes_;
}

std::uint64_t framed_bytes(std::uint64_t body_bytes) {
  return body_bytes == 0 ? 0 : h2::kFrameHeaderBytes + body_bytes;
}

h2::ContentSource::Peeked peek_for_http2(BodyReader& reader, std::span<iovec> room,
                                         std::size_t bytes_max) {
  using State = h2::ContentSource::State;
  const BodyReader::Peeked seen = reader.peek(room, bytes_max);
  State state = State::kBroken;
  switch (seen.state) {
    case BodyReader::State::kReady:
      state = State::kReady;
      break;
    case BodyReader::State::kWaiting:
      state = State::kWaiting;
      break;
    case BodyReader::State::kEnd:
      state = State::kEnd;
      break;
    case BodyReader::State::kBroken:
      break;
  }
  return {.state = state, .parts = seen.parts, .bytes = seen.bytes};
}

}  // namespace encore::server
