// RequestContext: a request as the server works on it once it takes longer than one read. It owns
// the head's bytes, so that it outlives the client's buffer, and often the client. Immutable once
// made, shared by the client's exchange and the fetch; thread-safe.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "filter/hash.h"
#include "proxy/http/cache_control.h"
#include "proxy/http/framing.h"
#include "proxy/http/message.h"
#include "proxy/http/uri.h"
#include "proxy/net/address.h"
#include "proxy/server/runtime.h"

namespace encore::server {

struct RequestContext {
  // `head_bytes` is a head that parse_request accepted and resolve_target resolved.
  RequestContext(std::shared_ptr<const Runtime> runtime, std::string_view head_bytes,
                 const Route* route, const net::Address& client);
  RequestContext(const RequestContext&) = delete;
  RequestContext& operator=(const RequestContext&) = delete;

  bool is_forward() const { return route == nullptr; }
  const http::VaryOptions& vary() const {
    return is_forward() ? runtime->forward_vary : runtime->reverse_vary;
  }
  const http::ReuseOptions& reuse() const {
    return is_forward() ? runtime->forward_reuse : runtime->reverse_reuse;
  }

  const http::KeyOptions& key_options() const {
    return is_forward() ? runtime->forward_keys : runtime->reverse_keys;
  }
  // Names of the targeted fields that govern us.
  std::span<const std::string> targets() const {
    if (is_forward()) return {};
    return runtime->reverse_targets;
  }

  std::shared_ptr<const Runtime> runtime;
  const std::string bytes;
  http::RequestHead head;  // views into bytes
  http::Target target;
  http::RequestDirectives directives;
  http::Framing framing;
  const Route* route;  // null: forward
  net::Address client;
  std::string key;  // realm and normalised URI; empty for what is never cached
  filter::Hash128 hash{};
};

// What is asked of the origin, in difference to what the client asked.
struct OriginRequestOptions {
  bool whole = false;                  // without the client's Range and conditions
  std::string_view validation_fields;  // lines with CRLF, for our own validation
  bool drop_expect = false;
};

// The head to send: origin-form, Host, end-to-end fields, Via, and (reverse) X-Forwarded-*.
std::string build_origin_request(const RequestContext& request, const OriginServer* server,
                                 const OriginRequestOptions& options);

}  // namespace encore::server
