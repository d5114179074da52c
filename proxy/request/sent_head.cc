#include "proxy/request/sent_head.h"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "proxy/http/sent_fields.h"
#include "proxy/request/request_ids.h"
#include "proxy/settings/effective_client.h"

namespace encore::server {
namespace {

using http::FieldId;

// Parts, conditions, directives for caches and hop counts: no origin decides by them who may have a
// page.
constexpr http::FieldSet kNotOfAccess = [] {
  http::FieldSet fields = kFieldsOfPart;
  fields.insert(
      {FieldId::kCacheControl, FieldId::kPragma, FieldId::kMaxForwards, FieldId::kExpect});
  return fields;
}();

// Names a request for logs and traces, and differs in each.
bool names_the_request(const http::Field& field) {
  return field.id == FieldId::kOther && (http::equals_lower(field.name, kRequestIdName) ||
                                         http::equals_lower(field.name, "traceparent") ||
                                         http::equals_lower(field.name, "tracestate"));
}

// Room for the text that access_text() adds to the request's own lines, mostly.
constexpr std::size_t kOwnBytes = 256;

// RFC 9110 7.6.2: OPTIONS and TRACE count down. A number that is too large to be read goes on as
// the largest that is supported.
std::string decremented(std::string_view value) {
  std::uint64_t hops = 0;
  if (http::parse_decimal(value, hops)) return std::to_string(hops == 0 ? 0 : hops - 1);
  const bool digits = !value.empty() && value.find_first_not_of("0123456789") == value.npos;
  return digits ? std::to_string(std::numeric_limits<std::int64_t>::max()) : std::string(value);
}

enum class Lines : std::uint8_t { kAll, kOfAccess };

void write_fields(const RequestContext& request, http::FieldSet left_out, Lines lines,
                  http::HeadWriter& out) {
  const http::RequestHead& head = request.head;
  const http::SentFields sent(head.fields, request.vary());
  const http::HeadEdits* const edits = edits_of(request);
  std::optional<std::string_view> encodings;
  if (request.vary().normalise_accept_encoding &&
      (edits == nullptr || !edits->leaves_out("Accept-Encoding"))) {
    encodings = http::normalised_accept_encoding(sent);
  }
  left_out.insert({FieldId::kContentLength, FieldId::kVia});
  if (encodings) left_out.insert(FieldId::kAcceptEncoding);
  if (request.is_cross_origin) {
    left_out.insert({FieldId::kAuthorization, FieldId::kCookie, FieldId::kReferer});
  }
  const bool is_of_access = lines == Lines::kOfAccess;
  http::FieldCopier copier(out);
  for (const http::Field& field : head.fields) {
    if (left_out.has(field.id) || sent.drops(field)) continue;
    if (is_of_access && names_the_request(field)) continue;
    if (field.id == FieldId::kMaxForwards && http::is_idempotent(head.method)) {
      copier.add(field.name, decremented(field.value));
    } else {
      copier.add(field);
    }
  }
  if (encodings) copier.add("Accept-Encoding", *encodings);
  const std::string cookies = sent.kept_cookies();
  if (!cookies.empty() && !request.is_cross_origin) copier.add("Cookie", cookies);
}

std::string node_text(const net::Address& client) {
  return is_unidentified(client) ? "unknown" : client.ip_string();
}

// The trusted proxies between the client and us. Entries before the client in their fields are the
// client's own claims, and are not forwarded.
std::vector<net::Address> hops_of(const RequestContext& request) {
  std::vector<net::Address> hops;
  if (request.through_proxy) {
    (void)find_effective_client(*request.policy, request.from, request.head.fields, &hops);
  }
  return hops;
}

}  // namespace

const http::HeadEdits* edits_of(const RequestContext& request) {
  if (request.rule == nullptr || request.is_cross_origin) return nullptr;
  if (request.rule->request_edits().empty()) return nullptr;
  return &request.rule->request_edits();
}

void write_sent_fields(const RequestContext& request, http::FieldSet left_out,
                       http::HeadWriter& out) {
  write_fields(request, left_out, Lines::kAll, out);
}

void write_forwarded(const RequestContext& request, std::string_view host, http::HeadWriter& out) {
  const ForwardingFields told = request.forwarding_fields();
  if (!told.x_forwarded && !told.forwarded) return;
  const std::string client = node_text(request.client);
  const std::vector<net::Address> hops = hops_of(request);
  const std::string_view scheme =
      request.secure ? to_string(http::Scheme::kHttps) : to_string(request.target.scheme);
  if (told.x_forwarded) {
    out.texts("X-Forwarded-For: ", client);
    for (const net::Address& hop : hops) out.texts(", ", hop.ip_string());
    out.texts("\r\nX-Forwarded-Proto: ", scheme, "\r\n");
    if (!host.empty()) out.field("X-Forwarded-Host", host);
  }
  if (!told.forwarded) return;
  const auto node = [&out](const net::Address& address, std::string_view text) {
    if (address.is_v6()) {
      out.texts("for=\"[", text, "]\"");
    } else {
      out.texts("for=", text);
    }
  };
  out.text("Forwarded: ");
  node(request.client, client);
  if (!host.empty()) out.texts(";host=\"", host, "\"");
  out.texts(";proto=", scheme);
  for (const net::Address& hop : hops) {
    out.text(", ");
    node(hop, hop.ip_string());
  }
  out.text("\r\n");
}

void write_client_subject(const RequestContext& request, http::HeadWriter& out) {
  if (request.policy == nullptr || request.policy->client_field.empty()) return;
  if (request.tls == nullptr || request.tls->subject.empty()) return;
  out.field(request.policy->client_field, request.tls->subject);
}

std::string access_text(const RequestContext& request) {
  const HostText host(request);
  std::string text(request.is_forward() ? kForwardRealm : std::string_view(request.route->realm()));
  {
    http::HeadWriter out(text, request.bytes.size() + kOwnBytes);
    if (request.rule != nullptr) out.text(request.rule->request_change_suffix());
    // The query as it came: what the origin sees of it may be more than the key.
    out.texts(request.uri_text(), "\n", request.target.query, "\n",
              request.secure ? "https" : "http", "\r\n");
    write_fields(request, kNotOfAccess, Lines::kOfAccess, out);
    write_forwarded(request, host.get(), out);
    write_client_subject(request, out);
  }
  return text;
}

}  // namespace encore::server
