#include "proxy/net/tunnel.h"

#include <string_view>

namespace encore::net {

Tunnel::Tunnel(Stream& first, Stream& second, OnDone on_done)
    : first_(first), second_(second), on_done_(std::move(on_done)) {
  for (Stream* stream : {&first_, &second_}) {
    stream->set_handler(this);
    stream->resume_reading();
    // Its end was read before the tunnel was there, and is not told again.
    if (stream->is_eof() && stream->kept_bytes() == 0) pass_end(*stream);
  }
}

std::size_t Tunnel::on_data(Stream& from, std::span<const std::byte> bytes) {
  Stream& to = other(from);
  const WriteResult written = to.write({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  switch (written.status) {
    case WriteStatus::kAll:
      if (from.is_eof()) on_eof(from);  // it came while these bytes were kept
      break;
    case WriteStatus::kBlocked:
      from.pause_reading();
      break;
    case WriteStatus::kError:
      finish(failure_of(to));
      break;
  }
  return written.bytes;
}

void Tunnel::on_writable(Stream& to) { other(to).resume_reading(); }

void Tunnel::on_eof(Stream& from) {
  // An end comes behind all bytes: a stream is not read while it keeps some.
  pass_end(from);
  if (first_ended_ && second_ended_) finish(TunnelOutcome::kClosed);
}

void Tunnel::pass_end(Stream& from) {
  (&from == &first_ ? first_ended_ : second_ended_) = true;
  other(from).shutdown_write();
}

void Tunnel::on_error(Stream& stream, CloseReason, int) { finish(failure_of(stream)); }

void Tunnel::finish(TunnelOutcome outcome) {
  OnDone on_done = std::move(on_done_);
  on_done(outcome);
}

}  // namespace encore::net
