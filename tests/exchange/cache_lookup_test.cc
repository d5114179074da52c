// The cache's response for a request: of which variant, for which client, until when.
#include "proxy/exchange/cache_lookup.h"

#include <chrono>
#include <string>
#include <vector>

#include "cache/payload_owner.h"
#include "proxy/http/vary.h"
#include "proxy/store/memory_store.h"
#include "tests/catch.h"
#include "tests/exchange/some_request.h"
#include "tests/transfer/made_object.h"

namespace encore::server {
namespace {

using std::chrono::hours;
using std::chrono::seconds;

const std::string kUrl = "http://a.example/";

std::string get(std::string_view fields = {}) {
  return "GET " + kUrl + " HTTP/1.1\nHost: a.example\n" + std::string(fields);
}

class Cached final : private cache::PayloadOwner {
 public:
  Cached()
      : loop(std::move(*net::Loop::create())),
        runtime(some_runtime()),
        store_(std::move(*store::make_memory_store({.limit_bytes = 64U << 20U}))),
        lookup(*loop, kernel, latest, runtime) {
    cache::KernelOptions options;
    options.capacity_bytes = 16U << 20U;
    options.admission.policy = cache::AdmissionPolicy::kAlways;
    kernel = std::move(*cache::Kernel::create(options, {.owner = this}, {}));
  }
  ~Cached() { kernel.reset(); }
  Cached(const Cached&) = delete;
  Cached& operator=(const Cached&) = delete;

  // As the response to `request`, selected by these names; said to be of another key than it is
  // where that is given.
  void put(const RequestContext& request, std::string_view names = {}, std::uint64_t variant = 0,
           std::uint16_t flags = 0, std::string_view other_key = {}) {
    std::string own;
    REQUIRE(http::write_variant_key(names, request.head.fields, request.vary(), own));
    http::StoredMeta meta;
    meta.flags = flags;
    meta.fresh_until = loop->now() + hours(1);
    store::ObjectRef object =
        make_object(*store_, {.key = other_key.empty() ? std::string_view(request.key) : other_key,
                              .names = names,
                              .variant_key = own,
                              .http = meta});
    const auto outcome = kernel->commit({request.hash, request.key},
                                        {.variant = variant,
                                         .charge_bytes = object->charge(),
                                         .fresh_until = meta.fresh_until,
                                         .payload = object.payload()},
                                        0, loop->now());
    REQUIRE(outcome == cache::CommitOutcome::kStored);
    (void)object.detach();
  }
  // The variant key of what is found; "none" where nothing is.
  std::string found(std::string_view text) {
    const CacheView view = lookup.lookup(*some_request(text, runtime));
    return view.object ? std::string(variant_key_of(*view.object)) : "none";
  }
  std::string key_of(std::string_view text, std::string_view names) const {
    const auto request = some_request(text, runtime);
    std::string own;
    REQUIRE(http::write_variant_key(names, request->head.fields, request->vary(), own));
    return own;
  }

  std::unique_ptr<net::Loop> loop;
  std::shared_ptr<const Runtime> runtime;

 private:
  void release(std::span<const cache::Payload> payloads) override { store_->release(payloads); }
  std::unique_ptr<store::Store> store_;

