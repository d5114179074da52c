// A response's head as a fetch has it once it has come.
#pragma once

#include <string_view>

#include "proxy/http/targeted.h"
#include "proxy/origin/received_response.h"
#include "tests/http/heads.h"
#include "tests/origin/world.h"

namespace encore::server {

// `text` is kept by the caller.
inline void receive(World& world, std::string_view text, ReceivedResponse& received,
                    http::Method asked = http::Method::kGet) {
  received.head = http::response_head(text);
  received.head_bytes = text;
  received.request_policy = &world.runtime->reverse;
  received.directives = http::effective_directives(received.head.fields, {});
  received.framing = http::response_framing(asked, received.head);
  received.time = received.request_time = world.loop->now();
  received.wall = world.loop->wall_now();
  received.invalidations_seen = world.inflight.invalidations().count();
}

}  // namespace encore::server
