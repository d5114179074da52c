// A cache full of small tagged objects, as the server would have stored them, for the tests and
// measurements of what goes over all of them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/check.h"
#include "proxy/process/shared.h"
#include "proxy/process/store_link.h"
#include "proxy/settings/router.h"
#include "proxy/store/memory_store.h"
#include "tests/transfer/made_object.h"

namespace encore::server {

// Object n is http://site.example/even/n or /odd/n, and has the tags "all" and "t" with n's last
// digit.
class FilledCache {
 public:
  explicit FilledCache(std::uint64_t objects) {
    constexpr std::uint64_t kBytesEach = 2048;
    shared.identity_seed = {1, 2};
    auto store = store::make_memory_store({.limit_bytes = objects * kBytesEach * 2 + (64U << 20U)});
    ENCORE_CHECK(store.has_value(), "room for the objects");
    shared.store = std::move(*store);
    link_ = std::make_unique<StoreLink>(*shared.store, shared.identity_seed);
    cache::KernelOptions options;
    options.capacity_bytes = objects * kBytesEach + (64U << 20U);
    options.identity_seed = shared.identity_seed;
    options.admission.policy = cache::AdmissionPolicy::kAlways;
    auto kernel = cache::Kernel::create(options, {.owner = link_.get()}, {});
    ENCORE_CHECK(kernel.has_value(), "options of the cache");
    shared.kernel = std::move(*kernel);
    link_->connect(shared.kernel.get());
    shared.store->set_relocator(link_.get());
    for (std::uint64_t n = 0; n < objects; ++n) add(n);
  }
  ~FilledCache() {
    shared.store->set_relocator(nullptr);
    shared.kernel.reset();
  }
  FilledCache(const FilledCache&) = delete;
  FilledCache& operator=(const FilledCache&) = delete;

  static std::string key_text(std::uint64_t n) {
    std::string text(kForwardRealm);
    text += n % 2 == 0 ? "http://site.example/even/" : "http://site.example/odd/";
    return text += std::to_string(n);
  }
  cache::Key key(const std::string& text) const {
    return {filter::hash_key(filter::HashFamily::kXxh3, shared.identity_seed, text), text};
  }
  bool holds(std::uint64_t n) {
    const std::string text = key_text(n);
    return shared.kernel->lookup(key(text), MonotonicTime{}).state == cache::LookupState::kFresh;
  }

  Shared shared;

 private:
  void add(std::uint64_t n) {
    const std::string text = key_text(n);
    std::string tags = "all\nt";
    tags += std::to_string(n % 10);
    tags += '\n';
    store::ObjectRef object = make_object(
        *shared.store, {.key = text, .tags = tags, .fields = "Content-Type: text/plain\r\n"});
    const MonotonicTime later = monotonic_now() + std::chrono::hours(1);
    const auto outcome = shared.kernel->commit(key(text),
                                               {.charge_bytes = object->charge(),
                                                .fresh_until = later,
                                                .keep_until = later,
                                                .payload = object.payload()},
                                               0, MonotonicTime{});
    ENCORE_CHECK(outcome == cache::CommitOutcome::kStored, "room for an entry");
    (void)object.detach();
  }

  std::unique_ptr<StoreLink> link_;
};

}  // namespace encore::server
