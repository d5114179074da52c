#include "tests/fuzz/proxy/world.h"

#include <openssl/evp.h>

#include <algorithm>
#include <array>
#include <cinttypes>
#include <cstdio>
#include <utility>

#include "tests/fuzz/proxy/loop.h"

namespace encore::proxyfuzz {
namespace {

// Old enough that no answer can come from a URL that has been let go: no request asks for it, and
// those that did have ended long ago.
constexpr double kRetiredSeconds = 60;
constexpr std::size_t kHistory = 60;
constexpr double kBlobPercent = 15;
constexpr double kTwinPercent = 50;

std::string sha256_of(const std::string& bytes) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest;
  unsigned size = 0;
  EVP_Digest(bytes.data(), bytes.size(), digest.data(), &size, EVP_sha256(), nullptr);
  std::string out;
  for (unsigned i = 0; i < size; ++i) {
    char digits[3];
    std::snprintf(digits, sizeof digits, "%02x", digest[i]);
    out += digits;
  }
  return out;
}

}  // namespace

bool same_selecting(const Selecting& a, const Selecting& b, std::string_view name) {
  if (same_name(name, "Cookie")) return a.cookie == b.cookie;
  if (same_name(name, "X-Lang")) return a.lang == b.lang;
  if (same_name(name, "Accept-Encoding")) return a.encodings == b.encodings;
  return false;  // "*", and names that the origin never says
}

std::string World::asker_of(const Request& request) const {
  const auto said = [&request](std::string_view name) {
    const Field* const field = find(request.fields, name);
    return field == nullptr ? std::string("-") : field->value;
  };
  // An origin may tell clients apart by any field that it receives.
  const Selecting& sent = request.selecting;
  return said("Authorization") + "|" + sent.cookie.value_or("-") + "|" + sent.lang.value_or("-") +
         "|" + sent.encodings + "|" + request.tenant.value_or("-") + "|" + request.query + "|" +
         (is_told(request) ? request.client : "") + "|" +
         (request.rule == nullptr ? "" : request.rule->asks());
}

std::uint64_t Lines::hash_of(const Field& field) noexcept {
  std::uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
  const auto add = [&hash](char c) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  };
  for (const char c : field.name) add(c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c);
  add(':');
  for (const char c : field.value) add(c);
  return std::max(mix(hash), kNone + 1);
}

std::size_t Lines::place_of(std::uint64_t hash) const noexcept {
  std::size_t place = hash & (slots_.size() - 1);
  while (slots_[place] != kNone && slots_[place] != hash) place = (place + 1) & (slots_.size() - 1);
  return place;
}

void Lines::add(const Field& field) {
  if (2 * (taken_ + 1) > slots_.size()) grow();
  const std::uint64_t hash = hash_of(field);
  std::uint64_t& slot = slots_[place_of(hash)];
  if (slot == kNone) ++taken_;
  slot = hash;
}

void Lines::grow() {
  const std::vector<std::uint64_t> before =
      std::exchange(slots_, std::vector<std::uint64_t>(std::max<std::size_t>(64, 4 * taken_)));
  for (const std::uint64_t hash : before) {
    if (hash != kNone) slots_[place_of(hash)] = hash;
  }
}

World::World(std::uint64_t seed, bool reverse, std::size_t urls, Origins origins)
    : seed_(seed), reverse_(reverse), origins_(origins), random_(seed, 'w', 0), active_(urls) {
  own_.path = "(what the proxy publishes)";
  for (std::size_t slot = 0; slot < urls; ++slot) make_url(slot);
}

void World::make_url(std::size_t slot) {
  auto url = std::make_unique<Url>();
  url->number = urls_made_++;
  url->path = "/u" + std::to_string(url->number);
  url->random = Random(seed_, 'u', url->number);
  url->character = random_character(url->random);
  if (origins_ == Origins::kReliable) {
    Character& character = url->character;
    character.drop = character.cut = character.error = 0;
    character.slow_head = character.slow_body = 0;
  }
  url->birth = wall_seconds() - url->random.pick<std::int64_t>({20, 60, 1000, 100000});
  // Many first times, and some that live long enough to become stale often.
  url->requests_left = static_cast<int>(url->random.pick<std::uint64_t>({6, 20, 60, 400, 2000}));
  if (url->random.percent(kBlobPercent)) {
    make_blob(*url);
  } else if (url->number % 3 != 0) {
    url->tag = "t" + std::to_string(url->number % 7);
  }
  by_path_[url->path] = url.get();
  if (active_[slot]) retired_.emplace_back(now(), std::move(active_[slot]));
  active_[slot] = std::move(url);
}

