// The client's fields that an origin receives: one rule for the sent fields and for those that
// select a variant (vary.h), so that the key never has a value that the origin did not receive.
// Pure, thread-compatible.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "proxy/http/hop_by_hop.h"
#include "proxy/http/message.h"

namespace encore::http {

// Cookies of the client that are sent on.
enum class CookieUse : std::uint8_t { kAll, kNone, kSome };

struct VaryOptions {
  // Reduce Accept-Encoding to the set of codings that matter, so that browsers share variants.
  bool normalise_accept_encoding = false;
  // Before the operator's own origins, to which we say whom they answer (X-Forwarded-*, Forwarded).
  bool reverse = false;
  // Other origins receive it as well.
  bool tells_client = false;
  // Fields that we write ourselves, lower case: a client's own ones end here, and by what such a
  // field says a response is for one client alone.
  std::vector<std::string> own_names = {};
  // Fields that a rule replaces or removes, lower case: of the client's own ones nothing is sent.
  std::vector<std::string> decided_names = {};
  CookieUse cookies = CookieUse::kAll;
  std::vector<std::string> cookie_names = {};  // for kSome, sorted
  // Fields that distinguish requests in addition to a response's Vary: lower case, sorted.
  std::vector<std::string> further_names = {};
  bool ignores_vary = false;
};

// The lines of a request that go to the origin as they came. Borrows the fields and the options.
class SentFields {
 public:
  SentFields(const Fields& fields, const VaryOptions& options) noexcept
      : fields_(fields), hop_by_hop_(fields), options_(options) {}

  // True if the line is not forwarded: hop-by-hop fields and those that Connection lists; Host,
  // which is written anew; and client-supplied forwarding fields (X-Forwarded-*, Forwarded,
  // X-Real-IP, X-Original-URL, ...), which are in no key and which origins trust. In reverse mode,
  // where programs receive fields as environment variables, also names with '_', which are confused
  // with those with '-', and Proxy (httpoxy).
  bool drops(const Field& field) const noexcept {
    if (hop_by_hop_.drops(field)) return true;
    if (!options_.own_names.empty() && is_own(field.name)) return true;
    if (!options_.decided_names.empty() && is_decided(field.name)) return true;
    if (field.id == FieldId::kCookie && options_.cookies != CookieUse::kAll) return true;
    return field.id != FieldId::kOther ? kNotTheClients.has(field.id) : drops_by_name(field.name);
  }

  // Calls f(const Field&) for every line of that name that is sent. REQUIRES: `id` is that of
  // `lower_name`.
  template <typename F>
  void for_each(FieldId id, std::string_view lower_name, F&& f) const {
    if (!fields_.has(id)) return;
    for (const Field& field : fields_) {
      const bool named =
          field.id == id && (id != FieldId::kOther || equals_lower(field.name, lower_name));
      if (named && !drops(field)) f(field);
    }
  }
  const Fields& all() const noexcept { return fields_; }

  // Returns the forwarded part of a Cookie that changes: "a=1; b=2", in the order of the options;
  // empty: nothing.
  std::string kept_cookies() const;
  // True if the origin gets a Cookie of the client's.
  bool sends_cookie() const;
  // Cookie and Authorization as the origin gets them, in one text; empty: neither.
  std::string credentials() const;

 private:
  // Ours to say, or nobody's.
  static constexpr FieldSet kNotTheClients = {FieldId::kHost, FieldId::kForwarded,
                                              FieldId::kXForwardedFor, FieldId::kXForwardedHost,
                                              FieldId::kXForwardedProto};
  bool drops_by_name(std::string_view name) const noexcept;
  bool is_own(std::string_view name) const noexcept;
  bool is_decided(std::string_view name) const noexcept;

  const Fields& fields_;
  HopByHop hop_by_hop_;
  const VaryOptions& options_;
};

// Accept-Encoding as the set of {br, gzip, zstd} that it accepts, in that order: "br, gzip";
// "identity" for none of them, said or not. Nothing where the value says more than that ("*",
// identity refused, malformed): then it stays as it is.
std::optional<std::string_view> normalised_accept_encoding(const SentFields& request);

}  // namespace encore::http
