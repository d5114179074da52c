#include "proxy/request/request_context.h"

#include <array>

#include "base/recycled.h"
#include "proxy/http/head_writer.h"
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

// What is written beside the request's own lines, but for names and what others gave us.
constexpr std::size_t kOwnBytes = 256;

// RFC 9110 7.6.2: OPTIONS and TRACE count down.
std::string decremented(std::string_view value) {
  std::uint64_t hops = 0;
  if (!http::parse_decimal(value, hops) || hops == 0) return std::string(value);
  return std::to_string(hops - 1);
}

// "host[:port]" of the target as its key has it; empty where there is none.
class HostText {
 public:
  explicit HostText(const http::Target& target) {
    if (!target.authority.host.empty()) bytes_ = http::write_host(target, room_);
  }
  std::string_view get() const { return {room_.data(), bytes_}; }

 private:
  std::array<char, http::kHostTextBytesMax> room_;
  std::size_t bytes_ = 0;
};

void write_target(const RequestContext& request, http::HeadWriter& out) {
  const std::size_t bytes = request.target.path.size() + request.target.query.size() + 2;
  out.written(http::write_origin_form(request.target, request.head.method, request.key_options(),
                                      {out.room(bytes), bytes}));
}

// The client's lines, as far as they are the origin's to know.
void write_sent_fields(const RequestContext& request, const OriginRequestOptions& options,
                       http::HeadWriter& out) {
  const http::RequestHead& head = request.head;
  const http::SentFields sent(head.fields, request.vary());
  std::optional<std::string_view> encodings;
  if (request.vary().normalise_accept_encoding) encodings = http::normalised_accept_encoding(sent);
  http::FieldSet left_out = {FieldId::kContentLength, FieldId::kVia};
  if (encodings) left_out.insert(FieldId::kAcceptEncoding);
  if (options.whole) left_out.insert(kConditionalFields);
  if (options.drop_expect) left_out.insert(FieldId::kExpect);
  http::FieldCopier copier(out);
  for (const http::Field& field : head.fields) {
    if (left_out.has(field.id) || sent.drops(field)) continue;
    if (field.id == FieldId::kMaxForwards && http::is_idempotent(head.method)) {
      copier.add(field.name, decremented(field.value));
    } else {
      copier.add(field);
    }
  }
  if (encodings) copier.add("Accept-Encoding", *encodings);
}

// Whom the origin answers, by what we know ourselves: the connection, and the target that the key
// names. RFC 7239, and the names that were in use before it.
void write_forwarded(const RequestContext& request, std::string_view host, http::HeadWriter& out) {
  const std::string client = request.client.ip_string();
  const std::string_view scheme = to_string(request.target.scheme);
  out.field("X-Forwarded-For", client);
  out.field("X-Forwarded-Proto", scheme);
  if (!host.empty()) out.field("X-Forwarded-Host", host);
  out.text("Forwarded: for=");
  out.text(request.client.is_v6() ? "\"[" : "");
  out.text(client);
  out.text(request.client.is_v6() ? "]\"" : "");
  if (!host.empty()) {
    out.text(";host=\"");
    out.text(host);
    out.text("\"");
  }
  out.text(";proto=");
  out.text(scheme);
  out.text("\r\n");
}

// One field, hop after hop (RFC 9110 7.6.3).
void write_via(const RequestContext& request, http::HeadWriter& out) {
  const std::string_view own = request.head.version == http::Version::kHttp11
                                   ? request.runtime->via_field_11
                                   : request.runtime->via_field_10;
  const std::size_t name = std::string_view("Via: ").size();
  out.text(own.substr(0, name));
  request.head.fields.for_each(FieldId::kVia, [&](const http::Field& field) {
    if (field.value.empty()) return;
    out.text(field.value);
    out.text(", ");
  });
  out.text(own.substr(name));
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
                          const OriginRequestOptions& options, std::string& text) {
  const http::RequestHead& head = request.head;
  const HostText host(request.target);
  text.clear();
  http::HeadWriter out(text, request.bytes.size() + options.validation_fields.size() + kOwnBytes);
  out.text(head.method_text);
  out.text(" ");
  write_target(request, out);
  out.text(" HTTP/1.1\r\nHost: ");
  const bool asks_for_server =
      server != nullptr && (!request.route->preserves_host() || host.get().empty());
  out.text(asks_for_server ? server->authority : host.get());
  out.text("\r\n");
  write_sent_fields(request, options, out);
  if (http::accepts_trailers(head)) out.text("TE: trailers\r\nConnection: TE\r\n");
  if (request.framing.kind == http::BodyKind::kLength) {
    out.field("Content-Length", request.framing.length);
  } else if (request.framing.kind == http::BodyKind::kChunked) {
    out.text("Transfer-Encoding: chunked\r\n");
  }
  out.text(options.validation_fields);
  if (!request.is_forward()) write_forwarded(request, host.get(), out);
  write_via(request, out);
  out.text("\r\n");
}

}  // namespace encore::server
