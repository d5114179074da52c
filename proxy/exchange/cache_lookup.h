// CacheLookup: asks the kernel for the variant of a key that answers a client's request. Objects
// from origins where the client may not go are not there for it. One a worker, confined to it.
#pragma once

#include <memory>
#include <string_view>

#include "cache/kernel.h"
#include "filter/hash.h"
#include "proxy/exchange/variant_hints.h"
#include "proxy/http/message.h"
#include "proxy/http/variant_keys.h"
#include "proxy/http/vary.h"
#include "proxy/net/address.h"
#include "proxy/net/loop.h"
#include "proxy/request/request_context.h"
#include "proxy/request/request_view.h"
#include "proxy/transfer/lamport_clock.h"

namespace encore::server {

class CacheLookup {
 public:
  // All are borrowed. The kernel need not be there before the first lookup; `runtime` is the
  // worker's present one.
  CacheLookup(net::Loop& loop, const std::unique_ptr<cache::Kernel>& kernel,
              const LamportClock& latest, const std::shared_ptr<const Runtime>& runtime)
      : loop_(loop), kernel_(kernel), latest_(latest), runtime_(runtime) {}

  // A request, as far as a lookup needs it. All is borrowed.
  struct Asked {
    std::string_view key;
    const filter::Hash128& hash;
    const http::Fields& fields;
    const http::VaryOptions& vary;
    const net::Address& client;
  };
  // Writes what there is to `found`. REQUIRES: it is empty.
  void lookup(const Asked& asked, CacheView& found);
  CacheView lookup(const RequestContext& request) {
    CacheView found;
    lookup({request.key, request.hash, request.head.fields, request.vary(), request.client}, found);
    return found;
  }
  // True if anything is stored of its key that this client may have. Nothing counts as looked for.
  bool has_any(const RequestContext& request) const;
  // True if a record that was found on disk, and read, is one that a lookup would have taken.
  bool answers(const store::Object& object, const RequestContext& request,
               http::VariantKeys& own) const;
  // To be called before a check of what others have stored or shared: by this turn's clock, none of
  // it has happened later.
  void catch_up() { loop_.catch_up(latest_.get()); }

 private:
  bool is_hidden(const store::Object& object, const net::Address& client) const;

  net::Loop& loop_;
  const std::unique_ptr<cache::Kernel>& kernel_;
  const LamportClock& latest_;
  const std::shared_ptr<const Runtime>& runtime_;
  VariantHints hints_;
};

}  // namespace encore::server
