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
  VariantSelector(std::string_view key, http::VariantKeys& own) : key_(key), own_(own) {}

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
  bool is_undecided() const override { return !missing_.empty(); }

  // The selecting names for which it is undecided.
  std::string_view missing() const { return missing_; }
  // Outside the shard's lock: what the client sent may take long to read.
  void prepare() {
    (void)own_.make(missing_);
    missing_.clear();
  }
  store::ObjectRef take() { return std::move(found_); }

 private:
  std::string_view key_;
  http::VariantKeys& own_;
  std::string missing_;
  store::ObjectRef found_;
};

}  // namespace

CacheView CacheLookup::lookup(std::string_view key, const filter::Hash128& hash,
                              const http::Fields& fields, const http::VaryOptions& vary,
                              const net::Address& client) {
  http::VariantKeys own(fields, vary);
  const std::string_view expected = hints_.find(hash);
  if (!expected.empty()) (void)own.make(expected);
  VariantSelector selector(key, own);
  auto result = kernel_->lookup(cache::Key{hash, key}, loop_.now(), selector);
  // Each turn knows one more of the sets of names that the key's variants have; there are more of
  // them than variants only while others come and go.
  for (std::uint32_t turn = 0; result.is_undecided && turn < cache::kVariantsMax; ++turn) {
    hints_.remember(hash, selector.missing());
    selector.prepare();
    result = kernel_->lookup(cache::Key{hash, key}, loop_.now(), selector);
  }
  catch_up();
  CacheView view{selector.take(), result.any_resident, result.fresh_until};
  if (view.object && meta_of(*view.object).http.is(http::StoredMeta::kPrivateOrigin) &&
      !runtime_->destinations.may_reach_private(client)) {
    return {};
  }
  return view;
}

}  // namespace encore::server