// Named by the digest of what it has, as layers of images are; it may be that of another one.
void World::make_blob(Url& url) {
  Character& character = url.character;
  character.etag = 1;
  character.last_modified = character.personal = false;
  character.wrong = url.random.pick({0, 0, 40});
  const Url* const twin = std::exchange(last_blob_, &url);
  const bool has_twin = url.random.percent(kTwinPercent) && twin != nullptr;
  // At least what names it.
  const auto bytes = 64 + static_cast<std::uint32_t>(url.random.below(character.size_max + 1));
  url.blob = &make_content(url, {}, -1, has_twin ? twin->blob->bytes : bytes);
  if (has_twin) url.blob->name = twin->blob->name;
  std::string all;
  append_content(url.blob->name, 0, url.blob->bytes, all);
  url.path += std::string(kDigest) + sha256_of(all);
}

Url& World::pick_url(Random& random) {
  constexpr double kComesBack = 30;
  if (!comes_back_.empty() && random.percent(kComesBack)) {
    Url* const url = find_url(comes_back_.back());
    comes_back_.pop_back();
    if (url != nullptr) return *url;
  }
  if (--focus_left_ < 0) {
    focus_ = random_.below(active_.size());
    focus_left_ = static_cast<int>(random_.between(5, 120));
  }
  std::size_t slot = focus_;
  if (!random.percent(45)) {
    // Squared: the lower numbers more often.
    const double unit = static_cast<double>(random.below(1 << 20)) / (1 << 20);
    slot = static_cast<std::size_t>(unit * unit * static_cast<double>(active_.size()));
  }
  constexpr int kOthers = 4;
  for (int left = kOthers; left != 0 && active_[slot]->alone_until > now(); --left) {
    slot = (slot + 1) % active_.size();
  }
  if (--active_[slot]->requests_left < 0) {
    make_url(slot);
    retire();
  }
  return *active_[slot];
}

void World::focus_on(const Url& url) {
  constexpr int kRequests = 8;
  const auto found = std::ranges::find(active_, &url, &std::unique_ptr<Url>::get);
  if (found == active_.end()) return;
  focus_ = static_cast<std::size_t>(found - active_.begin());
  focus_left_ = kRequests;
}

void World::leave_alone(Url& url, double seconds) { url.alone_until = now() + seconds; }

void World::come_back_to(const Url& url) {
  constexpr std::size_t kMost = 40;
  if (comes_back_.size() < kMost) comes_back_.push_back(url.path);
}

Url* World::pick_slow(Random& random) {
  const double until = now();
  while (!slow_bodies_.empty() && slow_bodies_.front().first < until) slow_bodies_.pop_front();
  const std::uint64_t drawn = random.next();
  return slow_bodies_.empty() ? nullptr : slow_bodies_[drawn % slow_bodies_.size()].second;
}

Url* World::find_active(Random& random, const std::function<bool(Url&)>& holds) {
  const std::size_t first = random.below(active_.size());
  for (std::size_t i = 0; i < active_.size(); ++i) {
    Url& url = *active_[(first + i) % active_.size()];
    if (holds(url)) return &url;
  }
  return nullptr;
}

// Lets go what no answer can speak of any more.
void World::retire() {
  while (!retired_.empty() && retired_.front().first + kRetiredSeconds < now() &&
         retired_.front().second->clients == 0) {
    const Url* gone = retired_.front().second.get();
    if (gone->blob != nullptr) {
      blobs_gone_.push_back(std::move(retired_.front().second));
      retired_.pop_front();
      continue;
    }
    by_path_.erase(gone->path);
    for (const std::uint64_t serial : gone->serials) events_[serial - 1].reset();
    for (const std::uint64_t number : gone->contents_made) contents_[number - 1].reset();
    for (const std::uint64_t tag : gone->tags) requests_[tag - 1].reset();
    retired_.pop_front();
  }
}

Url* World::find_url(std::string_view path) const {
  const auto found = by_path_.find(path);
  return found == by_path_.end() ? nullptr : found->second;
}

Content& World::make_content(Url& url, const Selecting& selecting, int user, std::uint32_t bytes) {
  auto content = std::make_unique<Content>();
  content->number = contents_.size() + 1;
  content->name = {.number = content->number, .user = user};
  content->url = &url;
  content->bytes = bytes;
  content->made = now();
  content->selecting = selecting;
  const std::string tag = "\"c" + std::to_string(content->number) + "\"";
  if (url.character.etag != 0) content->etag = (url.character.etag == 2 ? "W/" : "") + tag;
  const std::int64_t modified = url.birth + url.contents++;
  if (url.character.last_modified && modified + 2 < wall_seconds()) {
    content->last_modified = modified;
  }
  Content& made = *content;
  contents_.push_back(std::move(content));
  url.contents_made.push_back(made.number);
  return made;
}

Event& World::make_event(Url& url) {
  auto event = std::make_unique<Event>();
  event->serial = events_.size() + 1;
  event->url = &url;
  Event& made = *event;
  events_.push_back(std::move(event));
  url.serials.push_back(made.serial);
  return made;
}

