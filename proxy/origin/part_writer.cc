#include "proxy/origin/part_writer.h"

#include <utility>

#include "base/check.h"
#include "cache/disk_parts.h"
#include "proxy/disk/disks.h"
#include "proxy/transfer/saved_object.h"

namespace encore::server {

PartWriter::PartWriter(OriginServices& services, const RequestContext& request,
                       MonotonicTime useless_from)
    : services_(services), request_(request), useless_from_(useless_from) {
  ENCORE_CHECK(services.disks != nullptr, "parts are written where there are disks");
}

bool PartWriter::begin(store::Body& body) {
  ENCORE_CHECK(!has_begun(), "a body is written once");
  cursor_ = body.open(0);
  written_.number = services_.disks->new_body_number();
  return cursor_.has_value();
}

bool PartWriter::write(const store::Body& body) {
  // More than a part, for the last one is finish()'s: a body of whole parts ends with a whole one.
  while (body.size() - written_.length > cache::kPartBytes) {
    if (!write_part(cache::kPartBytes)) return false;
  }
  return true;
}

std::optional<LargeBody> PartWriter::finish(const store::Body& body) {
  ENCORE_CHECK(body.state() == store::BodyState::kComplete && body.size() != 0,
               "a body is finished when all of it is there");
  if (!write(body) || !write_part(body.size() - written_.length)) return std::nullopt;
  return written_;
}

bool PartWriter::write_part(std::uint64_t bytes) {
  const MonotonicTime now = services_.loop.now();
  const cache::Key key = cache::part_key(request_.hash, written_.number, parts_);
  const cache::DiskDecision decision =
      services_.kernel.place_part(key,
                                  {.bytes = record_bytes_of_part(bytes),
                                   .queue_full = services_.disks->is_queue_full(),
                                   .useless_from = useless_from_},
                                  now);
  if (decision.outcome != cache::DiskOutcome::kPlaced) return false;
  services_.disks->decided(
      key, decision,
      make_part_source(
          {.cursor = cursor_->copy(), .bytes = bytes, .body = written_.number, .number = parts_},
          key.hash, {now, services_.loop.wall_now()}));
  cursor_->advance(bytes);
  written_.length += bytes;
  ++parts_;
  return true;
}

}  // namespace encore::server
