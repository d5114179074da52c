#include "tests/simulate/purges.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/simulate/stored.h"

namespace encore::simulate {
namespace {

using proxyfuzz::now;
using proxyfuzz::Url;

std::string text_of(const proxyfuzz::Ring& ring, const Url& url) {
  return "http://" + proxyfuzz::host_of(ring, url) + url.path;
}

// Purges of 100 that name a URL.
constexpr std::uint64_t kUrlKinds = 50;
// That nobody asks for a URL.
constexpr double kAloneSeconds = 1.2;
// At most so many URLs are looked for in a purge of many.
constexpr std::size_t kLooksMax = 8;

}  // namespace

// Counts where it is now, and what of it is on its way. Before the purge.
void Purges::count(const char* by, bool soft, const Url& url, Host& host) {
  const std::string text = text_of(ring_, url);
  for (const StoredKey& key : keys_of(host.proxy(), text)) {
    coverage_.note_key(host.proxy(), Fate::kPurged, key.hash);
  }
  Tiers tiers = tiers_of(host.proxy(), text);
  const bool on_disk = tiers.is_in(Tier::kDisk);
  const proxyfuzz::Event* const last =
      url.serials.empty() ? nullptr : ring_.world.event(url.serials.back());
  if (on_disk && last != nullptr && last->decided < host.started()) tiers.add(Tier::kSaved);
  for (std::size_t i = 0; i < tiers.has.size(); ++i) {
    if (!tiers.has.at(i)) continue;
    ring_.world.count("purge: by " + std::string(by) + (soft ? ", soft" : "") + ": " +
                      std::string(to_string(static_cast<Tier>(i))));
  }
}

// One that a disk alone has, where a few looks find it: of those the least is known. It is
// requested again immediately.
Url& Purges::pick(Random& random, Host& host) {
  constexpr int kLooks = 6;
  Url* url = nullptr;
  for (int left = kLooks; left != 0; --left) {
    url = &ring_.world.pick_url(random);
    if (!host.has_disk()) break;
    const Tiers tiers = tiers_of(host.proxy(), text_of(ring_, *url));
    if (tiers.is_in(Tier::kRead) || tiers.is_in(Tier::kWritten) || tiers.is_in(Tier::kMoved)) break;
    if (tiers.is_in(Tier::kDisk) && !tiers.is_in(Tier::kMemory)) break;
  }
  return *url;
}

void Purges::purge_something(Random& random, Host& host) {
  constexpr double kOfOthers = 3;
  constexpr double kOfUntagged = 50;
  if (kinds_.tags && random.percent(kOfOthers)) return purge_others(host);
  if (kinds_.tags && !ring_.world.untagged_part.empty() && random.percent(kOfUntagged)) {
    const std::string path = std::exchange(ring_.world.untagged_part, {});
    if (Url* const url = ring_.world.find_url(path)) {
      return purge_as(*url, kUrlKinds, random, host);
    }
  }
  purge_any(pick(random, host), random, host);
}

void Purges::purge_under_way(SlowDisk::Done what, Random& random, Host& host) {
  constexpr double kOfReads = 12;
  constexpr double kOfWrites = 6;
  // There are few moments at which records are moved.
  constexpr double kOfMoves = 80;
  const bool is_read = what == SlowDisk::Done::kRead;
  if (!is_read && has_moved(host.proxy())) {
    ring_.world.count("disk: moments at which records were moved");
    if (random.percent(kOfMoves)) purge_unwritten(Unwritten::kMoved, random, host);
    return;
  }
  if (!random.percent(is_read ? kOfReads : kOfWrites)) return;
  if (is_read) return purge_read(random, host);
  purge_unwritten(Unwritten::kAny, random, host);
}

void Purges::purge_read(Random& random, Host& host) {
  const std::vector<std::string> keys = keys_being_read(host.proxy());
  if (keys.empty()) return;
  const std::string& key = keys[random.below(keys.size())];
  Url* const url = ring_.world.find_url(path_of_key(key));
  // An object that its key does not name goes by a rule alone, of which nothing else informs the
  // reader.
  if (url == nullptr) return;
  purge_as(*url, random.between(30, kUrlKinds + 47), random, host);
  // Promoted all the same, it shows for as long as nobody asks for it.
  if (random.percent(50)) proxyfuzz::World::leave_alone(*url, kAloneSeconds);
}

void Purges::purge_unwritten(Unwritten which, Random& random, Host& host) {
  if (!has_unwritten(host.proxy())) return;
  const bool wants_moved = which == Unwritten::kMoved;
  Url* const url = ring_.world.find_active(random, [&](const Url& each) {
    const Tiers tiers = tiers_of(host.proxy(), text_of(ring_, each));
    return tiers.is_in(Tier::kMoved) || (!wants_moved && tiers.is_in(Tier::kWritten));
  });
  if (url != nullptr) purge_any(*url, random, host);
}

// A reverse proxy has one object for both schemes (docs/CACHING.md), and its operator may name
// either.
std::string Purges::named(std::string_view text, Random& random) const {
  // Published filters have both.
  const bool is_secure = random.percent(50) && ring_.world.is_reverse() && published_ == nullptr;
  return (is_secure ? "https" : "http") + std::string(text.substr(text.find(':')));
}

void Purges::purge_as(Url& like, std::uint64_t kind, Random& random, Host& host) {
  if (random.percent(50)) ring_.world.focus_on(like);
  if (kind < kUrlKinds || !kinds_.tags) return purge_url(like, random, host);
  proxyfuzz::World& world = ring_.world;
  server::PurgeOrder order;
  order.soft = random.percent(30);
  const char* by = "tag";
  std::function<bool(const Url&)> holds;
  if (kind < 72 || !kinds_.prefixes) {
    if (like.tag.empty()) return purge_url(like, random, host);
    order.tags = {like.tag};
    holds = [tag = like.tag](const Url& url) { return url.tag == tag; };
  } else {
    const std::string whole = text_of(ring_, like);
    const std::string host_part = whole.substr(0, whole.size() - like.path.size() + 1);
    by = kind < 98 ? "prefix" : kind < 99 ? "host" : "all";
    order.all = kind == 99;
    // A digest is a key of its own, which begins with no URL.
    const std::string prefix =
        kind < 98 ? whole.substr(0, whole.size() - random.below(2)) : host_part;
    if (order.all) {
      holds = [](const Url&) { return true; };
    } else {
      if (like.blob != nullptr) return purge_url(like, random, host);
      order.prefixes = {named(prefix, random)};
      holds = [this, prefix](const Url& url) {
        return url.blob == nullptr && text_of(ring_, url).starts_with(prefix);
      };
    }
  }
  const bool soft = order.soft;
  const double time = now();
  std::vector<Url*> met = world.invalidate_where(holds, time, soft);
  // However many are met, the one that it is drawn for is among those that are watched.
  if (const auto own = std::ranges::find(met, &like); own != met.end()) {
    std::iter_swap(met.begin(), own);
  }
  for (std::size_t i = 0; i < met.size() && i < kLooksMax; ++i) count(by, soft, *met[i], host);
  (void)host.purge(order);
  for (std::size_t i = 0; i < met.size(); ++i) {
    world.remember(*met[i], [time, by, soft] {
      return std::to_string(time) + (soft ? " made stale by " : " purged by ") + by;
    });
    if (soft || i >= kLooksMax) continue;
    leave_alone(*met[i], host);
    purged_.note(*met[i], keys_of(host.proxy(), text_of(ring_, *met[i])), Purged::By::kRule, time);
  }
  world.count("purges");
}

void Purges::purge_url(Url& url, Random& random, Host& host) {
  const std::string text = text_of(ring_, url);
  server::PurgeOrder order;
  order.urls = {named(text, random)};
  order.soft = random.percent(30);
  const double time = now();
  count("URL", order.soft, url, host);
  ring_.world.invalidate(url, {}, time, order.soft);
  (void)host.purge(order);
  if (published_ != nullptr) published_->note_purge(url);
  ring_.world.remember(url, [time, soft = order.soft] {
    return std::to_string(time) + (soft ? " made stale" : " purged");
  });
  if (!order.soft) leave_alone(url, host);
  if (!order.soft) purged_.note(url, keys_of(host.proxy(), text), Purged::By::kKey, time);
  ring_.world.count("purges");
}

void Purges::leave_alone(const Url& url, const Host& host) {
  constexpr double kPercent = 25;
  if (!host.has_disk() || !alone_.percent(kPercent)) return;
  if (Url* const own = ring_.world.find_url(url.path))
    proxyfuzz::World::leave_alone(*own, kAloneSeconds);
}

void Purges::note_written(const Url& url, double time, Host& host) {
  // Rules make other keys of it, by what it was asked for.
  if (!ring_.world.rules.empty()) return;
  leave_alone(url, host);
  purged_.note(url, keys_of(host.proxy(), text_of(ring_, url)), Purged::By::kKey, time);
}

// All that listeners of the other mode have stored, which is nothing: what ours have stays.
void Purges::purge_others(Host& host) {
  server::PurgeOrder order;
  order.ban = server::BanOrder{.forward = ring_.world.is_reverse(), .url = "^http://.*"};
  const std::uint64_t before = host.stored();
  const std::uint64_t purged = host.purge(order);
  if (purged != 0 || host.stored() != before) {
    ring_.world.report("realm", "a purge of another realm took " + std::to_string(purged), nullptr,
                       "");
  }
  ring_.world.count("purges of another realm");
}

}  // namespace encore::simulate
