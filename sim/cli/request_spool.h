// RequestSpool: a trace's requests on disk, 32 bytes each (40 with the future), for what must read
// them more than once. Its memory does not grow with the requests. Reading is thread-safe once all
// is written.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/cli/monitor.h"
#include "base/error.h"
#include "sim/cli/spool_file.h"
#include "sim/replay/trace_object.h"

namespace encore::sim {

class RequestSpool {
 public:
  // Errors: those of the file, here and below.
  static Result<RequestSpool> create();

  Result<void> append(std::span<const ReplayRequest> requests);
  // Links each request to the next one for its object (ReplayRequest::next), unless the monitor
  // stops it. REQUIRES: all requests' objects are below `objects`.
  Result<void> link_next(std::size_t objects, Monitor& monitor);
  std::uint64_t size() const { return size_; }

 private:
  friend class SpoolReader;
  explicit RequestSpool(SpoolFile file) : file_(std::move(file)) {}

  SpoolFile file_;
  std::optional<SpoolFile> next_;
  std::uint64_t size_ = 0;
};

// Reads a spool from its beginning. Several may do so at the same time; one is confined to a
// thread.
class SpoolReader {
 public:
  // `objects` has the requests' keys; both must outlive the reader.
  SpoolReader(const RequestSpool& spool, const ObjectTable& objects)
      : spool_(spool), objects_(objects) {}
  // The next requests, some thousands, valid until the next call; none at the end.
  Result<std::span<const ReplayRequest>> read();

 private:
  const RequestSpool& spool_;
  const ObjectTable& objects_;
  std::uint64_t at_ = 0;
  std::vector<std::byte> records_;
  std::vector<std::uint64_t> next_;
  std::vector<ReplayRequest> requests_;
};

}  // namespace encore::sim
