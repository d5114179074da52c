// RequestPolicy: how a request and its stored response are treated, by the configuration as a whole
// or by one of its rules. Values, immutable once in use; thread-safe.
#pragma once

#include <cstdint>
#include <optional>

#include "cache/types.h"
#include "proxy/http/reuse.h"
#include "proxy/http/sent_fields.h"
#include "proxy/http/storing.h"
#include "proxy/http/uri.h"

namespace encore::server {

struct RequestPolicy {
  http::KeyOptions keys;
  http::StoreOptions store;
  http::ReuseOptions reuse;
  http::StaleOptions stale;
  http::VaryOptions vary;
  std::uint64_t max_object_bytes = 0;
  bool collapse = true;
  bool compress = true;   // if [compression] says so
  bool is_cached = true;  // else nothing is looked up nor stored
  // stale-while-revalidate where the origin gives none; and whatever it says.
  std::uint32_t swr_seconds_default = 0;
  std::optional<std::uint32_t> swr_seconds = {};
  std::optional<std::uint32_t> sie_seconds = {};
  cache::AdmissionRule admission = {};
};

}  // namespace encore::server
