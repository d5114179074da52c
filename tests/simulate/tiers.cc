// Compiled without access control (CMakeLists.txt), as held.cc is.
#include "tests/simulate/tiers.h"

#include <algorithm>
#include <vector>

#include "filter/hash.h"
#include "proxy/origin/fetch.h"
#include "proxy/process/rooms.h"
#include "proxy/process/worker.h"
#include "proxy/settings/router.h"
#include "proxy/settings/url_keys.h"
#include "proxy/transfer/response.h"

namespace encore::simulate {
namespace {

constexpr std::array kNames = {
#define ENCORE_SIMULATE_TEXT(id, name, meaning) std::string_view(name),
    ENCORE_SIMULATE_TIERS(ENCORE_SIMULATE_TEXT)
#undef ENCORE_SIMULATE_TEXT
};

std::vector<std::string> keys_of(const server::Runtime& runtime, const std::string& url) {
  const server::UrlTexts texts =
      server::texts_of_url(url, runtime.rules, runtime.forward, runtime.reverse);
  std::vector<std::string> keys;
  for (const std::string& text : texts.forward) {
    keys.push_back(std::string(server::kForwardRealm) + text);
  }
  for (const config::Origin& origin : runtime.config.origin) {
    const server::Route route(origin);
    for (const std::string& text : texts.reverse) {
      keys.push_back(route.realm() + text);
      keys.push_back(route.secure_realm() + text);
    }
  }
  return keys;
}

class Look final : public cache::Visitor {
 public:
  cache::Verdict visit(const cache::EntryView& entry) override {
    in_memory = in_memory || entry.payload != 0;
    return cache::Verdict::kKeep;
  }
  cache::Verdict visit_disk(const cache::DiskView& view) override {
    places.push_back(view.place);
    return cache::Verdict::kKeep;
  }
  bool in_memory = false;
  std::vector<cache::DiskPlace> places;
};

void look_at_places(disk::Disks& disks, const std::vector<cache::DiskPlace>& places, Tiers& out) {
  for (const cache::DiskPlace& place : places) {
    bool is_written = true;
    for (const auto& service : disks.services_) {
      if (service->setup_.number != place.disk) continue;
      for (const auto& [order, waiting] : service->queue_.waiting_) {
        if (waiting.place.segment != place.segment || waiting.place.unit != place.unit) continue;
        is_written = false;
        out.add(waiting.from ? Tier::kMoved : Tier::kWritten);
      }
      if (service->state_.moves.from_.contains(disk::Moves::key_of(place))) out.add(Tier::kMoved);
    }
    if (is_written) out.add(Tier::kDisk);
  }
}

}  // namespace

std::string_view to_string(Tier tier) { return kNames.at(static_cast<std::size_t>(tier)); }

std::vector<filter::Hash128> hashes_of(server::Proxy& proxy, const std::string& url) {
  std::vector<filter::Hash128> out;
  for (const std::string& key : keys_of(*proxy.present_runtime(), url)) {
    out.push_back(filter::hash_key(filter::HashFamily::kXxh3, proxy.shared().identity_seed, key));
  }
  return out;
}

Tiers tiers_of(server::Proxy& proxy, const std::string& url) {
  Tiers out;
  server::Shared& shared = proxy.shared();
  for (const std::string& key : keys_of(*proxy.present_runtime(), url)) {
    const auto hash = filter::hash_key(filter::HashFamily::kXxh3, shared.identity_seed, key);
    const auto is_it = [&](const filter::Hash128& other) {
      return other.lo == hash.lo && other.hi == hash.hi;
    };
    Look look;
    shared.kernel->peek({hash, key}, look);
    if (look.in_memory) out.add(Tier::kMemory);
    if (shared.disks != nullptr) look_at_places(*shared.disks, look.places, out);
    for (const auto& worker : proxy.workers()) {
      for (const auto& fetch : worker->fetches()) {
        if (is_it(fetch->request_->hash)) out.add(Tier::kFlight);
      }
      for (const auto& [name, waiting] : worker->rooms_->loads.waiting_) {
        if (is_it(waiting.hash)) out.add(Tier::kRead);
      }
    }
  }
  return out;
}

}  // namespace encore::simulate
