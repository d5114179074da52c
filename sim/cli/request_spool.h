// RequestSpool: a trace's requests on disk, for what must read them more than once: 5 to 33 bytes
// each, by how much a request has in common with the one before, and 8 with the future. Its memory
// is 2 bytes for a thousand requests. Reading is thread-safe once all is written.
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

  // Requests that are written and read together: small enough to stay in the core's cache. All but
  // the last batch are in the file.
  static constexpr std::uint64_t kBatch = 4096;
  // `bytes` is room for it.
  Result<void> read_batch(std::uint64_t number, std::vector<std::byte>& bytes,
                          std::vector<ReplayRequest>& requests) const;

  SpoolFile file_;
  std::optional<SpoolFile> next_;
  std::uint64_t size_ = 0;
  std::vector<std::uint64_t> ends_;  // bytes of the file up to each end of a batch
  std::vector<std::byte> batch_;     // the last one, where it is not in the file
  std::size_t batch_bytes_ = 0;
  // The last request's.
  std::int64_t last_time_ns_ = 0;
  std::uint64_t last_size_bytes_ = 0;
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
  std::vector<std::byte> bytes_;
  std::vector<std::uint64_t> next_;
  std::vector<ReplayRequest> requests_;
};

}  // namespace encore::sim
