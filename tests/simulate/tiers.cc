// Compiled without access control (CMakeLists.txt), as held.cc is.
#include "tests/simulate/tiers.h"

#include <algorithm>
#include <vector>

#include "cache/shard.h"
#include "filter/hash.h"
#include "proxy/origin/fetch.h"
#include "proxy/process/request_services.h"
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

std::vector<std::string> texts_of(const server::Runtime& runtime, const std::string& url) {
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
  bool in_memory = false;
};

bool is_moved(const disk::Disks& disks, const cache::DiskPlace& place) {
  return std::ranges::any_of(disks.services_, [&](const auto& service) {
    return service->setup_.number == place.disk &&
           service->state_.moves.from_.contains(disk::Relocations::key_of(place));
  });
}

// The index shows a record to nobody before it is written.
void look_at_index(const server::Shared& shared, const filter::Hash128& hash, Tiers& out) {
  if (shared.disks == nullptr) return;
  const cache::DiskTable& table = shared.kernel->shard_for(hash).disk->table_;
  const auto mixed = cache::DiskEntries::mixed_of({hash, {}});
  for (auto at = table.find(mixed); at != cache::kNoEntry; at = table.next(at)) {
    if (is_moved(*shared.disks, table.place(at))) {
      out.add(Tier::kMoved);
    } else if (!table.written(at)) {
      out.add(Tier::kWritten);
    } else {
      out.add(Tier::kDisk);
    }
  }
}

}  // namespace

std::string_view to_string(Tier tier) { return kNames.at(static_cast<std::size_t>(tier)); }

std::vector<StoredKey> keys_of(server::Proxy& proxy, const std::string& url) {
  std::vector<StoredKey> keys;
  for (std::string& text : texts_of(*proxy.present_runtime(), url)) {
    const auto hash =
        filter::hash_key(filter::HashFamily::kXxh3, proxy.shared().identity_seed, text);
    keys.push_back({.text = std::move(text), .hash = hash});
  }
  return keys;
}

Tiers stored_tiers_of(server::Proxy& proxy, const StoredKey& key) {
  Tiers out;
  Look look;
  proxy.shared().kernel->peek({key.hash, key.text}, look);
  if (look.in_memory) out.add(Tier::kMemory);
  look_at_index(proxy.shared(), key.hash, out);
  return out;
}

Tiers tiers_of(server::Proxy& proxy, const std::string& url) {
  Tiers out;
  for (const StoredKey& key : keys_of(proxy, url)) {
    const auto is_it = [&](const filter::Hash128& other) {
      return other.lo == key.hash.lo && other.hi == key.hash.hi;
    };
    out.add_all(stored_tiers_of(proxy, key));
    for (const auto& worker : proxy.workers()) {
      for (const auto& fetch : worker->fetches()) {
        if (is_it(fetch->request_->hash)) out.add(Tier::kFlight);
      }
      for (const auto& [name, waiting] : worker->request_services_->loads.waiting_) {
        if (is_it(waiting.hash)) out.add(Tier::kRead);
      }
    }
  }
  return out;
}

std::vector<std::string> keys_being_read(server::Proxy& proxy) {
  std::vector<std::string> keys;
  for (const auto& worker : proxy.workers()) {
    for (const auto& [name, waiting] : worker->request_services_->loads.waiting_)
      keys.push_back(waiting.key);
  }
  return keys;
}

bool has_moved(server::Proxy& proxy) {
  const disk::Disks* const disks = proxy.shared().disks.get();
  return disks != nullptr && std::ranges::any_of(disks->services_, [](const auto& service) {
           return !service->state_.moves.from_.empty();
         });
}

bool has_unwritten(server::Proxy& proxy) {
  const disk::Disks* const disks = proxy.shared().disks.get();
  return disks != nullptr && std::ranges::any_of(disks->services_, [](const auto& service) {
           return !service->queue_.waiting_.empty() || !service->state_.moves.from_.empty();
         });
}

}  // namespace encore::simulate
