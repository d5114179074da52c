// A client's verdict about a certificate: OpenSSL's own verification, as for a server.
#pragma once

#include <string>
#include <string_view>

#include "base/time.h"
#include "proxy/ca/authority.h"
#include "proxy/ca/leaf_issuer.h"
#include "proxy/ca/making.h"

namespace encore::ca {

inline constexpr WallTime kNow{std::chrono::seconds(1'800'000'000)};

// An authority for these hosts; none: for all.
CreatedCa made_for(const std::vector<std::string>& hosts,
                   std::chrono::days life = std::chrono::days(3650));
Authority parsed(const CreatedCa& made);

// "ok", or why not, of a certificate (DER) for `host` at that time, where `root` alone is trusted.
std::string verdict(const std::string& leaf, const Authority& root, const std::string& host,
                    WallTime now);
// A certificate for the host, whatever the authority may sign for: by who has stolen its key.
std::string forged(const Authority& authority, const std::string& host, WallTime now);
// The same for an address.
std::string forged_address(const Authority& authority, std::string_view bytes, WallTime now);

}  // namespace encore::ca
