#include "proxy/origin/passed_response.h"

#include <utility>

#include "base/recycled.h"
#include "proxy/http/head_text.h"
#include "proxy/http/hop_by_hop.h"
#include "proxy/http/vary.h"
#include "proxy/origin/entry.h"

namespace encore::server {

PassedResponse make_passed_response(const OriginServices& services, const RequestContext& request,
                                    ReceivedResponse& received, bool whole) {
  http::StoreDecision decision = http::may_store(
      request.head, request.target, request.directives, received.head, received.directives,
      received.arrival(), received.request_policy->store, heuristic_for(request, received));
  auto response = make_reused<SharedResponse>();
  response->names = http::selecting_names(received.head.fields, request.vary());
  if (response->names != "*" && !http::write_variant_key(response->names, request.head.fields,
                                                         request.vary(), response->variant_key)) {
    // Its key would be too long: like a response that varies by anything it matches no request (RFC
    // 9111 4.1).
    response->names = "*";
    if (decision.ok()) decision.reason = http::StoreReason::kVaryTooLarge;
  }
  response->reason = decision.reason;
  if (!request.is_cacheable()) {
    response->reason = request.asks_upgrade() ? http::StoreReason::kUpgrade
                       : request.has_uri()
                           ? http::StoreReason::kRule  // which has left it without a key
                           : http::StoreReason::kMethod;
  }
  if (received.framing.kind == http::BodyKind::kLength) response->length = received.framing.length;
  if (received.framing.kind == http::BodyKind::kNone && received.head.status != 204) {
    // A HEAD's or a 304's Content-Length speaks of another message's body.
    std::uint64_t told = 0;
    if (http::parse_decimal(received.head.fields.value(http::FieldId::kContentLength), told)) {
      response->length = told;
    }
  }
  // Dates are read only where somebody will ask for them.
  if (decision.ok() || request.head.fields.has_any(http::kRequestExtras)) {
    response->meta = http::make_stored_meta(received.head, received.directives, decision.lifetime,
                                            received.exchange());
    if (came_with_cookie(request, received)) {
      response->meta.flags |= http::StoredMeta::kWithCookie;
    }
    complete_meta(request, received, response->meta);
  } else {
    response->meta.status = received.head.status;
  }
  response->admission = received.request_policy->admission;
  response->variant = variant_of(response->names, response->variant_key);
  response->whole = whole && received.head.status == 200;
  if (services.worker.logs_requests()) {
    response->content_type = received.head.fields.value(http::FieldId::kContentType);
  }
  const CommonHead common = build_forward_head(received.head,
                                               {.length = response->length,
                                                .http_date = services.loop.http_date(),
                                                .withheld = received.directives.stripped_fields},
                                               request.head_options(), response->head);
  response->common_bytes = common.bytes;
  response->type_place = common.content_type;
  place_etag(response->head, received.head.fields.value(http::FieldId::kEtag), response->meta);
  if (decision.strips_set_cookie) received.directives.stripped_fields.emplace_back("set-cookie");
  return {.response = std::move(response), .decision = decision};
}

std::string switching_text(const RequestContext& request, const http::ResponseHead& head,
                           std::string_view protocol) {
  std::string text;
  http::append_status_line(head.status, head.reason, text);
  const http::HopByHop hop_by_hop(head.fields);
  for (const http::Field& field : head.fields) {
    if (field.id == http::FieldId::kContentLength || hop_by_hop.drops(field)) continue;
    http::append_field(field.name, field.value, text);
  }
  http::append_field("Connection", "upgrade", text);
  http::append_field("Upgrade", protocol, text);
  text += request.via_field(http::Version::kHttp11);
  text += "\r\n";
  return text;
}

std::string interim_text(const RequestContext& request, const http::ResponseHead& head) {
  std::string text;
  http::append_status_line(head.status, head.reason, text);
  const http::HopByHop hop_by_hop(head.fields);
  for (const http::Field& field : head.fields) {
    if (!hop_by_hop.drops(field)) http::append_field(field.name, field.value, text);
  }
  text += request.via_field(http::Version::kHttp11);
  text += "\r\n";
  return text;
}

}  // namespace encore::server
