// RequestContext: a request as the server works on it once it takes longer than one read. It owns
// the head's bytes, so that it outlives the client's buffer, and often the client. Immutable once
// made, shared by the client's exchange and the fetch; thread-safe. Its memory is used again for
// the next request of the thread.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/check.h"
#include "filter/hash.h"
#include "proxy/http/cache_control.h"
#include "proxy/http/framing.h"
#include "proxy/http/message.h"
#include "proxy/http/uri.h"
#include "proxy/net/address.h"
#include "proxy/observe/client_tls.h"
#include "proxy/observe/redirect_refusal.h"
#include "proxy/request/request_view.h"
#include "proxy/settings/runtime.h"

namespace encore::server {

struct RequestContext {
  // `view` is of `head_bytes`, which are copied.
  static std::shared_ptr<const RequestContext> make(std::shared_ptr<const Runtime> runtime,
                                                    const RequestView& view,
                                                    std::string_view head_bytes,
                                                    const net::Address& client,
                                                    const net::Address& from);
  static std::shared_ptr<const RequestContext> make(std::shared_ptr<const Runtime> runtime,
                                                    const RequestView& view,
                                                    std::string_view head_bytes,
                                                    const net::Address& client) {
    return make(std::move(runtime), view, head_bytes, client, client);
  }
  // A HEAD in its stead, of which nothing is cached.
  static std::shared_ptr<const RequestContext> permission_for(
      const std::shared_ptr<const RequestContext>& request);
  // The same request for a part alone, of which nothing is cached: with these two values in place
  // of its own fields that ask for a part, or on a condition.
  struct PartOnly {
    std::string_view range;
    std::string_view if_range;
  };
  static std::shared_ptr<const RequestContext> part_of(
      const std::shared_ptr<const RequestContext>& request, const PartOnly& part);
  // The same request for where it was redirected to, cached as what was asked for. Addresses that a
  // name resolves to are not looked at. REQUIRES: a rule that follows redirections.
  struct Redirected {
    std::shared_ptr<const RequestContext> request;  // null: it is not followed
    RedirectRefusal why = RedirectRefusal::kNone;   // then
  };
  static Redirected redirected(const std::shared_ptr<const RequestContext>& request,
                               std::string_view location);
  RequestContext() = default;
  RequestContext(const RequestContext&) = delete;
  // For make_reused(): a new one takes its place, and the room of its texts with it.
  void clear();

  // True if a URI is asked for: not by CONNECT, nor by OPTIONS *.
  bool has_uri() const { return !key.empty() || !asked.empty(); }
  // The normalised URI. REQUIRES: has_uri().
  std::string_view uri_text() const {
    return asked.empty() ? std::string_view(key).substr(kRealmBytes) : std::string_view(asked);
  }
  std::string_view host_text() const;  // lower case, without port
  std::string_view path_text() const;  // without query
  bool is_forward() const { return route == nullptr; }
  bool is_intercepted() const { return ingress == Ingress::kInside; }
  // A request for another protocol does not request the resource at its target.
  bool asks_upgrade() const { return !upgrade.empty(); }
  bool is_cacheable() const { return !key.empty() && !asks_upgrade(); }
  // Our Via, as a field line; empty where the listener says none.
  std::string_view via_field(http::Version received) const {
    if (policy != nullptr && !policy->via) return {};
    if (received == http::Version::kHttp2) return runtime->via_field_20;
    return received == http::Version::kHttp11 ? runtime->via_field_11 : runtime->via_field_10;
  }
  bool says_cache_status() const { return policy == nullptr || policy->cache_status; }
  ForwardingFields forwarding_fields() const {
    if (policy != nullptr) return policy->told;
    return {.x_forwarded = !is_forward(), .forwarded = !is_forward()};
  }
  const http::HeadOptions& head_options() const {
    return is_forward() ? runtime->forward_head_options : runtime->head_options;
  }
  // The listener's address as the config has it; empty: it is of none.
  std::string_view listener_text() const {
    const auto& listeners = runtime->config.listen;
    return listener_index < listeners.size() ? listeners[listener_index].address.text()
                                             : std::string_view();
  }
  const http::VaryOptions& vary() const { return request_policy->vary; }
  // True if the origin receives a Cookie of the client. After a redirect the new origin receives
  // none, but the one that redirected did.
  bool sends_cookie() const {
    return head.fields.has(http::FieldId::kCookie) &&
           http::SentFields(head.fields, vary()).sends_cookie();
  }
  // Returns a number for the client's credentials that the origin receives: Cookie and
  // Authorization; 0 for neither. A keyed hash, so that clients cannot choose those of another.
  std::uint64_t credentials() const;
  const http::ReuseOptions& reuse() const { return request_policy->reuse; }
  // How a response of this Content-Type is treated: by a rule that has waited for it, or as the
  // request is.
  const RequestPolicy& policy_for_content_type(std::string_view content_type) const;
  // In two steps: the rule, null where none holds, and what follows from it.
  const Rule* rule_of(std::string_view content_type) const;
  // The properties of the request that rules are chosen by. Views into this. REQUIRES:
  // has_uri().
  RuleQuery rule_query(std::string_view of_listener) const;
  const RequestPolicy& policy_by_rule(const Rule* found) const;
  // Names of the targeted fields that govern us.
  std::span<const std::string> targets() const {
    if (is_forward()) return {};
    return runtime->reverse_targets;
  }

