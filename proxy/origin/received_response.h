// ReceivedResponse: a response of an origin from its head on, as the parts of a fetch share it:
// what the one parse of its head has found, and when it came. Confined to its worker; its memory is
// used again.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/recycled.h"
#include "base/time.h"
#include "proxy/http/cache_control.h"
#include "proxy/http/date.h"
#include "proxy/http/framing.h"
#include "proxy/http/freshness.h"
#include "proxy/http/message.h"
#include "proxy/settings/request_policy.h"

namespace encore::server {

struct ReceivedResponse {
  http::ResponseHead head;      // views into `head_bytes`
  std::string_view head_bytes;  // the connection's, during the read that brought them; see keep()
  std::string kept;
  http::ResponseDirectives directives;
  http::Framing framing;
  const RequestPolicy* request_policy = nullptr;  // how a response of its type is treated
  WallTime wall{};
  MonotonicTime time{};
  MonotonicTime request_time{};
  std::uint64_t invalidations_seen = 0;  // as the request was sent
  bool private_origin = false;           // only for those who may go where it came from
  bool completed = false;                // made of a stored part and the rest of it
  bool part_with_cookie = false;         // StoredMeta::kWithCookie of that part

  // The head is wanted beyond this read: copies its bytes, and takes the views along.
  void keep() {
    if (head_bytes.data() == kept.data()) return;
    kept = head_bytes;
    head.rebase({head_bytes, kept});
    head_bytes = kept;
  }
  http::UnixSeconds arrival() const { return http::to_unix(wall); }
  http::Exchange exchange() const {
    return {.response_wall = wall, .response_time = time, .request_time = request_time};
  }
  // For make_reused(): a new one takes its place, and the room of its texts with it.
  void clear() {
    constexpr std::size_t kKeptFieldsMax = 64;
    std::string room;
    http::Fields fields;
    if (kept.capacity() <= kReusedTextMax) room = std::move(kept);
    if (head.fields.size() <= kKeptFieldsMax) fields = std::move(head.fields);
    std::destroy_at(this);
    std::construct_at(this);
    room.clear();
    fields.clear();
    kept = std::move(room);
    head.fields = std::move(fields);
  }
};

}  // namespace encore::server
