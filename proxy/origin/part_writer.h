// PartWriter: the path of a long body to disk. Each part is placed and handed over as soon as all
// of it is there, so that no more of the body than its last parts has to be in memory for it.
// Nobody finds parts of a body that is not finished; they go with their segments.
//
// Confined to its worker.
#pragma once

#include <cstdint>
#include <optional>

#include "proxy/origin/services.h"
#include "proxy/request/request_context.h"
#include "proxy/store/body.h"
#include "proxy/transfer/response.h"

namespace encore::server {

class PartWriter {
 public:
  // Borrowed. `useless_from`: when its object is of no use any more. REQUIRES: there are disks.
  PartWriter(OriginServices& services, const RequestContext& request, MonotonicTime useless_from);

  // From the first byte on. False where the body does not keep that any more. REQUIRES: not begun.
  [[nodiscard]] bool begin(store::Body& body);
  bool has_begun() const { return cursor_.has_value(); }
  // The parts are found by it. REQUIRES: begun.
  std::uint64_t number() const { return written_.number; }
  // Hands over what is there and followed by more. False: a part has found no place, and what is
  // written is of no use. REQUIRES: begun.
  [[nodiscard]] bool write(const store::Body& body);
  // Hands over the rest; nothing where a part has found no place. REQUIRES: begun; the body is
  // complete, and not empty.
  std::optional<LargeBody> finish(const store::Body& body);

 private:
  bool write_part(std::uint64_t bytes);

  OriginServices& services_;
  const RequestContext& request_;
  const MonotonicTime useless_from_;
  std::optional<store::Body::Cursor> cursor_;  // begin of the next part
  LargeBody written_;
  std::uint32_t parts_ = 0;
};

}  // namespace encore::server
