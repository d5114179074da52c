#include "proxy/server/request_context.h"

#include <array>
#include <vector>

#include "base/check.h"
#include "proxy/http/hop_by_hop.h"

namespace encore::server {
namespace {

using http::FieldId;

constexpr http::FieldSet kConditionalFields = {FieldId::kRange,       FieldId::kIfRange,
                                               FieldId::kIfNoneMatch, FieldId::kIfModifiedSince,
                                               FieldId::kIfMatch,     FieldId::kIfUnmodifiedSince};

void append_field(std::string_view name, std::string_view value, std::string& out) {
  out += name;
  out += ": ";
  out += value;
  out += "\r\n";
}

// RFC 9110 7.6.2: OPTIONS and TRACE count down.
std::string decremented(std::string_view value) {
  std::uint64_t hops = 0;
  if (!http::parse_decimal(value, hops) || hops == 0) return std::string(value);
  return std::to_string(hops - 1);
}

void append_forwarded(const RequestContext& request, std::string& out) {
  const http::Fields& fields = request.head.fields;
  std::string chain;
  fields.for_each(FieldId::kXForwardedFor, [&](const http::Field& field) {
    chain += field.value;
    chain += ", ";
  });
  append_field("X-Forwarded-For", chain + request.client.ip_string(), out);
  if (!fields.has(FieldId::kXForwardedProto)) {
    append_field("X-Forwarded-Proto", to_string(request.target.scheme), out);
  }
  if (!fields.has(FieldId::kXForwardedHost) && fields.has(FieldId::kHost)) {
    append_field("X-Forwarded-Host", fields.value(FieldId::kHost), out);
  }
}

// One field, hop after hop (RFC 9110 7.6.3).
void append_via(const RequestContext& request, std::string& out) {
  const std::string& own = request.head.version == http::Version::kHttp11
                               ? request.runtime->via_field_11
                               : request.runtime->via_field_10;
  const std::size_t name = std::string_view("Via: ").size();
  out.append(own, 0, name);
  request.head.fields.for_each(FieldId::kVia, [&](const http::Field& field) {
    if (field.value.empty()) return;
    out += field.value;
    out += ", ";
  });
  out.append(own, name);
}

}  // namespace

RequestContext::RequestContext(std::shared_ptr<const Runtime> settings, std::string_view head_bytes,
                               const Route* origin_route, const net::Address& peer)
    : runtime(std::move(settings)), bytes(head_bytes), route(origin_route), client(peer) {
  head.fields.reserve(16);
  http::ParseError error;
  const auto parsed = http::parse_request(bytes, runtime->head_limits, head, error);
  ENCORE_CHECK(parsed == http::ParseStatus::kComplete, "the head was parsed before");
  const auto resolved = http::resolve_target(head, http::Scheme::kHttp, target);
  ENCORE_CHECK(resolved == http::TargetStatus::kOk, "the target was resolved before");
  directives = http::parse_request_directives(head.fields);
  framing = http::request_framing(head);
}

std::string build_origin_request(const RequestContext& request, const OriginServer* server,
                                 const OriginRequestOptions& options) {
  const http::RequestHead& head = request.head;
  std::string out;
  out.reserve(request.bytes.size() + 256);
  out += head.method_text;
  out += ' ';
  const std::size_t line = out.size();
  out.resize(line + request.target.path.size() + request.target.query.size() + 2);
  out.resize(line +
             http::write_origin_form(request.target, head.method, std::span(out).subspan(line)));
  out += " HTTP/1.1\r\nHost: ";
  if (server != nullptr &&
      (!request.route->preserves_host() || request.target.authority.host.empty())) {
    out += server->authority;
  } else {
    const std::size_t host = out.size();
    out.resize(host + request.target.authority.host.size() + 8);
    out.resize(host + http::write_host(request.target, std::span(out).subspan(host)));
  }
  out += "\r\n";
  const http::HopByHop hop_by_hop(head.fields);
  for (const http::Field& field : head.fields) {
    if (field.id == FieldId::kHost || field.id == FieldId::kContentLength ||
        field.id == FieldId::kVia) {
      continue;
    }
    if (hop_by_hop.drops(field)) continue;
    if (options.whole && kConditionalFields.has(field.id)) continue;
    if (options.drop_expect && field.id == FieldId::kExpect) continue;
    if (!request.is_forward() && field.id == FieldId::kXForwardedFor) continue;
    if (field.id == FieldId::kMaxForwards && http::is_idempotent(head.method)) {
      append_field(field.name, decremented(field.value), out);
    } else {
      append_field(field.name, field.value, out);
    }
  }
  if (http::accepts_trailers(head)) out += "TE: trailers\r\nConnection: TE\r\n";
  if (request.framing.kind == http::BodyKind::kLength) {
    append_field("Content-Length", std::to_string(request.framing.length), out);
  } else if (request.framing.kind == http::BodyKind::kChunked) {
    out += "Transfer-Encoding: chunked\r\n";
  }
  out += options.validation_fields;
  if (!request.is_forward()) append_forwarded(request, out);
  append_via(request, out);
  out += "\r\n";
  return out;
}

}  // namespace encore::server
