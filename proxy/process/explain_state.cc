#include "proxy/process/explain_state.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/readable.h"
#include "proxy/exchange/authorization_cache.h"
#include "proxy/exchange/decide.h"
#include "proxy/http/reuse.h"
#include "proxy/http/stored_head.h"
#include "proxy/http/targeted.h"
#include "proxy/http/variant_keys.h"
#include "proxy/observe/redaction.h"
#include "proxy/transfer/response.h"

namespace encore::server {
namespace {

struct InMemory {
  store::ObjectRef object;
  cache::EntryView entry;
};

// Collects the objects that are stored under a key, to be read when no lock is held any more.
class Collect final : public cache::Visitor {
 public:
  Collect() {
    memory_.reserve(cache::kVariantsMax);
    disk_.reserve(cache::kVariantsMax);
  }
  cache::Verdict visit(const cache::EntryView& entry) override {
    memory_.push_back({store::ObjectRef::share(entry.payload), entry});
    return cache::Verdict::kKeep;
  }
  cache::Verdict visit_disk(const cache::DiskView& view) override {
    disk_.push_back(view);
    return cache::Verdict::kKeep;
  }
  const std::vector<InMemory>& memory() const { return memory_; }
  const std::vector<cache::DiskView>& disk() const { return disk_; }

 private:
  std::vector<InMemory> memory_;
  std::vector<cache::DiskView> disk_;
};

std::int64_t whole_seconds(Nanoseconds time) {
  return std::chrono::floor<std::chrono::seconds>(time).count();
}
// Until then; of what never ends, a hundred years.
std::int64_t seconds_until(MonotonicTime then, MonotonicTime now) {
  constexpr std::int64_t kLong = std::int64_t{100} * 365 * 86400;
  const std::int64_t end =
      std::chrono::floor<std::chrono::seconds>(then.time_since_epoch()).count();
  const std::int64_t begin = whole_seconds(now.time_since_epoch());
  return std::clamp(end - begin, -kLong, kLong);
}

// Returns the reason for which a stored response is storable.
std::string storable_by(const store::Object& object, const RequestContext& request) {
  http::ResponseHead head;
  http::read_stored_head(stored_head_of(object), head);
  const RequestPolicy& request_policy = request.policy_for_content_type(content_type_of(object));
  auto directives = http::effective_directives(head.fields, request.targets());
  http::leave_out(directives, request_policy.store.ignored);
  const http::UnixSeconds date = meta_of(object).http.date;
  const auto lifetime = http::freshness_lifetime(head, directives, date == http::kNoDate ? 0 : date,
                                                 request_policy.store.freshness);
  switch (lifetime.source) {
    case http::LifetimeSource::kSMaxAge:
      return "s-maxage (RFC 9111 5.2.2.10)";
    case http::LifetimeSource::kMaxAge:
      return directives.targeted ? "max-age of a targeted field (RFC 9213)"
                                 : "max-age (RFC 9111 5.2.2.1)";
    case http::LifetimeSource::kExpires:
      return "Expires (RFC 9111 5.3)";
    case http::LifetimeSource::kHeuristic:
      return "its status and Last-Modified (RFC 9111 4.2.2)";
    case http::LifetimeSource::kRule:
      return "a [[rule]]";
    case http::LifetimeSource::kNone:
      break;
  }
  return directives.is_public ? "public (RFC 9111 5.2.2.9)"
                              : "its status and validator (RFC 9111 3)";
}

// One name's part of a variant key: a value, or that the request had none.
struct Selector {
  std::string_view name;
  std::optional<std::string_view> value;
};

// The parts of a variant key, in the order of its names.
std::vector<Selector> selectors_of(std::string_view names, std::string_view variant_key) {
  std::vector<Selector> selectors;
  std::string_view rest = variant_key;
  rest.remove_prefix(std::min(names.size(), rest.size()));
  constexpr std::string_view kMarks("\x01\x02", 2);  // absent, present (http/vary.cc)
  while (!names.empty()) {
    const std::size_t end = std::min(names.find(','), names.size());
    Selector selector{.name = names.substr(0, end), .value = {}};
    names.remove_prefix(std::min(end + 1, names.size()));
    if (!rest.empty()) {
      const bool is_present = rest.front() == kMarks[1];
      rest.remove_prefix(1);
      const std::string_view value = rest.substr(0, rest.find_first_of(kMarks));
      rest.remove_prefix(value.size());
      if (is_present) selector.value = value;
    }
    selectors.push_back(selector);
  }
  return selectors;
}

// "accept-encoding = gzip, cookie = ***": credentials of clients are not shown, but whether there
// were some.
std::string varies_by(std::string_view names, std::string_view variant_key) {
  constexpr std::size_t kShown = 200;
  if (variant_key.empty()) return std::string(names);
  std::string text;
  for (const Selector& selector : selectors_of(names, variant_key)) {
    if (!text.empty()) text += ", ";
    text.append(selector.name).append(" = ");
    if (!selector.value) {
      text += "none";
    } else if (is_secret_field(selector.name)) {
      text += Redaction::kHidden;
    } else {
      text += selector.value->substr(0, kShown);
    }
  }
  std::ranges::replace_if(text, [](char c) { return c < ' ' || c > '~'; }, ' ');
  return text;
}

constexpr std::string_view kAcceptEncoding = "accept-encoding";

// Checks the collected objects as a lookup for the request would.
class Look {
 public:
  // `fields` select the variant; borrowed.
  Look(const Running& running, const RequestContext& request, const http::Fields& fields)
      : running_(running),
        request_(request),
        own_(fields, request.vary()),
        allowed_private_(running.runtime->destinations.may_reach_private(request.client)) {
    running.kernel.peek({request.hash, request.key}, stored_);
  }

