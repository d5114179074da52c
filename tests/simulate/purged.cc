#include "tests/simulate/purged.h"

#include <algorithm>
#include <utility>

#include "tests/fuzz/proxy/loop.h"

namespace encore::simulate {
namespace {

constexpr std::size_t kWatchedMax = 48;

}  // namespace

void Purged::note(const proxyfuzz::Url& url, std::vector<StoredKey> keys, By by, double time) {
  // An object of its digest may be another URL's as well.
  if (url.blob != nullptr) return;
  watched_.push_back({.url = url.number,
                      .path = url.path,
                      .keys = std::move(keys),
                      .by = by,
                      .time = time,
                      .alone_until = url.alone_until});
  if (watched_.size() <= kWatchedMax) return;
  // Those that nobody asks for show most, so another one goes first.
  const double present = proxyfuzz::now();
  const auto is_asked = [&](const Watched& each) { return each.alone_until <= present; };
  const auto found = std::ranges::find_if(watched_, is_asked);
  watched_.erase(found == watched_.end() ? watched_.begin() : found);
}

const proxyfuzz::Url* Purged::still_gone(const Watched& each) const {
  const proxyfuzz::Url* const url = world_.find_url(each.path);
  if (url == nullptr || url->number != each.url) return nullptr;
  const auto is_new = [&](std::uint64_t serial) {
    const proxyfuzz::Event* const event = world_.event(serial);
    return event != nullptr && event->method == "GET" && event->received >= each.time;
  };
  // The latest are behind.
  return std::ranges::any_of(url->serials.rbegin(), url->serials.rend(), is_new) ? nullptr : url;
}

void Purged::look(server::Proxy& proxy, const OnFault& on_fault) {
  std::erase_if(watched_, [this](const Watched& each) { return still_gone(each) == nullptr; });
  for (const Watched& each : watched_) {
    Tiers tiers;
    for (const StoredKey& key : each.keys) tiers.add_all(stored_tiers_of(proxy, key));
    const bool on_disk =
        tiers.is_in(Tier::kDisk) || tiers.is_in(Tier::kWritten) || tiers.is_in(Tier::kMoved);
    if (!tiers.is_in(Tier::kMemory) && !(on_disk && each.by == By::kKey)) continue;
    std::string text = each.path + " is stored " +
                       (tiers.is_in(Tier::kMemory) ? "in memory" : "on disk") + ", gone since " +
                       std::to_string(each.time) + (each.by == By::kKey ? " by key" : " by rule") +
                       "\n--- what happened to it\n";
    for (const auto& happening : still_gone(each)->history) text += happening() + "\n";
    on_fault(text);
  }
}

void Purged::ask_again() {
  for (const Watched& each : watched_) {
    if (const proxyfuzz::Url* const url = still_gone(each)) world_.come_back_to(*url);
  }
}

}  // namespace encore::simulate
