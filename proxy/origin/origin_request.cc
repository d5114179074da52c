#include "proxy/origin/origin_request.h"

#include <string>

#include "proxy/http/head_writer.h"
#include "proxy/http/hop_by_hop.h"
#include "proxy/request/parent.h"
#include "proxy/request/request_ids.h"
#include "proxy/request/sent_head.h"

namespace encore::server {
namespace {

// Bytes of the head in addition to the request's own lines, without names and what others gave us.
constexpr std::size_t kOwnBytes = 256;

// Returns the target, "/path?query": as the key has it, but as far as a rule says otherwise.
std::string path_by_rule(const RequestContext& request) {
  const Rule& rule = *request.rule;
  std::string_view path = request.path_text();
  const std::string_view query = request.uri_text().substr(request.uri.path + path.size());
  std::string text = rule.rewrites_path() ? rule.rewritten(path) : std::string(path);
  if (!rule.shows_whole_query()) return text.append(query);
  if (request.target.has_query) text.append("?").append(request.target.query);
  return text;
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
  // RFC 9112 3.2.4: the last proxy makes "*" of an OPTIONS whose URI has no path.
  if (options.to_proxy && path == "*") path = {};
  out.texts(head.method_text, " ", options.to_proxy ? "http://" : "",
            options.to_proxy ? host.get() : std::string_view(), path,
            " HTTP/1.1\r\nHost: ", asks_for_server ? server->authority : host.get(), "\r\n");
  http::FieldSet left_out;
  if (options.whole) left_out.insert(kFieldsOfPart);
  if (options.drop_expect) left_out.insert(http::FieldId::kExpect);
  write_sent_fields(request, left_out, out);
  if (const http::HeadEdits* const edits = edits_of(request)) out.text(edits->lines());
  // RFC 9110 10.1.4: TE is of one hop, so that Connection has to name it.
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
  // The host of a redirection is not the one that the client requested: it does not learn who asks.
  if (!request.is_cross_origin) {
    write_request_id(request, edits_of(request), out);
    write_forwarded(request, host.get(), out);
    write_client_subject(request, out);
  }
  write_via(request, out);
  out.text("\r\n");
}

}  // namespace encore::server