  std::shared_ptr<const Runtime> runtime;
  std::string bytes;
  http::RequestHead head;  // views into bytes
  http::Target target;
  http::RequestDirectives directives;
  http::Framing framing;
  const Route* route = nullptr;  // null: forward
  net::Address client;
  // Protocols that the connection may switch to, as the origin receives them; empty: none.
  std::string upgrade;
  const ListenerPolicy* policy = nullptr;  // from the runtime; null: the listener has none
  // The peer, or whom it named in a PROXY header: a trusted proxy, or the client.
  net::Address from;
  bool through_proxy = false;
  bool secure = false;
  std::shared_ptr<const ClientTls> tls;  // the client's connection to us; null: not kept
  // As it is, or inside a CONNECT that is decrypted.
  enum class Ingress : std::uint8_t { kAsItIs, kInside } ingress = Ingress::kAsItIs;
  const Rule* rule = nullptr;                     // the runtime's; null: none holds
  const RequestPolicy* request_policy = nullptr;  // the runtime's; never null once it is made
  std::string listener;  // as the config names it, where a rule may still ask
  std::string key;       // realm and what is one object, mostly the URI; empty: never cached
  std::string asked;     // the normalised URI, where the key does not say it
  http::KeyText uri;     // the parts of uri_text()
  // The digest that a rule requires of the body, by the requested path; empty: none.
  std::string digest;
  // It was redirected to another origin than it was meant for: that gets nothing that says who
  // asks.
  bool is_cross_origin = false;
  bool was_redirected = false;
  std::string first_asked;  // then: the normalised URI that the client has asked for
  http::KeyText first_uri;  // and its parts
  filter::Hash128 hash{};
  std::size_t listener_index = SIZE_MAX;  // its place in the config
  std::string request_id;                 // empty: nobody asks for one
  std::string user;                       // RequestView::user
  std::string login;                      // RequestView::login
  bool purges = false;                    // RequestView::purges
  ListenerPart counts;                    // counters of its listener; null: none

 private:
  // With views into the other's bytes.
  RequestContext& operator=(const RequestContext&) = default;
  static std::shared_ptr<RequestContext> copy_of(const RequestContext& other);
};

// Why a redirection that leads there is not followed; kNone: it may be.
RedirectRefusal redirect_refusal_by(DestinationVerdict verdict);

// Activity for a panic report, of the unit that works on `request`. Views into it.
ThreadActivity doing_for(const RequestContext& request, std::string_view who,
                         std::string_view step);

}  // namespace encore::server
