#include "proxy/ca/leaf_issuer.h"

#include <openssl/err.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "proxy/ca/handles.h"
#include "proxy/ca/leaf.h"

namespace encore::ca {
namespace {

// Clocks of clients that are behind.
constexpr std::chrono::days kBackDated{1};

bool add_server_use(X509& certificate) {
  EXTENDED_KEY_USAGE* const uses = EXTENDED_KEY_USAGE_new();
  const bool added = uses != nullptr &&
                     sk_ASN1_OBJECT_push(uses, OBJ_nid2obj(NID_server_auth)) > 0 &&
                     add_extension(certificate, NID_ext_key_usage, false, uses);
  EXTENDED_KEY_USAGE_free(uses);
  return added;
}

std::string der_of(X509& certificate) {
  unsigned char* bytes = nullptr;
  const int size = i2d_X509(&certificate, &bytes);
  if (size <= 0) return {};
  std::string der(reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(size));
  OPENSSL_free(bytes);
  return der;
}

}  // namespace

Result<std::shared_ptr<LeafIssuer>> LeafIssuer::create(Authority authority,
                                                       std::size_t leaves_max) {
  ENCORE_CHECK(authority.has_key() && leaves_max > 0, "a mint signs, and keeps what it signed");
  ERR_clear_error();
  std::shared_ptr<evp_pkey_st> key = Owned<EVP_PKEY>(EVP_EC_gen("P-256"));
  if (key == nullptr) return fail("cannot create a key: " + openssl_reason());
  return std::shared_ptr<LeafIssuer>(
      new LeafIssuer(std::move(authority), std::move(key), leaves_max));
}

LeafIssuer::LeafIssuer(Authority authority, std::shared_ptr<evp_pkey_st> key,
                       std::size_t leaves_max)
    : authority_(std::move(authority)), key_(std::move(key)), leaves_max_(leaves_max) {}

LeafIssuer::~LeafIssuer() = default;

std::shared_ptr<const Leaf> LeafIssuer::leaf(std::string_view host, WallTime now) {
  if (auto found = find(host, now)) return found;
  // Not under the lock: other hosts are not waited for. If two threads make the same one, one
  // stays.
  auto made = make(host, now);
  return made == nullptr ? nullptr : keep(host, std::move(made), now);
}

std::shared_ptr<const Leaf> LeafIssuer::find(std::string_view host, WallTime now) {
  const MutexLock lock(mutex_);
  const auto place = places_.find(host);
  if (place == places_.end() || now >= place->second->leaf->renew_at) return nullptr;
  order_.splice(order_.begin(), order_, place->second);
  return place->second->leaf;
}

std::shared_ptr<const Leaf> LeafIssuer::keep(std::string_view host,
                                             std::shared_ptr<const Leaf> leaf, WallTime now) {
  const MutexLock lock(mutex_);
  ++made_;
  const auto place = places_.find(host);
  if (place != places_.end()) {
    Kept& kept = *place->second;
    if (now >= kept.leaf->renew_at) kept.leaf = std::move(leaf);
    order_.splice(order_.begin(), order_, place->second);
    return kept.leaf;
  }
  if (order_.size() == leaves_max_) {
    places_.erase(order_.back().host);
    order_.pop_back();
  }
  order_.push_front({.host = std::string(host), .leaf = std::move(leaf)});
  places_.emplace(order_.front().host, order_.begin());
  return order_.front().leaf;
}

std::shared_ptr<const Leaf> LeafIssuer::make(std::string_view host, WallTime now) const {
  if (host.empty() || host.find('*') != std::string_view::npos) return nullptr;
  if (!authority_.is_valid(now) || !authority_.permits(host)) return nullptr;
  ERR_clear_error();
  const WallTime from = std::max(now - kBackDated, authority_.not_before());
  const WallTime until = std::min(now + kLife, authority_.not_after());
  X509& signer = *authority_.certificate();
  const Owned<X509> made(X509_new());
  const bool good = made != nullptr && set_random_serial(*made) && set_times(*made, from, until) &&
                    X509_set_issuer_name(made.get(), X509_get_subject_name(&signer)) == 1 &&
                    X509_set_pubkey(made.get(), key()) == 1 && add_host(*made, host) &&
                    add_basic_constraints(*made, false) &&
                    add_key_usage(*made, {kDigitalSignature}) && add_server_use(*made) &&
                    add_authority_key(*made, signer) && sign(*made, *authority_.key());
  ERR_clear_error();
  if (!good) return nullptr;
  auto leaf = std::make_shared<Leaf>();
  leaf->certificate = der_of(*made);
  leaf->renew_at = now + (until - now) * 2 / 3;
  return leaf->certificate.empty() ? nullptr : leaf;
}

std::uint64_t LeafIssuer::made() const {
  const MutexLock lock(mutex_);
  return made_;
}

std::size_t LeafIssuer::kept() const {
  const MutexLock lock(mutex_);
  return order_.size();
}

}  // namespace encore::ca
