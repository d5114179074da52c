#include "proxy/origin/origin_request.h"

#include <array>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "proxy/http/head_writer.h"
#include "proxy/http/hop_by_hop.h"
#include "proxy/http/sent_fields.h"
#include "proxy/request/parent.h"
#include "proxy/request/request_ids.h"
#include "proxy/settings/sender.h"

namespace encore::server {
namespace {

using http::FieldId;

constexpr http::FieldSet kConditionalFields = {FieldId::kRange,       FieldId::kIfRange,
                                               FieldId::kIfNoneMatch, FieldId::kIfModifiedSince,
                                               FieldId::kIfMatch,     FieldId::kIfUnmodifiedSince};

// Directives for caches and hop counts: no origin decides by them who may have a page.
constexpr http::FieldSet kNotOfAccess = {FieldId::kCacheControl, FieldId::kPragma,
                                         FieldId::kMaxForwards, FieldId::kExpect};

// Names a request for logs and traces, and differs in each.
bool names_the_request(const http::Field& field) {
  return field.id == FieldId::kOther && (http::equals_lower(field.name, kRequestIdName) ||
                                         http::equals_lower(field.name, "traceparent") ||
                                         http::equals_lower(field.name, "tracestate"));
}

// What is written beside the request's own lines, but for names and what others gave us.
constexpr std::size_t kOwnBytes = 256;

// RFC 9110 7.6.2: OPTIONS and TRACE count down. A number that is too large to be read goes on as
// the largest that is supported.
std::string decremented(std::string_view value) {
  std::uint64_t hops = 0;
  if (http::parse_decimal(value, hops)) return std::to_string(hops == 0 ? 0 : hops - 1);
  const bool digits = !value.empty() && value.find_first_not_of("0123456789") == value.npos;
  return digits ? std::to_string(std::numeric_limits<std::int64_t>::max()) : std::string(value);
}

// "host[:port]" of the target as its key has it; empty where there is none.
class HostText {
 public:
  explicit HostText(const RequestContext& request) {
    const http::Target& target = request.target;
    if (request.has_uri()) {
      text_ = request.uri_text().substr(request.uri.authority,
                                        request.uri.path - request.uri.authority);
    } else if (!target.authority.host.empty()) {
      text_ = {room_.data(), http::write_host(target, room_)};
    }
  }
  HostText(const HostText&) = delete;
  HostText& operator=(const HostText&) = delete;
  std::string_view get() const { return text_; }

