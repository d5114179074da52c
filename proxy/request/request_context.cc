#include "proxy/request/request_context.h"

#include "base/recycled.h"
#include "proxy/http/head_text.h"
#include "proxy/http/hop_by_hop.h"
#include "proxy/http/sent_fields.h"

namespace encore::server {
namespace {

using http::FieldId;

constexpr http::FieldSet kConditionalFields = {FieldId::kRange,       FieldId::kIfRange,
                                               FieldId::kIfNoneMatch, FieldId::kIfModifiedSince,
                                               FieldId::kIfMatch,     FieldId::kIfUnmodifiedSince};

// More is not kept for the next request.
constexpr std::size_t kKeptFieldsMax = 64;

// RFC 9110 7.6.2: OPTIONS and TRACE count down.
std::string decremented(std::string_view value) {
  std::uint64_t hops = 0;
  if (!http::parse_decimal(value, hops) || hops == 0) return std::string(value);
  return std::to_string(hops - 1);
}

// Appends "host[:port]" of the target as its key has it; nothing where there is none.
void append_host(const http::Target& target, std::string& out) {
  if (target.authority.host.empty()) return;
  const std::size_t begin = out.size();
  out.resize(begin + target.authority.host.size() + 8);
  out.resize(begin + http::write_host(target, std::span(out).subspan(begin)));
}

// Whom the origin answers, by what we know ourselves: the connection, and the target that the key
// names. RFC 7239, and the names that were in use before it.
void append_forwarded(const RequestContext& request, std::string& out) {
  const std::string client = request.client.ip_string();
  const std::string_view scheme = to_string(request.target.scheme);
  std::string host;
  append_host(request.target, host);
  http::append_field("X-Forwarded-For", client, out);
  http::append_field("X-Forwarded-Proto", scheme, out);
  if (!host.empty()) http::append_field("X-Forwarded-Host", host, out);
  out += "Forwarded: for=";
  out += request.client.is_v6() ? "\"[" + client + "]\"" : client;
  if (!host.empty()) {
    out += ";host=\"";
    out += host;
    out += '"';
  }
  out += ";proto=";
  out += scheme;
  out += "\r\n";
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

std::shared_ptr<const RequestContext> RequestContext::make(std::shared_ptr<const Runtime> runtime,
                                                           const RequestView& view,
                                                           std::string_view head_bytes,
                                                           const net::Address& client) {
  auto request = make_reused<RequestContext>();
  request->runtime = std::move(runtime);
  request->bytes = head_bytes;
  request->head = *view.head;
  request->target = view.target;
  const http::Rebase rebase{head_bytes, request->bytes};
  request->head.rebase(rebase);
  request->target.rebase(rebase);
  request->directives = http::parse_request_directives(request->head.fields);
  request->framing = view.framing;
  request->route = view.route;
  request->client = client;
  request->key = view.key;
  request->hash = view.hash;
  return request;
}

void RequestContext::clear() {
  runtime.reset();
  if (bytes.capacity() > kReusedTextMax) bytes = std::string();
  if (key.capacity() > kReusedTextMax) key = std::string();
  if (head.fields.size() > kKeptFieldsMax) head = {};
}

Doing doing_for(const RequestContext& request, std::string_view who, std::string_view step) {
  Doing doing{.who = who, .step = step, .request = request.bytes};
  if (request.key.size() > kRealmBytes)
    doing.key = std::string_view(request.key).substr(kRealmBytes);
  doing.client_port = request.client.port();
  return doing;
}

void build_origin_request(const RequestContext& request, const OriginServer* server,
                          const OriginRequestOptions& options, std::string& out) {
  const http::RequestHead& head = request.head;
  out.clear();
  out.reserve(request.bytes.size() + 256);
  out += head.method_text;
  out += ' ';
  const std::size_t line = out.size();
  out.resize(line + request.target.path.size() + request.target.query.size() + 2);
  out.resize(line + http::write_origin_form(request.target, head.method, request.key_options(),
                                            std::span(out).subspan(line)));
  out += " HTTP/1.1\r\nHost: ";
  if (server != nullptr &&
      (!request.route->preserves_host() || request.target.authority.host.empty())) {
    out += server->authority;
  } else {
    append_host(request.target, out);
  }
  out += "\r\n";
  const http::SentFields sent(head.fields, request.vary());
  std::string encodings;
  const bool normalised =
      request.vary().normalise_accept_encoding && http::normalise_accept_encoding(sent, encodings);
  for (const http::Field& field : head.fields) {
    if (field.id == FieldId::kContentLength || field.id == FieldId::kVia) continue;
    if (sent.drops(field)) continue;
    if (normalised && field.id == FieldId::kAcceptEncoding) continue;
    if (options.whole && kConditionalFields.has(field.id)) continue;
    if (options.drop_expect && field.id == FieldId::kExpect) continue;
    if (field.id == FieldId::kMaxForwards && http::is_idempotent(head.method)) {
      http::append_field(field.name, decremented(field.value), out);
    } else {
      http::append_field(field.name, field.value, out);
    }
  }
  if (normalised) http::append_field("Accept-Encoding", encodings, out);
  if (http::accepts_trailers(head)) out += "TE: trailers\r\nConnection: TE\r\n";
  if (request.framing.kind == http::BodyKind::kLength) {
    http::append_field("Content-Length", std::to_string(request.framing.length), out);
  } else if (request.framing.kind == http::BodyKind::kChunked) {
    out += "Transfer-Encoding: chunked\r\n";
  }
  out += options.validation_fields;
  if (!request.is_forward()) append_forwarded(request, out);
  append_via(request, out);
  out += "\r\n";
}

}  // namespace encore::server
