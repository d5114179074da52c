#include "proxy/origin/entry.h"

#include <algorithm>
#include <string>

#include "filter/hash.h"

namespace encore::server {

std::uint64_t variant_of(std::string_view names, std::string_view variant_key) {
  if (names.empty()) return 0;
  std::string text(names);
  text += '\n';
  text += variant_key;
  return filter::hash_key(filter::HashFamily::kXxh3, filter::Seed{}, text).lo;
}

void complete_meta(const OriginServices& services, const RequestContext& request,
                   const Received& received, http::StoredMeta& meta) {
  if (received.private_origin) meta.flags |= http::StoredMeta::kPrivateOrigin;
  if (is_overtaken(services, request, received)) meta.flags |= http::StoredMeta::kInvalidated;
  const auto window = std::chrono::duration_cast<std::chrono::seconds>(
      request.runtime->config.cache.stale_while_revalidate);
  if (received.directives.stale_while_revalidate || window.count() == 0) return;
  meta.swr_seconds = static_cast<std::uint32_t>(window.count());
}

MonotonicTime keep_until(const RequestContext& request, const Received& received,
                         const http::StoredMeta& meta) {
  const config::Cache& cache = request.runtime->config.cache;
  Nanoseconds keep = std::max<Nanoseconds>(std::chrono::seconds(meta.swr_seconds),
                                           std::chrono::seconds(meta.sie_seconds));
  const bool validator = meta.is(http::StoredMeta::kHasEtag) || meta.last_modified != http::kNoDate;
  if (validator || cache.serve_stale_on_error) keep = std::max(keep, cache.keep_stale);
  return std::max(meta.fresh_until, received.time) + keep;
}

bool is_overtaken(const OriginServices& services, const RequestContext& request,
                  const Received& received) {
  return services.inflight.invalidations().has_since(request.hash, received.invalidations_seen);
}

void drop_if_overtaken(OriginServices& services, const RequestContext& request,
                       const Received& received, const ObjectMeta& meta) {
  if (meta.http.is(http::StoredMeta::kInvalidated)) return;
  if (!is_overtaken(services, request, received)) return;
  services.kernel.remove(cache_key(request), meta.variant, services.loop.now());
}

}  // namespace encore::server