const Event* World::event(std::uint64_t serial) const {
  return serial - 1 < events_.size() ? events_[serial - 1].get() : nullptr;
}

const Content* World::content(std::uint64_t number) const {
  return number - 1 < contents_.size() ? contents_[number - 1].get() : nullptr;
}

Content* World::find_content(std::uint64_t number) {
  return number - 1 < contents_.size() ? contents_[number - 1].get() : nullptr;
}

void World::invalidate(Url& url, std::string_view query, double time, bool soft) const {
  for (const std::string& key : rules.keys_of(url.path, query)) {
    Url::Bounds& bounds = url.bounds[key];
    double& before = soft ? bounds.stale_before : bounds.not_before;
    before = std::max(before, time);
  }
}

std::vector<Url*> World::invalidate_where(const std::function<bool(const Url&)>& holds, double time,
                                          bool soft) {
  std::vector<Url*> met;
  const auto meet = [&](Url& url) {
    if (!holds(url)) return;
    double& before = soft ? url.all_bounds.stale_before : url.all_bounds.not_before;
    before = std::max(before, time);
    met.push_back(&url);
  };
  for (const auto& url : active_) meet(*url);
  // Those that nobody asks for any more are stored still.
  for (const auto& [time_retired, url] : retired_) meet(*url);
  return met;
}

std::uint64_t Limit::most_since(double time, std::uint64_t otherwise) const {
  if (values_.empty()) return otherwise;
  std::uint64_t most = 0;
  for (auto at = values_.rbegin(); at != values_.rend(); ++at) {
    most = std::max(most, at->second);
    if (at->first <= time) break;
  }
  return most;
}

const Rule* World::storing_rule(const Request& request, std::string_view content_type) const {
  if (request.own_path.empty() && request.rules_before <= earlier_rules.size()) {
    const RuleTable& table =
        request.rules_before == earlier_rules.size() ? rules : earlier_rules[request.rules_before];
    return table.find({.path = request.url->path,
                       .method = request.method,
                       .client = request.client,
                       .listener = request.listener},
                      content_type.substr(0, content_type.find(';')));
  }
  return nullptr;
}

double World::understated_since(double time) const {
  double seconds = 0;
  if (last_ending < time) return seconds;
  for (const auto& [at, by] : set_back_) {
    if (at >= time) seconds += by;
  }
  return seconds;
}

void World::note_heard(std::uint64_t serial) {
  Event* const event = events_[serial - 1].get();
  if (event != nullptr) event->heard = now();
}

// Notes a hit on a response that is stored once, and not again.
void World::note_hit(const Request& request, std::uint64_t serial, double head_at) {
  if (!on_hit) return;
  Event& event = *events_[serial - 1];
  if (event.first_hit < head_at) {
    on_hit(request, event.first_hit);
  } else {
    event.first_hit = head_at;
  }
}

std::shared_ptr<Request> World::make_request(Url& url) {
  auto request = std::make_shared<Request>();
  request->tag = requests_.size() + 1;
  request->url = &url;
  url.tags.push_back(request->tag);
  requests_.push_back(request);
  return request;
}

std::shared_ptr<Request> World::request(std::uint64_t tag) const {
  return tag - 1 < requests_.size() ? requests_[tag - 1] : nullptr;
}

void World::remember(Url& url, std::function<std::string()> happening) {
  url.history.push_back(std::move(happening));
  if (url.history.size() > kHistory) url.history.pop_front();
}

void World::report(std::string_view kind, std::string_view what, const Request* request,
                   std::string_view answer) {
  Finding finding{.kind = std::string(kind), .text = std::string(what) + "\n"};
  if (request != nullptr) {
    finding.text += "--- the request, of user " + std::to_string(request->user) + ", tag " +
                    std::to_string(request->tag) + "\n" + request->method + " " +
                    request->url->path + (request->query.empty() ? "" : "?" + request->query) +
                    (request->http10 ? " HTTP/1.0\n" : " HTTP/1.1\n");
    for (const Field& field : request->fields) {
      finding.text += field.name + ": " + field.value + "\n";
    }
    if (!rules.empty()) {
      finding.text += "from " + request->client + " to listener " +
                      std::to_string(request->listener) + " by " +
                      (request->rule == nullptr ? "no rule" : request->rule->name) + "\n";
    }
    char times[96];
    std::snprintf(times, sizeof times, "started %.3f, told %.3f\n", request->started, now());
    finding.text += times;
  }
  finding.text += "--- the answer\n";
  finding.text += answer;
  if (request != nullptr) {
    finding.text += "--- what happened to " + request->url->path + "\n";
    for (const auto& happening : request->url->history) finding.text += happening() + "\n";
  }
  if (on_finding) on_finding(finding);
}

}  // namespace encore::proxyfuzz
