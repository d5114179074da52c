// What a plain hit is: a fresh stored response that answers a GET as it is, with nothing in request
// or response that asks for a closer look. All else goes the long way, through an exchange. Pure,
// thread-safe.
#pragma once

#include "base/time.h"
#include "proxy/http/stored_meta.h"
#include "proxy/request/request_view.h"
#include "proxy/settings/runtime.h"
#include "proxy/transfer/response.h"

namespace encore::server {

// Whether a request may have a plain hit at all: what is stored need be looked up only then.
inline bool may_be_hit(const RequestView& view) {
  return view.head->method == http::Method::kGet && !view.key.empty();
}

// REQUIRES: may_be_hit(view); `found` is what is stored for it.
inline bool is_plain_hit(const RequestView& view, const CacheView& found, const Runtime& runtime,
                         MonotonicTime now) {
  if (!found.object) return false;
  const http::Fields& fields = view.head->fields;
  const ObjectMeta& meta = meta_of(*found.object);
  return meta.plain == ObjectMeta::kPlain && !fields.has_any(http::kRequestExtras) &&
         !fields.has(http::FieldId::kExpect) && !fields.has(http::FieldId::kUpgrade) &&
         (view.framing.kind == http::BodyKind::kNone ||
          (view.framing.kind == http::BodyKind::kLength && view.framing.length == 0)) &&
         (view.rule == nullptr || view.rule->allows_plain_hits()) &&
         !runtime.config.cache.cache_status_key && now < found.fresh_until &&
         http::is_fresh(meta.http, now);
}

}  // namespace encore::server
