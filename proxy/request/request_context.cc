#include "proxy/request/request_context.h"

#include "base/recycled.h"
#include "proxy/http/hop_by_hop.h"

namespace encore::server {
namespace {

// More is not kept for the next request.
constexpr std::size_t kKeptFieldsMax = 64;

}  // namespace

std::shared_ptr<const RequestContext> RequestContext::make(std::shared_ptr<const Runtime> runtime,
                                                           const RequestView& view,
                                                           std::string_view head_bytes,
                                                           const net::Address& client,
                                                           const net::Address& from) {
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
  request->upgrade = http::asked_upgrade(request->head);
  request->from = from;
  request->policy = view.policy;
  request->through_proxy = view.through_proxy;
  request->secure = view.secure;
  request->key = view.key;
  request->uri = view.uri;
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
  if (!request.key.empty()) doing.key = request.uri_text();
  doing.client_port = request.client.port();
  return doing;
}

}  // namespace encore::server