 public:
  std::unique_ptr<cache::Kernel> kernel;
  LamportClock latest;
  CacheLookup lookup;
};

TEST_CASE("what is stored for a key is found by it, and nothing by another", "[exchange][lookup]") {
  Cached cached;
  const auto request = some_request(get(), cached.runtime);
  CHECK_FALSE(cached.lookup.lookup(*request).object);
  CHECK_FALSE(cached.lookup.lookup(*request).any_resident);
  cached.put(*request);
  const CacheView view = cached.lookup.lookup(*request);
  REQUIRE(view.object);
  CHECK(primary_key_of(*view.object) == request->key);
  CHECK(view.any_resident);
  CHECK(view.fresh_until == meta_of(*view.object).http.fresh_until);
}

TEST_CASE("whether anything is stored is asked without being looked for", "[exchange][lookup]") {
  Cached cached;
  const auto request = some_request(get(), cached.runtime);
  CHECK_FALSE(cached.lookup.has_any(*request));
  cached.put(*request, "x-kind", 1);
  CHECK(cached.lookup.has_any(*some_request(get("X-Kind: a\n"), cached.runtime)));
}

TEST_CASE("a key of the same hash is another key", "[exchange][lookup]") {
  Cached cached;
  const auto request = some_request(get(), cached.runtime);
  cached.put(*request, {}, 0, 0, request->key + "x");
  CHECK_FALSE(cached.lookup.lookup(*request).object);
  cached.put(*request, {}, 1);
  const CacheView view = cached.lookup.lookup(*request);
  REQUIRE(view.object);
  CHECK(primary_key_of(*view.object) == request->key);
}

TEST_CASE("of the variants of a key the request's own is found", "[exchange][lookup]") {
  Cached cached;
  const std::string_view language = "accept-language";
  const std::string_view both = "accept-language,x-kind";
  const std::vector<std::pair<std::string, std::string_view>> stored = {
      {get("Accept-Language: de\n"), language},
      {get("Accept-Language: en\n"), language},
      {get("Accept-Language: fr\nX-Kind: a\n"), both},
      {get("Accept-Language: fr\nX-Kind: b\n"), both},
  };
  std::uint64_t variant = 0;
  for (const auto& [text, names] : stored) {
    cached.put(*some_request(text, cached.runtime), names, ++variant);
  }
  // In any order: what the last one was found by is only a hint for the next.
  for (const std::size_t i : {0U, 2U, 1U, 3U, 3U, 0U, 1U, 2U}) {
    const auto& [text, names] = stored[i];
    CAPTURE(text);
    CHECK(cached.found(text) == cached.key_of(text, names));
  }
  for (const auto& text : {get("Accept-Language: it\n"), get(), get("Accept-Language: fr\n"),
                           get("Accept-Language: fr\nX-Kind: c\n")}) {
    CAPTURE(text);
    CHECK(cached.found(text) == "none");
    CHECK(cached.lookup.lookup(*some_request(text, cached.runtime)).any_resident);
  }
  // A field beyond the limits selects nothing.
  CHECK(cached.found(get("Accept-Language: " + std::string(http::kSelectingBytesMax, 'x') +
                         "\n")) == "none");
}

TEST_CASE("keys with the same selecting names share no more than those", "[exchange][lookup]") {
  Cached cached;
  const auto other =
      some_request("GET http://b.example/ HTTP/1.1\nHost: b.example\nX-A: 1\n", cached.runtime);
  cached.put(*other, "x-a", 1);
  const auto own = some_request(get("X-A: 1\n"), cached.runtime);
  cached.put(*own, "x-a", 1);
  CHECK(primary_key_of(*cached.lookup.lookup(*other).object) == other->key);
  CHECK(primary_key_of(*cached.lookup.lookup(*own).object) == own->key);
}

TEST_CASE("what came from a private address is not there for who may not go there",
          "[exchange][lookup]") {
  Cached cached;
  const auto request = some_request(get(), cached.runtime);
  cached.put(*request, {}, 0, http::StoredMeta::kPrivateOrigin);
  CHECK(cached.lookup.lookup(*request).object);
  CacheView view;
  cached.lookup.lookup({request->key, request->hash, request->head.fields, request->vary(),
                        net::Address::parse_ip("192.0.2.1", 1).value()},
                       view);
  CHECK_FALSE(view.object);
  CHECK_FALSE(view.any_resident);
  // By the present settings, not by those under which it was stored.
  config::Config never;
  never.forward.private_destinations = config::PrivateDestinations::kNever;
  cached.runtime = some_runtime(never);
  CHECK_FALSE(cached.lookup.lookup(*request).object);
}

TEST_CASE("what is stale by the kernel is stale by the view", "[exchange][lookup]") {
  Cached cached;
  const auto request = some_request(get(), cached.runtime);
  cached.put(*request);
  const MonotonicTime now = cached.loop->now();
  cached.kernel->mark_stale({request->hash, request->key}, now);
  const CacheView view = cached.lookup.lookup(*request);
  REQUIRE(view.object);
  CHECK(view.fresh_until <= now);
  CHECK(meta_of(*view.object).http.fresh_until > now);
}

TEST_CASE("a look is not before what others have stored", "[exchange][lookup]") {
  Cached cached;
  const MonotonicTime later = cached.loop->now() + seconds(10);
  cached.latest.note(later);
  (void)cached.lookup.lookup(*some_request(get(), cached.runtime));
  CHECK(cached.loop->now() == later);
}

TEST_CASE("a hint is of its key, until others take its place", "[exchange][lookup]") {
  VariantHints hints;
  const auto hash = [](std::uint64_t n) {
    return filter::hash_key(filter::HashFamily::kXxh3, {1, 2}, std::to_string(n));
  };
  CHECK(hints.find(hash(1)).empty());
  hints.remember(hash(1), "accept");
  hints.remember(hash(2), "cookie");
  CHECK(hints.find(hash(1)) == "accept");
  CHECK(hints.find(hash(2)) == "cookie");
  CHECK(hints.find(hash(3)).empty());
  hints.remember(hash(1), "cookie");
  CHECK(hints.find(hash(1)) == "cookie");
  // In the same place, but of another key.
  filter::Hash128 neighbour = hash(1);
  neighbour.hi ^= std::uint64_t{1} << 60U;
  CHECK(hints.find(neighbour).empty());
  hints.remember(neighbour, "accept");
  CHECK(hints.find(neighbour) == "accept");
  CHECK(hints.find(hash(1)).empty());
}

}  // namespace
}  // namespace encore::server
