// RangeWait: a request whose ranges are cut from a body that grows, until enough of it is there.
// For a body that does not say its length (docs/decisions/0335) that is the last byte: the head of
// a 206 says which bytes follow, so nothing is said before they are known to exist. For any other,
// where the origin serves ranges, it is the beginning of the last range (docs/decisions/0405): a
// range that is too far away is requested from the origin.
//
// A reader that waits holds the body from its beginning, so that the whole can still be sent. If
// the range begins too far in for that and is small, the reader passes what lies before it.
//
// Confined to its worker.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/time.h"
#include "config/config.h"
#include "proxy/exchange/body_reader.h"
#include "proxy/http/range.h"
#include "proxy/transfer/transfer.h"
#include "proxy/transfer/transfer_reader.h"

namespace encore::server {

class RangeWait {
 public:
  enum class Next : std::uint8_t {
    kWait,    // for more of the body
    kWhole,   // no longer: the client is sent all of it, from here on
    kPart,    // no longer: the origin serves ranges, or this transfer's beginning is gone
    kBroken,  // the body has ended before it was whole
  };
  // The request that waits. Borrowed.
  struct Waiter {
    Transfer& transfer;
    TransferReader& reader;
    BodyReader& content;  // opened where the body is passed
    const config::Config& config;
    MonotonicTime now{};
  };
  // Returns the next step while `needed` is not there yet. REQUIRES: may_wait(); the reader has
  // opened the transfer's body only in an earlier call, if at all.
  Next look(const http::RangeNeed& needed, const Waiter& waiter);

  bool has_begun() const { return state_ != State::kNotYet; }
  bool may_wait() const { return state_ != State::kOver; }
  // True if it has waited for as long as it may (zero: no limit); look() gives up then.
  bool has_timed_out(Nanoseconds limit, MonotonicTime now);

 private:
  enum class State : std::uint8_t { kNotYet, kHolds, kPasses, kOver };
  void begin(const http::RangeNeed& needed, const Waiter& waiter);
  Next give_up(const http::RangeNeed& needed, const SharedResponse& response);

  State state_ = State::kNotYet;
  bool is_impatient_ = false;
  MonotonicTime since_{};
};

}  // namespace encore::server
