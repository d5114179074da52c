#include "tests/simulate/purges.h"

#include <string>
#include <vector>

namespace encore::simulate {
namespace {

using proxyfuzz::now;
using proxyfuzz::Url;

std::string text_of(const proxyfuzz::Ring& ring, const Url& url) {
  return "http://" + proxyfuzz::host_of(ring, url) + url.path;
}

// So many are looked for of many URLs that go at once.
constexpr std::size_t kLooksMax = 8;

}  // namespace

// Counts where it is now, and what of it is on its way. Before the purge.
void Purges::count(const char* by, bool soft, const Url& url, Host& host) {
  const std::string text = text_of(ring_, url);
  for (const filter::Hash128& key : hashes_of(host.proxy(), text)) {
    roads_.note_key(host.proxy(), Fate::kPurged, key);
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

// One that a disk alone has, where a few looks find it: of those the least is known. It is asked
// for again at once.
Url& Purges::pick(Random& random, Host& host) {
  constexpr int kLooks = 4;
  Url* url = nullptr;
  for (int left = kLooks; left != 0; --left) {
    url = &ring_.world.pick_url(random);
    if (!host.has_disk()) break;
    const Tiers tiers = tiers_of(host.proxy(), text_of(ring_, *url));
    if (tiers.is_in(Tier::kRead)) break;
    if (tiers.is_in(Tier::kDisk) && !tiers.is_in(Tier::kMemory)) break;
  }
  if (random.percent(50)) ring_.world.focus_on(*url);
  return *url;
}

void Purges::purge_something(Random& random, Host& host) {
  const std::uint64_t kind = random.below(100);
  if (kind < 50 || !kinds_.tags) return purge_url(random, host);
  if (kind < 53) return purge_others(host);
  proxyfuzz::World& world = ring_.world;
  const Url& like = pick(random, host);
  server::PurgeOrder order;
  order.soft = random.percent(30);
  const char* by = "tag";
  std::function<bool(const Url&)> holds;
  if (kind < 72 || !kinds_.prefixes) {
    if (like.tag.empty()) return purge_url(random, host);
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
      if (like.blob != nullptr) return purge_url(random, host);
      order.prefixes = {prefix};
      holds = [this, prefix](const Url& url) {
        return url.blob == nullptr && text_of(ring_, url).starts_with(prefix);
      };
    }
  }
  const bool soft = order.soft;
  const std::vector<Url*> met = world.invalidate_where(holds, now(), soft);
  for (std::size_t i = 0; i < met.size() && i < kLooksMax; ++i) count(by, soft, *met[i], host);
  (void)host.purge(order);
  for (Url* const url : met) {
    world.remember(*url, [time = now(), by, soft] {
      return std::to_string(time) + (soft ? " made stale by " : " purged by ") + by;
    });
  }
  world.count("purges");
}

void Purges::purge_url(Random& random, Host& host) {
  Url& url = pick(random, host);
  server::PurgeOrder order;
  order.urls = {text_of(ring_, url)};
  order.soft = random.percent(30);
  count("URL", order.soft, url, host);
  ring_.world.invalidate(url, {}, now(), order.soft);
  (void)host.purge(order);
  if (published_ != nullptr) published_->note_purge(url);
  ring_.world.remember(url, [time = now(), soft = order.soft] {
    return std::to_string(time) + (soft ? " made stale" : " purged");
  });
  ring_.world.count("purges");
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
