#include "proxy/process/purge.h"

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <thread>
#include <unordered_set>

#include "proxy/admin/admin_server.h"
#include "proxy/http/uri.h"
#include "proxy/process/disk_purge.h"
#include "proxy/process/form.h"
#include "proxy/process/shared.h"
#include "proxy/settings/router.h"
#include "proxy/settings/runtime.h"
#include "proxy/settings/url_keys.h"
#include "proxy/transfer/response.h"

namespace encore::server {
namespace {

// Null: no flag has that name.
bool* flag_of(PurgeOrder& order, std::string_view name) {
  if (name == "all") return &order.all;
  if (name == "soft") return &order.soft;
  return name == "dry_run" ? &order.dry_run : nullptr;
}

Result<void> take(PurgeOrder& order, std::string_view name, std::string value) {
  if (bool* const found = flag_of(order, name)) {
    bool& flag = *found;
    flag = value == "1" || value == "true";
    if (flag || value == "0" || value == "false") return {};
    return fail(std::string(name) + " is true or false, not \"" + value + "\"");
  }
  if (value.empty()) return fail("\"" + std::string(name) + "\" is empty");
  if (name == "token") {
    if (!order.token.empty()) return fail("\"token\" is given twice");
    order.token = std::move(value);
  } else if (name == "url") {
    order.urls.push_back(std::move(value));
  } else if (name == "prefix") {
    order.prefixes.push_back(std::move(value));
  } else if (name == "tag") {
    order.tags.push_back(std::move(value));
  } else {
    return fail("unknown \"" + std::string(name) +
                "\"; accepted: url, prefix, tag, all, soft, dry_run, token");
  }
  return {};
}

Result<void> take_form(std::string_view form, PurgeOrder& order) {
  auto pairs = read_form(form);
  if (!pairs) return std::unexpected(pairs.error());
  for (auto& [name, value] : *pairs) {
    if (auto done = take(order, name, std::move(value)); !done) return done;
  }
  return {};
}

// An object of texts and lists of texts: what lies deeper is not even taken into memory, and
// nothing here calls itself for it.
constexpr int kJsonDepth = 2;

Result<nlohmann::json> parse_flat(std::string_view text) {
  using Parsed = nlohmann::json;
  bool too_deep = false;
  const auto keep = [&too_deep](int depth, Parsed::parse_event_t event, const Parsed& /*value*/) {
    const bool opens =
        event == Parsed::parse_event_t::object_start || event == Parsed::parse_event_t::array_start;
    too_deep = too_deep || (opens && depth >= kJsonDepth);
    return !too_deep;
  };
  Parsed json = Parsed::parse(text, keep, false);
  if (too_deep)
    return fail("the body is nested; accepted: keys with a string or a list of strings");
  if (!json.is_object()) return fail("the body is not a JSON object");
  return json;
}

Result<void> take_text(PurgeOrder& order, const std::string& name, const nlohmann::json& value) {
  if (!value.is_string()) return fail("\"" + name + "\" is not a string");
  return take(order, name, value.get<std::string>());
}

Result<void> read_json(std::string_view text, PurgeOrder& order) {
  const auto json = parse_flat(text);
  if (!json) return std::unexpected(json.error());
  for (const auto& [name, value] : json->items()) {
    bool* const flag = flag_of(order, name);
    if (value.is_boolean() && flag != nullptr) {
      *flag = value.get<bool>();
      continue;
    }
    if (!value.is_array()) {
      if (auto done = take_text(order, name, value); !done) return done;
      continue;
    }
    for (const auto& item : value) {
      if (auto done = take_text(order, name, item); !done) return done;
    }
  }
  return {};
}

// The cache key of a URL behind its realm; empty where it is none.
std::string key_text(std::string_view url, const http::KeyOptions& options) {
  std::string storage;
  http::Target target;
  if (!http::resolve_reference(url, {}, storage, target) || target.authority.host.empty()) {
    return {};
  }
  if (options.scheme) http::set_scheme(target, *options.scheme);
  std::string key(http::key_bytes_max(target), '\0');
  key.resize(http::write_key(target, options, key).bytes);
  return key;
}

// The keys of URLs in every realm.
std::vector<std::string> keys_of(const Runtime& runtime, const std::vector<std::string>& urls) {
  std::vector<std::string> realms;
  for (const config::Origin& origin : runtime.config.origin) {
    const Route route(origin);
    realms.push_back(route.realm());
    realms.push_back(route.secure_realm());
  }
  std::vector<std::string> keys;
  for (const std::string& url : urls) {
    const UrlTexts texts = texts_of_url(url, runtime.rules, runtime.forward, runtime.reverse);
    for (const std::string& text : texts.forward) keys.push_back(std::string(kForwardRealm) + text);
    for (const std::string& realm : realms) {
      for (const std::string& text : texts.reverse) keys.push_back(realm + text);
    }
  }
  return keys;
}

class Matcher final : public cache::Visitor {
 public:
  // `changed`: who is to know of it; null: nobody. `ban` is borrowed, null: there is none.
  Matcher(const PurgeOrder& order, const Ban* ban, publish::ChangedKeys* changed)
      : ban_(ban),
        changed_(changed),
        verdict_(order.dry_run ? cache::Verdict::kKeep
                 : order.soft  ? cache::Verdict::kMarkStale
                               : cache::Verdict::kRemove),
        tags_(order.tags.begin(), order.tags.end()) {
    for (const std::string& prefix : order.prefixes) {
      forward_.push_back(key_text(prefix, {}));
      reverse_.push_back(key_text(prefix, {.scheme = kReverseScheme}));
    }
    if (order.all) {
      // Every URL begins with nothing.
      forward_.emplace_back();
      reverse_.emplace_back();
    }
    for (auto* prefixes : {&forward_, &reverse_}) leave_shortest(*prefixes);
  }

