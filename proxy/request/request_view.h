// RequestView: a parsed request with its target, route and cache key, as views into the read
// buffer and the worker's key buffer: what a hit is answered from, without a copy.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/time.h"
#include "filter/hash.h"
#include "proxy/http/framing.h"
#include "proxy/http/message.h"
#include "proxy/http/uri.h"
#include "proxy/settings/router.h"
#include "proxy/store/object.h"

namespace encore::server {

struct RequestView {
  const http::RequestHead* head = nullptr;
  http::Target target;
  http::Framing framing;
  const Route* route = nullptr;  // null: forward
  std::string_view key;          // realm and normalised URI; empty: never cached
  filter::Hash128 hash{};
};

// What the cache had for a request.
struct CacheView {
  store::ObjectRef object;    // empty: nothing that matches
  bool any_resident = false;  // another variant is there
  // When it is stale by the kernel: a soft purge sets this before the response's own time.
  MonotonicTime fresh_until{};
};

}  // namespace encore::server
