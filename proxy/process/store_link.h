// StoreLink: what kernel and store tell each other. The kernel gives back the references of
// entries that are gone; the store moves objects and has the kernel point to their new place.
// Thread-safe.
#pragma once

#include "cache/kernel.h"
#include "cache/payload_owner.h"
#include "proxy/observe/age_histogram.h"
#include "proxy/publish/resident_keys.h"
#include "proxy/settings/router.h"
#include "proxy/store/store.h"
#include "proxy/transfer/response.h"

namespace encore::server {

class StoreLink final : public cache::PayloadOwner, public store::Relocator {
 public:
  // `store` and `resident`, who is to know what goes (null: nobody), are borrowed and outlive it.
  // connect() before the first request.
  StoreLink(store::Store& store, const filter::Seed& identity_seed,
            publish::ResidentKeys* resident = nullptr)
      : store_(store), identity_seed_(identity_seed), resident_(resident) {}
  void connect(cache::Kernel* kernel) { kernel_ = kernel; }

  void note_evicted(std::span<const cache::Payload> payloads) override {
    const MonotonicTime now = monotonic_now();
    for (const cache::Payload payload : payloads) {
      evicted_ages_.record(now - meta_of(store::ObjectRef::peek(payload)).http.age_zero);
    }
  }
  // Ages of evicted objects, as HTTP counts them, from when they were made or validated.
  const AgeHistogram& evicted_ages() const { return evicted_ages_; }

  void release(std::span<const cache::Payload> payloads) override {
    if (resident_ != nullptr) {
      for (const cache::Payload payload : payloads) {
        const std::string_view key = primary_key_of(store::ObjectRef::peek(payload));
        resident_->remove(key.substr(kRealmBytes));
      }
    }
    store_.release(payloads);
  }

  bool replace(std::string_view key, store::Payload from, store::Payload to) override {
    if (kernel_ == nullptr) return false;
    // The object's text begins with the primary key; the rest says which variant.
    const auto primary = key.substr(0, meta_of(store::ObjectRef::peek(to)).primary_bytes);
    return kernel_->relocate(filter::identify(identity_seed_, primary).hash, from, to);
  }

 private:
  store::Store& store_;
  const filter::Seed identity_seed_;
  publish::ResidentKeys* const resident_;
  cache::Kernel* kernel_ = nullptr;
  AgeHistogram evicted_ages_;
};

}  // namespace encore::server