  cache::Verdict visit(const cache::EntryView& entry) override {
    if (entry.payload == 0) return cache::Verdict::kKeep;
    const store::Object& object = store::ObjectRef::peek(entry.payload);
    const std::string_view key = primary_key_of(object);
    const bool banned =
        ban_ != nullptr && ban_->holds(key, content_type_of(object), tags_of(object));
    if (!banned && !has_prefix(key) && !has_tag(tags_of(object)) && !keys_.contains(key)) {
      return cache::Verdict::kKeep;
    }
    ++count_;
    if (changed_ != nullptr) met_.emplace_back(key.substr(kRealmBytes));
    return verdict_;
  }
  // Tells of those that were met, outside the shard's lock.
  void tell(WallTime now) {
    for (const std::string& url : met_) changed_->note(url, now);
    met_.clear();
  }
  // Informs the disks: their records of it are older than `version`.
  void tell(DiskPurge& on_disk, cache::DiskVersion version) const {
    for (const std::string& prefix : forward_) on_disk.add_prefix(true, prefix, version);
    for (const std::string& prefix : reverse_) on_disk.add_prefix(false, prefix, version);
    for (const std::string_view tag : tags_) on_disk.add_tag(tag, version);
    if (ban_ == nullptr) return;
    if (!ban_->is_plain()) return on_disk.add_ban(*ban_, version);
    const BanOrder& order = ban_->order();
    for (const std::string& tag : order.tags) on_disk.add_tag(tag, version);
    for (const std::string& prefix : ban_->prefixes()) {
      on_disk.add_prefix(order.forward, prefix, version);
    }
  }
  std::uint64_t count() const { return count_; }
  // Entries of this key, too, which is borrowed.
  void add_key(std::string_view key) { keys_.insert(key); }

 private:
  // Sorts them, and removes those that begin with another.
  static void leave_shortest(std::vector<std::string>& prefixes) {
    std::ranges::sort(prefixes);
    const auto gone = std::ranges::unique(
        prefixes, [](const std::string& a, const std::string& b) { return b.starts_with(a); });
    prefixes.erase(gone.begin(), gone.end());
  }
  // None begins with another: one that the key begins with is the last before what is behind it.
  bool has_prefix(std::string_view key) const {
    const auto& prefixes = key.starts_with(kForwardRealm) ? forward_ : reverse_;
    key.remove_prefix(kRealmBytes);
    const auto behind = std::ranges::upper_bound(prefixes, key);
    return behind != prefixes.begin() && key.starts_with(*std::prev(behind));
  }
  bool has_tag(std::string_view tags) const {
    while (!tags_.empty() && !tags.empty()) {
      const std::string_view tag = tags.substr(0, tags.find('\n'));
      if (tags_.contains(tag)) return true;
      tags.remove_prefix(tag.size() + 1);
    }
    return false;
  }

