// Tunnel: joins two streams: what one sends, the other gets, both ways, until both have ended or
// one fails. For CONNECT and for upgraded connections. Confined to its loop's thread.
//
// Memory is bounded: what one side does not take stays in the other's kept bytes, and that side
// is not read meanwhile. An end in one direction is passed on and the other goes on.
#pragma once

#include <cstdint>
#include <functional>

#include "proxy/net/stream.h"

namespace encore::net {

enum class TunnelOutcome : std::uint8_t {
  kClosed,       // both sides ended
  kFirstFailed,  // the first stream failed; the second should be aborted
  kSecondFailed,
};

class Tunnel final : private StreamHandler {
 public:
  // Called once, from the loop; may destroy the tunnel and the streams.
  using OnDone = std::move_only_function<void(TunnelOutcome outcome)>;

  // Borrows both streams, becomes their handler and starts reading both; bytes that they keep
  // are passed on first. Streams must outlive the tunnel, or be destroyed with it. The owner
  // sweeps idle tunnels by the streams' last_activity().
  Tunnel(Stream& first, Stream& second, OnDone on_done);
  ~Tunnel() = default;
  Tunnel(const Tunnel&) = delete;
  Tunnel& operator=(const Tunnel&) = delete;

 private:
  std::size_t on_data(Stream& from, std::span<const std::byte> bytes) override;
  void on_writable(Stream& to) override;
  void on_eof(Stream& from) override;
  void on_error(Stream& stream, CloseReason reason, int os_error) override;
  Stream& other(Stream& stream) { return &stream == &first_ ? second_ : first_; }
  TunnelOutcome failure_of(const Stream& stream) const {
    return &stream == &first_ ? TunnelOutcome::kFirstFailed : TunnelOutcome::kSecondFailed;
  }
  void pass_end(Stream& from);
  void finish(TunnelOutcome outcome);

  Stream& first_;
  Stream& second_;
  OnDone on_done_;
  bool first_ended_ = false;  // its end was passed on to the second
  bool second_ended_ = false;
};

}  // namespace encore::net
