// A plain hit: a fresh stored response that answers a GET unchanged, with nothing in request or
// response that asks for a closer look; the fields that it adds to its stored head, and its record.
// All else goes the long way, through an exchange. Pure but for the log, thread-safe. Why hits do
// not take that way: docs/decisions/0051.
#pragma once

#include <cstddef>
#include <string_view>

#include "base/time.h"
#include "proxy/exchange/request_facts.h"
#include "proxy/exchange/request_log.h"
#include "proxy/exchange/response_coding.h"
#include "proxy/http/coded_head.h"
#include "proxy/http/reply_text.h"
#include "proxy/http/stored_meta.h"
#include "proxy/net/address.h"
#include "proxy/request/request_ids.h"
#include "proxy/request/request_view.h"
#include "proxy/request/request_view_builder.h"
#include "proxy/settings/runtime.h"
#include "proxy/transfer/response.h"

namespace encore::server {

// True if a request may have a plain hit at all: only then the cache need be looked up.
inline bool may_be_hit(const RequestView& view) {
  return view.head->method == http::Method::kGet && !view.key.empty();
}

// REQUIRES: may_be_hit(view); `found` is the result of its lookup.
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

// The field lines of a plain hit that follow its stored head. They are written without allocation.
class HitLines {
 public:
  // Both are borrowed.
  HitLines(const Runtime& runtime, const RequestView& view, HitForm form)
      : via_(view.policy == nullptr || view.policy->via ? std::string_view(runtime.via_field_11)
                                                        : std::string_view("")),
        says_status_(view.policy == nullptr || view.policy->cache_status),
        varies_(form == HitForm::kVaries),
        rule_(view.rule) {
    if (runtime.config.log.request_id == config::RequestIds::kRespond) [[unlikely]] {
      id_ = view.request_id;
    }
  }
  std::size_t bytes_max() const {
    const std::size_t usual = http::kHitFieldsBytesMax + via_.size();
    return is_usual() ? usual : usual + others_bytes_max();
  }
  // Returns the length. REQUIRES: `out` has room for bytes_max().
  std::size_t write(const http::StoredMeta& meta, MonotonicTime now, char* out) const {
    const std::uint32_t age = http::current_age(meta, now);
    const std::size_t length =
        says_status_ ? http::write_hit_fields(age, http::remaining_ttl(meta, now), via_, out)
                     : http::write_age_fields(age, via_, out);
    return is_usual() ? length : length + write_others(out + length);
  }

 private:
  // Nothing follows but what every hit has.
  bool is_usual() const { return rule_ == nullptr && !varies_ && id_.empty(); }
  std::size_t others_bytes_max() const;
  std::size_t write_others(char* out) const;

  std::string_view via_;
  bool says_status_;
  bool varies_;            // by the codings that the client accepts
  const Rule* rule_;       // that adds fields; null: none
  std::string_view id_{};  // for clients that receive it
};

// The record by the listener's own facts alone; the connection has no part in it.
inline RequestRecord record_of(const RequestView& view, const HitCount& count,
                               const ListenerContext& listener, const net::Address& client) {
  RequestRecord record;
  record.client = &client;
  record.head = view.head;
  record.outcome = Outcome::kHit;
  record.started = count.started;
  record.status = count.status;
  record.sent_bytes = count.sent_bytes;
  record.body_bytes = count.body_bytes;
  record.listener = count.listener;
  record.listener_name = listener.name;
  record.tls = view.tls == nullptr ? nullptr : view.tls->get();
  record.user = view.user;
  record.request_id = view.request_id;
  record.rule = view.rule;
  record.intercepted = view.inside != nullptr;
  return record;
}

// Its client had gone before any of the response went out.
void set_unsent(RequestRecord& record);

}  // namespace encore::server