  const Ban* ban_;
  publish::ChangedKeys* changed_;
  std::vector<std::string> met_;
  cache::Verdict verdict_;
  std::unordered_set<std::string_view> tags_;
  std::unordered_set<std::string_view> keys_;
  std::vector<std::string> forward_;  // sorted, as those
  std::vector<std::string> reverse_;
  std::uint64_t count_ = 0;
};

constexpr std::size_t kShardsInTurn = 4;

// Visits one slice of a shard after the other's: a lock is not fair, and a thread that waits for
// one has it by the time at which its turn comes again. If few are left that is soon, and others
// are let go first.
// `stale_from`: of those that become stale; nothing: now.
void visit_all(cache::Kernel& kernel, Matcher& visitor, LamportClock& moment,
               std::optional<MonotonicTime> stale_from) {
  std::vector<cache::Kernel::Cursor> cursors;
  for (std::uint32_t shard = 0; shard < kernel.shards(); ++shard) cursors.push_back({shard, 0});
  while (!cursors.empty()) {
    const MonotonicTime now = monotonic_now();
    moment.note(now);
    std::erase_if(cursors, [&](cache::Kernel::Cursor& cursor) {
      const std::uint32_t shard = cursor.shard;
      (void)kernel.for_each(cursor, kPurgeSliceSlots, visitor, stale_from.value_or(now));
      visitor.tell(wall_now());
      return cursor.shard != shard;
    });
    if (cursors.size() < kShardsInTurn) std::this_thread::yield();
  }
}

}  // namespace

Result<PurgeOrder> read_purge_order(const AdminRequest& request) {
  PurgeOrder order;
  if (auto done = take_form(request.query, order); !done) return std::unexpected(done.error());
  const bool json = request.field("Content-Type").starts_with("application/json");
  const auto done = json ? read_json(request.body, order) : take_form(request.body, order);
  if (!done) return std::unexpected(done.error());
  if (order.urls.empty() && order.prefixes.empty() && order.tags.empty() && !order.all) {
    return fail("no target; accepted: url, prefix, tag, all");
  }
  if (auto checked = check_purge_order(order); !checked) return std::unexpected(checked.error());
  return order;
}

Result<void> check_purge_order(const PurgeOrder& order) {
  for (const auto* urls : {&order.urls, &order.prefixes}) {
    for (const std::string& url : *urls) {
      if (key_text(url, {}).empty()) return fail("\"" + url + "\" is not an http(s) URL");
    }
  }
  for (const std::string& key : order.keys) {
    if (key.size() < kRealmBytes) return fail("\"" + key + "\" is not a key");
  }
  if (!order.ban) return {};
  const auto ban = Ban::create(*order.ban);
  return ban ? Result<void>() : fail("its ban: " + ban.error().message);
}

namespace {

// The URLs themselves, in all forms that keys have them, whether anything is stored there or not.
void tell_of_urls(Shared& shared, const std::vector<std::string>& keys) {
  if (shared.changed == nullptr) return;
  std::set<std::string_view> urls;
  for (const std::string& key : keys) urls.insert(std::string_view(key).substr(kRealmBytes));
  for (const std::string_view url : urls) shared.changed->note(url, wall_now());
}

// A key's entries, gone or stale; how many there were.
std::uint64_t purge_key(Shared& shared, std::string_view key, bool soft, DiskPurge& on_disk) {
  cache::Kernel& kernel = *shared.kernel;
  const auto hash = filter::hash_key(filter::HashFamily::kXxh3, shared.identity_seed, key);
  const cache::Key entry{hash, key};
  const MonotonicTime now = monotonic_now();
  shared.latest_moment.note(now);
  shared.inflight.invalidate(hash, key);
  cache::DiskTombstone tombstone;
  const std::uint64_t count =
      soft ? kernel.mark_stale(entry, now, &tombstone) : kernel.invalidate(entry, now, &tombstone);
  on_disk.add_key(hash, tombstone);
  return count;
}

// Counts the objects in memory that a purge names; all stays unchanged.
PurgeResult count_only(Shared& shared, const Runtime& runtime, const PurgeOrder& order) {
  const std::vector<std::string> keys = keys_of(runtime, order.urls);
  Matcher matcher(order, nullptr, nullptr);
  for (const std::string& key : keys) matcher.add_key(key);
  visit_all(*shared.kernel, matcher, shared.latest_moment, {});
  return {.count = matcher.count(), .lazily = shared.disks != nullptr};
}

}  // namespace

PurgeResult purge(Shared& shared, const Runtime& runtime, const PurgeOrder& order) {
  if (order.dry_run) return count_only(shared, runtime, order);
  std::optional<Ban> ban;
  if (order.ban) {
    auto made = Ban::create(*order.ban);
    if (!made) return {.refusal = made.error().message};
    if (shared.disks != nullptr && !made->is_plain()) {
      if (auto taken = may_take(*shared.disks, *made); !taken) {
        return {.refusal = taken.error().message};
      }
    }
    ban = std::move(*made);
  }
  cache::Kernel& kernel = *shared.kernel;
  const bool has_rules = order.all || !order.prefixes.empty() || !order.tags.empty() || ban;
  DiskPurge on_disk(shared.disks.get());
  std::uint64_t count = 0;
  const std::vector<std::string> of_urls = keys_of(runtime, order.urls);
  for (const std::string& key : of_urls) count += purge_key(shared, key, order.soft, on_disk);
  for (const std::string& key : order.keys) {
    count += purge_key(shared, key, order.soft, on_disk);
    if (shared.changed != nullptr) shared.changed->note(key.substr(kRealmBytes), wall_now());
  }
  tell_of_urls(shared, of_urls);
  Matcher matcher(order, ban ? &*ban : nullptr, shared.changed.get());
  if (has_rules && shared.disks != nullptr)
    matcher.tell(on_disk, kernel.purge_rule(monotonic_now()));
  on_disk.begin();
  if (has_rules) {
    // Objects that were read before the rules were in force are not used any more.
    shared.inflight.invalidate_all();
    const auto stale_from = order.validate ? std::optional(http::kStaleAlways) : std::nullopt;
    visit_all(kernel, matcher, shared.latest_moment, stale_from);
  }
  return {.count = count + matcher.count(),
          .lazily = has_rules && shared.disks != nullptr,
          .durable = on_disk.end()};
}

}  // namespace encore::server
