// ContentRest: the rest of a request's content that its origin goes on reading behind a complete
// response (RFC 9110 10.1.1), as the exchange sees it. Confined to its worker.
#pragma once

#include <cstdint>
#include <optional>

#include "base/time.h"
#include "proxy/exchange/upload.h"
#include "proxy/transfer/transfer.h"

namespace encore::server {

class ContentRest {
 public:
  // The response is begun. Whether the rest may be taken behind it. `transfer` may be null.
  bool offer(const Transfer* transfer, const Upload& upload) {
    is_offered_ = is_taken_by(transfer, upload);
    return is_offered_;
  }
  // The response is sent, or more of the rest has come. Whether the exchange goes on for it.
  bool goes_on(const Transfer* transfer, Upload& upload, MonotonicTime now) {
    if (!is_offered_ || !is_taken_by(transfer, upload)) return false;
    if (!begin_) {
      begin_ = upload.bytes();
      upload.restart(now);
    }
    return true;
  }
  // The response is sent, and the exchange has gone on.
  bool has_begun() const { return begin_.has_value(); }
  // Bytes of it that have come.
  std::uint64_t bytes(const Upload& upload) const { return begin_ ? upload.bytes() - *begin_ : 0; }

 private:
  static bool is_taken_by(const Transfer* transfer, const Upload& upload) {
    if (upload.is_done() || transfer == nullptr) return false;
    const Producer* const producer = transfer->producer_here();
    return producer != nullptr && producer->takes_rest();
  }

  bool is_offered_ = false;
  std::optional<std::uint64_t> begin_;  // the content that had come by then
};

}  // namespace encore::server
