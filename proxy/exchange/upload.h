// Upload: the content of a request on its way to an origin: how much of it has come, and whether
// the client brings it fast enough. Confined to its worker.
#pragma once

#include <cstdint>

#include "base/time.h"
#include "proxy/request/request_context.h"

namespace encore::server {

class Upload {
 public:
  // `request` is borrowed.
  Upload(const RequestContext& request, MonotonicTime now);

  std::uint64_t bytes() const { return bytes_; }
  // No content, or all of it has come.
  bool is_done() const { return state_ == State::kDone; }

  enum class UploadProgress : std::uint8_t {
    kMore,
    kLast,      // its length was announced
    kTooLarge,  // more than limits.request_body_bytes
  };
  // So many bytes came. REQUIRES: !is_done(); not more than what was announced.
  UploadProgress take(std::uint64_t bytes, MonotonicTime now);
  // Content of a length that was not announced is whole.
  void end();

  // Until now it was the origin that was waited for: the client's time begins.
  void restart(MonotonicTime now);

  enum class Pace : std::uint8_t {
    kGood,
    kSilent,  // nothing for timeouts.client_body
    kSlow,    // less than limits.client_body_rate_min
  };
  // A look while the client is waited for. The pace is measured over one stretch of time after the
  // other, each without a look that found the origin to be waited for: restart().
  Pace look(MonotonicTime now);
  // A look while it is not.
  void look_aside() { stretch_since_ = {}; }

 private:
  enum class State : std::uint8_t { kLength, kOpen, kDone };
  bool is_slow(MonotonicTime now);

  const RequestContext& request_;
  State state_ = State::kDone;
  std::uint64_t bytes_ = 0;
  MonotonicTime activity_;
  // Since when, and from which byte, its pace is measured; zero: not at present.
  MonotonicTime stretch_since_{};
  std::uint64_t stretch_from_ = 0;
};

}  // namespace encore::server