  std::vector<ExplainedVariant> variants() {
    std::vector<ExplainedVariant> all;
    for (const InMemory& each : stored_.memory()) {
      if (primary_key_of(*each.object) == request_.key) all.push_back(in_memory(each));
    }
    for (const cache::DiskView& view : stored_.disk()) all.push_back(on_disk(view));
    return all;
  }
  // REQUIRES: variants() was called. Null, or the one in memory that the request gets.
  const InMemory* found() const { return found_; }
  bool found_on_disk() const { return found_on_disk_.has_value(); }
  bool is_fresh_on_disk() const { return running_.now < found_on_disk_->fresh_until; }
  bool has_found() const { return found_ != nullptr || found_on_disk_.has_value(); }
  bool is_hidden() const { return is_hidden_; }
  bool any_resident() const { return any_resident_; }
  // Values of Accept-Encoding that variants in memory were requested with.
  std::vector<std::string> encodings() const {
    std::vector<std::string> all;
    for (const InMemory& each : stored_.memory()) {
      const store::Object& object = *each.object;
      for (const Selector& selector : selectors_of(names_of(object), variant_key_of(object))) {
        if (selector.name == kAcceptEncoding && selector.value) all.emplace_back(*selector.value);
      }
    }
    return all;
  }

 private:
  bool is_past(MonotonicTime fresh_until, MonotonicTime keep_until) const {
    return running_.now >= fresh_until && running_.now >= keep_until;
  }

  ExplainedVariant in_memory(const InMemory& each) {
    const store::Object& object = *each.object;
    const http::StoredMeta meta = meta_until(object, each.entry.fresh_until);
    ExplainedVariant variant{
        .variant = each.entry.variant,
        .varies_by = varies_by(names_of(object), variant_key_of(object)),
        .status = meta.status,
        .body_bytes = body_length_of(object),
        .charge_bytes = each.entry.charge_bytes,
        .age_seconds = http::current_age(meta, running_.now),
        .fresh_seconds = http::remaining_ttl(meta, running_.now),
        .kept_seconds =
            seconds_until(std::max(each.entry.fresh_until, each.entry.keep_until), running_.now),
        .storable = storable_by(object, request_)};
    if (is_past(each.entry.fresh_until, each.entry.keep_until)) {
      variant.barred = "expired";
      return variant;
    }
    any_resident_ = true;
    if (!matches(names_of(object), variant_key_of(object))) {
      variant.barred = "another variant";
      return variant;
    }
    if (found_ != nullptr || is_hidden_) return variant;
    if (meta.is(http::StoredMeta::kPrivateOrigin) && !allowed_private_) {
      variant.barred = "from a private address that this client may not reach";
      is_hidden_ = true;
      return variant;
    }
    if (!may_be_rechecked(request_, object)) {
      variant.barred = "for clients only that its origin confirms";
      is_hidden_ = true;
      return variant;
    }
    variant.selected = true;
    found_ = &each;
    return variant;
  }