 private:
  std::array<char, http::kHostTextBytesMax> room_;
  std::string_view text_;
};

// What a rule makes of the request's fields; null: nothing.
const http::HeadEdits* edits_of(const RequestContext& request) {
  if (request.rule == nullptr || request.is_elsewhere) return nullptr;
  if (request.rule->request_edits().empty()) return nullptr;
  return &request.rule->request_edits();
}

// What is asked for, "/path?query": as the key has it, but as far as a rule says otherwise.
std::string path_by_rule(const RequestContext& request) {
  const Rule& rule = *request.rule;
  std::string_view path = request.path_text();
  const std::string_view query = request.uri_text().substr(request.uri.path + path.size());
  std::string text = rule.rewrites_path() ? rule.rewritten(path) : std::string(path);
  if (!rule.shows_whole_query()) return text.append(query);
  if (request.target.has_query) text.append("?").append(request.target.query);
  return text;
}

enum class Lines : std::uint8_t { kAll, kOfAccess };

// The client's lines, as far as they are the origin's to know.
void write_sent_fields(const RequestContext& request, const OriginRequestOptions& options,
                       Lines lines, http::HeadWriter& out) {
  const http::RequestHead& head = request.head;
  const http::SentFields sent(head.fields, request.vary());
  const http::HeadEdits* const edits = edits_of(request);
  std::optional<std::string_view> encodings;
  if (request.vary().normalise_accept_encoding &&
      (edits == nullptr || !edits->leaves_out("Accept-Encoding"))) {
    encodings = http::normalised_accept_encoding(sent);
  }
  http::FieldSet left_out = {FieldId::kContentLength, FieldId::kVia};
  if (encodings) left_out.insert(FieldId::kAcceptEncoding);
  if (options.whole) left_out.insert(kConditionalFields);
  if (options.drop_expect) left_out.insert(FieldId::kExpect);
  if (request.is_elsewhere) {
    left_out.insert({FieldId::kAuthorization, FieldId::kCookie, FieldId::kReferer});
  }
  const bool is_of_access = lines == Lines::kOfAccess;
  if (is_of_access) left_out.insert(kNotOfAccess);
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
  if (!cookies.empty() && !request.is_elsewhere) copier.add("Cookie", cookies);
}

std::string node_text(const net::Address& client) {
  return is_nobody(client) ? "unknown" : client.ip_string();
}

// The trusted proxies between the client and us. What stands in front of the client in what they
// say is its own word, and goes no further.
std::vector<net::Address> hops_of(const RequestContext& request) {
  std::vector<net::Address> hops;
  if (request.through_proxy) {
    (void)find_sender(*request.policy, request.from, request.head.fields, &hops);
  }
  return hops;
}

// Whom the origin answers, by what we know ourselves: the connection, what trusted proxies say of
// it, and the target that the key names. RFC 7239, and the names that were in use before it.
void write_forwarded(const RequestContext& request, std::string_view host, http::HeadWriter& out) {
  const ToldOrigins told = request.told_origins();
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
    const bool v6 = address.is_v6();
    out.texts("for=", v6 ? "\"[" : "", text, v6 ? "]\"" : "");
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

// Who the client is by its certificate, where the listener wants origins to know.
void write_client_subject(const RequestContext& request, http::HeadWriter& out) {
  if (request.policy == nullptr || request.policy->client_field.empty()) return;
  if (request.tls == nullptr || request.tls->subject.empty()) return;
  out.field(request.policy->client_field, request.tls->subject);
}

// Writes the request's id, unless a rule sets the field. Servers that a client chose do not receive
// it.
void write_request_id(const RequestContext& request, const http::HeadEdits* edits,
                      http::HeadWriter& out) {
  const bool told = request.runtime->config.log.request_id >= config::RequestIds::kForward;
  if (!told || request.is_forward() || request.request_id.empty()) return;
  if (edits != nullptr && edits->leaves_out(kRequestIdField)) return;
  out.field(kRequestIdField, request.request_id);
}

}  // namespace

void build_origin_request(const RequestContext& request, const OriginServer* server,
                          const OriginRequestOptions& options, std::string& text) {
  const http::RequestHead& head = request.head;
  const HostText host(request);
  text.clear();
  http::HeadWriter out(text, request.bytes.size() + options.validation_fields.size() + kOwnBytes);
  std::string_view key_path;
  if (request.has_uri()) key_path = request.uri_text().substr(request.uri.path);
  std::string by_rule;
  if (request.rule != nullptr && request.has_uri() && !request.was_redirected &&
      (request.rule->rewrites_path() || request.rule->shows_whole_query())) {
    by_rule = path_by_rule(request);
    key_path = by_rule;
  }
  const bool asks_for_server =
      server != nullptr && (!request.route->preserves_host() || host.get().empty());
  std::string_view path = http::origin_form(request.target, head.method, key_path);
  if (options.to_proxy && path == "*") path = {};
  out.texts(head.method_text, " ", options.to_proxy ? "http://" : "",
            options.to_proxy ? host.get() : std::string_view(), path,
            " HTTP/1.1\r\nHost: ", asks_for_server ? server->authority : host.get(), "\r\n");
  write_sent_fields(request, options, Lines::kAll, out);
  if (const http::HeadEdits* const edits = edits_of(request)) out.text(edits->lines());
  const bool trailers = http::accepts_trailers(head);
  if (trailers) out.text("TE: trailers\r\n");
  if (request.asks_upgrade()) {
    out.texts("Connection: ", trailers ? "TE, " : "", "upgrade\r\n");
    out.field("Upgrade", request.upgrade);
  } else if (trailers) {
    out.text("Connection: TE\r\n");
  }
  if (options.length) {
    out.field("Content-Length", *options.length);
  } else if (request.framing.kind == http::BodyKind::kLength) {
    out.field("Content-Length", request.framing.length);
  } else if (request.framing.kind == http::BodyKind::kChunked) {
    out.text("Transfer-Encoding: chunked\r\n");
  }
  out.text(options.validation_fields);
  if (!request.is_elsewhere) {
    write_request_id(request, edits_of(request), out);
    write_forwarded(request, host.get(), out);
    write_client_subject(request, out);
  }
  write_via(request, out);
  out.text("\r\n");
}

std::string access_text(const RequestContext& request) {
  const HostText host(request);
  OriginRequestOptions options;
  options.whole = true;
  std::string text(request.is_forward() ? kForwardRealm : std::string_view(request.route->realm()));
  {
    http::HeadWriter out(text, request.bytes.size() + kOwnBytes);
    if (request.rule != nullptr) out.text(request.rule->asks());
    // The query as it came: what the origin sees of it may be more than the key.
    out.texts(request.uri_text(), "\n", request.target.query, "\n",
              request.secure ? "https" : "http", "\r\n");
    write_sent_fields(request, options, Lines::kOfAccess, out);
    write_forwarded(request, host.get(), out);
    write_client_subject(request, out);
  }
  return text;
}

}  // namespace encore::server
