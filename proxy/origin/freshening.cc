#include "proxy/origin/freshening.h"

#include <span>
#include <string>

#include "proxy/http/conditional.h"
#include "proxy/http/reuse.h"
#include "proxy/http/stored_head.h"
#include "proxy/http/vary.h"
#include "proxy/origin/entry.h"
#include "proxy/origin/response_plan.h"
#include "proxy/transfer/response.h"

namespace encore::server {
namespace {

// Puts the freshened response in the place of the old one. False where there is no room for it.
bool store_freshened(OriginServices& services, const RequestContext& request,
                     const Received& received, const ObjectMeta& meta, std::uint64_t old_variant,
                     store::ObjectRef& made) {
  const cache::Key key = cache_key(request);
  const MonotonicTime now = services.loop.now();
  const cache::Stored entry{.variant = meta.variant,
                            .charge_bytes = made->charge(),
                            .fresh_until = meta.http.fresh_until,
                            .keep_until = keep_until(request, received, meta.http),
                            .payload = made.payload()};
  bool stored = false;
  if (meta.variant == old_variant) {
    stored = services.kernel.freshen(key, entry, now) == cache::FreshenOutcome::kFreshened;
  } else {
    services.kernel.remove(key, old_variant, now);
    const std::uint64_t room = entry.charge_bytes + services.kernel.charge_of_entry();
    if (services.kernel.reserve(key, room, now) != cache::ReserveOutcome::kReserved) return false;
    const auto outcome = services.kernel.commit(key, entry, room, now);
    stored = outcome == cache::CommitOutcome::kStored || outcome == cache::CommitOutcome::kReplaced;
  }
  if (stored) {
    (void)made.detach();
    drop_if_overtaken(services, request, received, meta);
  }
  // Where the cache let it go meanwhile, it is as good for those who wait.
  return true;
}

}  // namespace

Confirmed freshen_stored(OriginServices& services, const RequestContext& request,
                         const Received& received, const store::ObjectRef& old) {
  const Runtime& runtime = *request.runtime;
  ObjectMeta meta = meta_of(*old);
  std::string head;
  const http::Freshened freshened =
      http::freshen(stored_head_of(*old), received.head,
                    {.request = request.head,
                     .target = request.target,
                     .directives = request.directives,
                     .targets = request.targets(),
                     .exchange = received.exchange()},
                    runtime.store_options, runtime.head_options, head);
  meta.http = freshened.meta;
  complete_meta(services, request, received, meta.http);
  place_content_type(head, meta);
  head += trailers_of(*old);
  std::string tags = tags_in(received.head.fields, runtime.config.cache.tag_fields);
  if (tags.empty()) tags = tags_of(*old);
  meta.tag_bytes = static_cast<std::uint32_t>(tags.size());
  head += tags;
  std::string key(old->key());
  bool allowed = freshened.decision.ok();
  if (allowed && freshened.names != names_of(*old)) {
    // It is this request's variant by other fields than it was stored by.
    std::string own;
    allowed = http::write_variant_key(freshened.names, request.head.fields, request.vary(), own);
    meta.variant = variant_of(freshened.names, own);
    meta.names_bytes = static_cast<std::uint32_t>(freshened.names.size());
    key = std::string(primary_key_of(*old)) + freshened.names + own;
  }
  auto made = services.store.with_head(
      old, {.key = key, .meta = std::as_bytes(std::span(&meta, 1)), .head = head});
  Confirmed confirmed{.object = made ? *made : old, .stays = false};
  const std::uint64_t old_variant = meta_of(*old).variant;
  if (allowed) {
    confirmed.stays =
        made && store_freshened(services, request, received, meta, old_variant, *made);
  } else if (!is_of_the_request(freshened.decision.reason)) {
    services.kernel.remove(cache_key(request), old_variant, services.loop.now());
  }
  return confirmed;
}

void update_by_head(OriginServices& services, const RequestContext& request,
                    const Received& received, const store::ObjectRef& old) {
  const ObjectMeta& meta = meta_of(*old);
  const http::Validators stored = http::stored_validators(meta.http, stored_head_of(*old));
  const auto shown = http::head_shows(stored, received.head, old->body_size(), received.arrival());
  const bool same_status = received.head.status == meta.http.status;
  if (same_status && shown == http::HeadShows::kSame) {
    (void)freshen_stored(services, request, received, old);
  } else if (!http::is_error_status(received.head.status) &&
             (!same_status || shown == http::HeadShows::kChange)) {
    const MonotonicTime now = services.loop.now();
    services.latest_moment.note(now);
    services.kernel.mark_stale(cache_key(request), now);
  }
}

}  // namespace encore::server
