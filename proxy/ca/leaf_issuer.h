// LeafIssuer: makes the certificates that clients are shown for hosts that are decrypted, each
// signed by the authority when its host is first asked for. All have one key, made with the mint
// and never written anywhere, which is not the authority's: what speaks with the world's clients
// does not sign. Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/error.h"
#include "base/mutex.h"
#include "base/time.h"
#include "proxy/ca/authority.h"

namespace encore::ca {

// A server certificate: DER, shared by all connections of a host.
struct Leaf {
  std::string certificate;
  WallTime renew_at;  // from then on another one is made
};

class LeafIssuer {
 public:
  // How long a leaf is good: browsers refuse more than 398 days, and what renews itself needs no
  // more than a season. Never beyond the authority's own end.
  static constexpr std::chrono::days kLife{90};
  // At some 700 bytes each.
  static constexpr std::size_t kLeavesMax = 10'000;

  // Errors: memory or randomness is out. REQUIRES: the authority has its key.
  static Result<std::shared_ptr<LeafIssuer>> create(Authority authority,
                                                    std::size_t leaves_max = kLeavesMax);
  ~LeafIssuer();
  LeafIssuer(const LeafIssuer&) = delete;
  LeafIssuer& operator=(const LeafIssuer&) = delete;

  // The certificate for this host (lower case), as it is or made now; the one that was asked for
  // longest ago leaves where there are too many. Null: the authority may not sign for it, is not
  // good at this time, or the host is none (no wildcard is made).
  std::shared_ptr<const Leaf> leaf(std::string_view host, WallTime now);

  const Authority& authority() const { return authority_; }
  // The key of all leaves. Borrowed.
  evp_pkey_st* key() const { return key_.get(); }
  // Since the mint was made.
  std::uint64_t made() const;
  std::size_t kept() const;

 private:
  struct Kept {
    std::string host;
    std::shared_ptr<const Leaf> leaf;
  };
  using Order = std::list<Kept>;  // used last in front

  LeafIssuer(Authority authority, std::shared_ptr<evp_pkey_st> key, std::size_t leaves_max);
  std::shared_ptr<const Leaf> find(std::string_view host, WallTime now);
  std::shared_ptr<const Leaf> make(std::string_view host, WallTime now) const;
  std::shared_ptr<const Leaf> keep(std::string_view host, std::shared_ptr<const Leaf> leaf,
                                   WallTime now);

  const Authority authority_;
  const std::shared_ptr<evp_pkey_st> key_;
  const std::size_t leaves_max_;
  mutable Mutex mutex_;
  Order order_ ENCORE_GUARDED_BY(mutex_);
  // By the host in the list's element.
  std::unordered_map<std::string_view, Order::iterator> places_ ENCORE_GUARDED_BY(mutex_);
  std::uint64_t made_ ENCORE_GUARDED_BY(mutex_) = 0;
};

}  // namespace encore::ca
