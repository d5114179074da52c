// RequestView: a parsed request with its target, route and cache key, as views into the read
// buffer and the worker's key buffer: what a hit is answered from, without a copy.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/time.h"
#include "cache/disk_place.h"
#include "filter/hash.h"
#include "proxy/http/framing.h"
#include "proxy/http/message.h"
#include "proxy/http/uri.h"
#include "proxy/observe/client_tls.h"
#include "proxy/observe/request_counts.h"
#include "proxy/settings/listener_policy.h"
#include "proxy/settings/router.h"
#include "proxy/settings/rules.h"
#include "proxy/store/object.h"

namespace encore::server {

class InterceptUse;

// A CONNECT that is decrypted, as the requests see it that come inside. Its client has passed what
// it had to pass there.
struct InterceptedConnect {
  std::string host;  // lower case
  std::uint16_t port = 0;
  bool has_logged_in = false;                    // its listener asked for that
  std::string login = {};                        // then: RequestView::login
  std::shared_ptr<const InterceptUse> use = {};  // for as long as the connection lasts
};

struct RequestView {
  const http::RequestHead* head = nullptr;
  http::Target target;
  http::Framing framing;
  const Route* route = nullptr;  // null: forward
  const Rule* rule = nullptr;    // null: none holds
  // By the rule, or without one; null: as without one.
  const RequestPolicy* request_policy = nullptr;
  std::string_view listener;              // as the config names it
  std::size_t listener_index = SIZE_MAX;  // its place in the config
  std::string_view request_id;            // empty: nobody asks for one
  std::string_view key;    // realm and what is one object, mostly the URI; empty: never cached
  std::string_view asked;  // the normalised URI, where the key does not say it
  http::KeyText uri;       // the parts of the normalised URI
  filter::Hash128 hash{};
  // Facts about the listener and the sender, before the rest is derived from them.
  const ListenerPolicy* policy = nullptr;  // null: the listener has nothing of its own
  bool through_proxy = false;              // as EffectiveClient has it
  bool secure = false;                     // the client speaks TLS, to us or to a trusted proxy
  const std::shared_ptr<const ClientTls>* tls = nullptr;  // to us; null: nothing is kept of it
  const InterceptedConnect* inside = nullptr;             // null: it came as it is
  std::string_view user;                                  // the authenticated user; empty: none
  std::string_view login;                                 // by which that is known over reloads
  bool purges = false;                   // it empties the cache, and goes no further
  const ListenerPart* counts = nullptr;  // counters of its listener; null: none
};

// A record that the cache has for a request on disk alone, by its key's hash, and by the variant as
// far as the index distinguishes them.
struct DiskLookup {
  cache::DiskPlace place;
  MonotonicTime keep_until{};
  bool promote = false;  // it is worth a place in memory
};

// The cache's content for a request.
struct CacheView {
  store::ObjectRef object;         // empty: nothing that matches in memory
  std::optional<DiskLookup> disk;  // set if `object` is empty
  bool any_resident = false;       // another variant is there
  // When it is stale by the kernel: a soft purge sets this before the response's own time.
  MonotonicTime fresh_until{};
};

}  // namespace encore::server
