#include "proxy/exchange/cache_lookup.h"

#include <string>
#include <utility>

#include "proxy/http/variant_keys.h"
#include "proxy/transfer/response.h"

namespace encore::server {
namespace {

// Takes the variant whose primary key is the same to the byte (a hash may collide) and whose
// selecting fields agree with the request's.
class VariantSelector final : public cache::Selector {
 public:
  // Writes what matches in memory to `found`.
  VariantSelector(const cache::Kernel& kernel, std::string_view key, http::VariantKeys& own,
                  store::ObjectRef& found)
      : kernel_(kernel), key_(key), own_(own), found_(found) {}

  bool matches(cache::Payload payload) override {
    store::ObjectRef::prefetch(payload);
    const store::Object& object = store::ObjectRef::peek(payload);
    if (primary_key_of(object) != key_) return false;
    const std::string_view names = names_of(object);
    if (!names.empty()) {
      const std::string* own = own_.find(names);
      if (own == nullptr) {
        missing_ = names;
        return false;
      }
      if (variant_key_of(object) != *own) return false;
    }
    found_ = store::ObjectRef::share(payload);
    return true;
  }
  // The index knows no texts: what is read will tell whether it is the one.
  bool matches_disk(const cache::DiskView& view) override {
    const std::string_view names = kernel_.disk_names(view.names);
    const std::string* own = nullptr;
    if (!names.empty()) {
      own = own_.find(names);
      if (own == nullptr) {
        missing_ = names;
        return false;
      }
    }
    const std::uint64_t variant = own == nullptr ? 0 : variant_of(names, *own);
    // The index has half of the variant's number. The record has all of it, and is compared.
    if (static_cast<std::uint32_t>(variant) != view.variant) return false;
    on_disk_ = view;
    return true;
  }
  bool is_undecided() const override { return !missing_.empty(); }

  // The selecting names for which it is undecided.
  std::string_view missing() const { return missing_; }
  // Outside the shard's lock: what the client sent may take long to read.
  void prepare() {
    (void)own_.make(missing_);
    missing_.clear();
  }
  const cache::DiskView& on_disk() const { return on_disk_; }

 private:
  const cache::Kernel& kernel_;
  std::string_view key_;
  http::VariantKeys& own_;
  std::string missing_;
  store::ObjectRef& found_;
  cache::DiskView on_disk_;
};

}  // namespace

void CacheLookup::lookup(const Asked& asked, CacheView& found) {
  http::VariantKeys own(asked.fields, asked.vary);
  const std::string_view expected = hints_.find(asked.hash);
  if (!expected.empty()) (void)own.make(expected);
  VariantSelector selector(*kernel_, asked.key, own, found.object);
  const cache::Key key{asked.hash, asked.key};
  auto result = kernel_->lookup(key, loop_.now(), selector);
  // Each turn knows one more of the sets of names that the key's variants have; there are more of
  // them than variants only while others come and go.
  for (std::uint32_t turn = 0; result.is_undecided && turn < cache::kVariantsMax; ++turn) {
    hints_.remember(asked.hash, selector.missing());
    selector.prepare();
    result = kernel_->lookup(key, loop_.now(), selector);
  }
  // Another worker may have stored it after this turn began: no age is below zero.
  catch_up();
  found.any_resident = result.any_resident;
  found.fresh_until = result.fresh_until;
  if (result.on_disk()) {
    found.disk = {.place = selector.on_disk().place,
                  .keep_until = selector.on_disk().keep_until,
                  .promote = result.promote()};
  }
  // As if nothing were there: a client learns nothing of origins that it may not reach.
  if (found.object && is_hidden(*found.object, asked.client)) found = {};
}

bool CacheLookup::is_hidden(const store::Object& object, const net::Address& client) const {
  return meta_of(object).http.is(http::StoredMeta::kPrivateOrigin) &&
         !runtime_->destinations.may_reach_private(client);
}

bool CacheLookup::has_any(const RequestContext& request) const {
  class Any final : public cache::Visitor {
   public:
    Any(const CacheLookup& lookup, const net::Address& client) : lookup_(lookup), client_(client) {}
    cache::Verdict visit(const cache::EntryView& entry) override {
      found = found || !lookup_.is_hidden(store::ObjectRef::peek(entry.payload), client_);
      return cache::Verdict::kKeep;
    }
    cache::Verdict visit_disk(const cache::DiskView&) override {
      found = true;
      return cache::Verdict::kKeep;
    }
    bool found = false;

   private:
    const CacheLookup& lookup_;
    const net::Address& client_;
  };
  Any any(*this, request.client);
  kernel_->peek({request.hash, request.key}, any);
  return any.found;
}

bool CacheLookup::answers(const store::Object& object, const RequestContext& request,
                          http::VariantKeys& own) const {
  if (primary_key_of(object) != request.key || is_hidden(object, request.client)) return false;
  const std::string_view names = names_of(object);
  if (names.empty()) return true;
  return variant_key_of(object) == own.make(names);
}

}  // namespace encore::server