  ExplainedVariant on_disk(const cache::DiskView& view) {
    const std::string_view names = running_.kernel.disk_names(view.names);
    ExplainedVariant variant{
        .on_disk = true,
        .variant = view.variant,
        .varies_by = varies_by(names, {}),
        .body_bytes = view.place.bytes,
        .fresh_seconds = seconds_until(view.fresh_until, running_.now),
        .kept_seconds = seconds_until(std::max(view.fresh_until, view.keep_until), running_.now)};
    if (is_past(view.fresh_until, view.keep_until)) {
      variant.barred = "expired";
      return variant;
    }
    any_resident_ = true;
    const std::uint64_t wanted = names.empty() ? 0 : variant_of(names, own_.make(names));
    if (static_cast<std::uint32_t>(wanted) != view.variant) {
      variant.barred = "another variant";
    } else if (found_ == nullptr && !is_hidden_ && !found_on_disk_) {
      found_on_disk_ = view;
      variant.selected = true;
    }
    return variant;
  }

  bool matches(std::string_view names, std::string_view variant_key) {
    return names.empty() || own_.make(names) == variant_key;
  }

  const Running& running_;
  const RequestContext& request_;
  http::VariantKeys own_;
  const bool allowed_private_;
  Collect stored_;
  const InMemory* found_ = nullptr;
  std::optional<cache::DiskView> found_on_disk_;
  bool is_hidden_ = false;
  bool any_resident_ = false;
};

struct Now {
  std::string kind;
  std::string text;
};

Now of_absent(const Running& running, const RequestContext& request, bool any_resident) {
  if (request.directives.only_if_cached) {
    return {"only-if-cached", "504: not stored, and the client accepts only stored responses"};
  }
  const cache::Key key{request.hash, request.key};
  const std::string missed =
      any_resident ? "no variant matches: sent to the origin" : "sent to the origin";
  switch (running.inflight.unshared(request.hash, request.credentials(), running.now)) {
    case Inflight::Unshared::kUncacheable:
      return {"uncacheable",
              missed + "; recent responses were not storable, so requests are not collapsed"};
    case Inflight::Unshared::kAnswer:
    case Inflight::Unshared::kValidated:
    case Inflight::Unshared::kNo:
      break;
  }
  const bool stores =
      running.kernel.would_admit(key, running.now, 0, request.request_policy->admission);
  if (running.runtime->config.admission.policy == config::Policy::kProbation &&
      request.request_policy->admission.kind == cache::AdmissionRule::Kind::kPolicy) {
    const bool is_known = running.kernel.recall(key, {}).requests != 0;
    return {
        "miss",
        missed + (is_known
                      ? "; a storable response is written to disk, because its key was on probation"
                  : stores ? "; a storable response is on probation in memory"
                           : "; the response is too large for the memory: not stored yet, its key "
                             "is on probation")};
  }
  return {"miss", missed + (stores ? "; a storable response is stored"
                                   : "; a storable response is not stored yet, but remembered")};
}

// A first word for it where the policy says so for ever.
Now of_refused(const RequestContext& request, Now miss) {
  if (request.request_policy->admission.kind == cache::AdmissionRule::Kind::kNever) {
    miss.text = "sent to the origin; not stored, by the rule";
  }
  return miss;
}

Now of_stored(const Running& running, const RequestContext& request, const InMemory& found) {
  const http::StoredMeta meta = meta_until(*found.object, found.entry.fresh_until);
  if (meta.is(http::StoredMeta::kPartial)) {
    return {"part",
            "a part is stored: fresh ranges within it are served, all else is sent to the origin"};
  }
  if (meta.is(http::StoredMeta::kWantsPermission)) {
    return {"recheck", "the origin is asked whether this client may get the stored response"};
  }
  const auto decision = http::decide_reuse(meta, request.directives, running.now, request.reuse());
  switch (decision.action) {
    case http::Reuse::kFresh:
      return {"hit",
              "hit, fresh for " +
                  about_duration(std::chrono::seconds(http::remaining_ttl(meta, running.now))) +
                  " more"};
    case http::Reuse::kStaleAllowed:
      return {"stale", "served stale, as the client allows"};
    case http::Reuse::kStaleWhileRevalidate:
      return {"stale", "served stale, and validated in the background (RFC 5861)"};
    case http::Reuse::kGatewayTimeout:
      return {"only-if-cached",
              "504: may not be served, and the client accepts only stored responses"};
    case http::Reuse::kMustValidate:
      break;
  }
  if (decision.cause == http::ForwardCause::kRequest) {
    return {"validate", "validated at its origin, as the client asks"};
  }
  return {"validate", meta.is(http::StoredMeta::kNeverFresh)
                          ? "never fresh: validated at the origin before each use"
                          : "stale: validated at its origin"};
}

Now what_now(const Running& running, const RequestContext& request, const Look& look) {
  const PathDecision taken = choose_path(request);
  if (taken.path == RequestPath::kOnlyIfCached) {
    return {"only-if-cached", "504: not cacheable, and the client accepts only stored responses"};
  }
  if (taken.path == RequestPath::kOrigin) {
    return {"bypass", "sent to the origin unchanged, past the cache"};
  }
  if (look.found() != nullptr) return of_stored(running, request, *look.found());
  if (look.found_on_disk()) {
    return look.is_fresh_on_disk()
               ? Now{"disk", "read from disk, and a hit if it matches the index"}
               : Now{"disk", "read from disk, and validated at its origin"};
  }
  return of_refused(request, of_absent(running, request, look.any_resident() && !look.is_hidden()));
}

// Usual values of clients; of a variant on disk no more than a hash is known.
constexpr std::array<std::string_view, 9> kUsualEncodings = {"gzip",
                                                             "br",
                                                             "zstd",
                                                             "gzip, br",
                                                             "gzip, zstd",
                                                             "br, zstd",
                                                             "gzip, br, zstd",
                                                             "gzip, deflate",
                                                             "gzip, deflate, br"};

// A look as a client with another Accept-Encoding would have it.
struct OtherLook {
  std::string encoding;
  http::Fields fields;
  std::unique_ptr<Look> look = {};
  std::vector<ExplainedVariant> stored = {};
};

// Finds a variant for a request without Accept-Encoding, whose author asks about the page in any
// coding. Null: no value finds one.
std::unique_ptr<OtherLook> find_in_any_coding(const Running& running, const RequestContext& request,
                                              const Look& look) {
  if (request.head.fields.has(http::FieldId::kAcceptEncoding) || look.has_found() ||
      look.is_hidden() || !look.any_resident()) {
    return nullptr;
  }
  std::vector<std::string> values = look.encodings();
  values.insert(values.end(), kUsualEncodings.begin(), kUsualEncodings.end());
  for (std::string& value : values) {
    auto other = std::make_unique<OtherLook>(
        OtherLook{.encoding = std::move(value), .fields = request.head.fields});
    other->fields.add(kAcceptEncoding, other->encoding);
    other->look = std::make_unique<Look>(running, request, other->fields);
    other->stored = other->look->variants();
    if (other->look->has_found()) return other;
  }
  return nullptr;
}

}  // namespace

ExplainedState explain_state(const Running& running, const RequestContext& request) {
  Look as_asked(running, request, request.head.fields);
  ExplainedState state;
  state.wall = running.wall;
  state.policy = to_string(running.runtime->config.admission.policy);
  state.is_looked_up = !request.key.empty();
  const Look* look = &as_asked;
  std::unique_ptr<OtherLook> other;
  if (state.is_looked_up) {
    state.stored = as_asked.variants();
    other = find_in_any_coding(running, request, as_asked);
    if (other != nullptr) {
      state.stored = std::move(other->stored);
      look = other->look.get();
    }
    state.recalled =
        running.kernel.recall({request.hash, request.key}, request.request_policy->admission);
  }
  Now now = what_now(running, request, *look);
  state.now_kind = std::move(now.kind);
  state.now_text = std::move(now.text);
  if (other != nullptr) {
    state.now_text += "; for a client with Accept-Encoding: " + other->encoding;
  }
  state.outcomes = running.recent.of(request.hash);
  return state;
}

}  // namespace encore::server
