// What an origin gets to see of a client's fields: the one rule for what is sent and for what
// selects a variant (vary.h), so that the key never says what the origin was not told. Pure,
// thread-compatible.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "proxy/http/hop_by_hop.h"
#include "proxy/http/message.h"

namespace encore::http {

// What of the client's cookies is sent on.
enum class CookieUse : std::uint8_t { kAll, kNone, kSome };

struct VaryOptions {
  // Reduce Accept-Encoding to the set of codings that matter, so that browsers share variants.
  bool normalise_accept_encoding = false;
  // Before the operator's own origins, to which we say whom they answer (X-Forwarded-*, Forwarded).
  bool reverse = false;
  // Others are told as well.
  bool tells_client = false;
  // Fields that we write ourselves, lower case: a client's own ones end here, and by what such a
  // field says a response is for one client alone.
  std::vector<std::string> own_names = {};
  // Fields that a rule replaces or removes, lower case: of the client's own ones nothing is sent.
  std::vector<std::string> decided_names = {};
  CookieUse cookies = CookieUse::kAll;
  std::vector<std::string> cookie_names = {};  // of kSome, sorted
  // What tells requests apart beside what a response says in Vary: lower case, sorted.
  std::vector<std::string> further_names = {};
  bool ignores_vary = false;
};

// The lines of a request that go to the origin as they came. Borrows the fields and the options.
class SentFields {
 public:
  SentFields(const Fields& fields, const VaryOptions& options) noexcept
      : fields_(fields), hop_by_hop_(fields), options_(options) {}

  // Whether the line ends here: fields of one hop and what Connection lists; Host, which is written
  // anew; what a client says of itself and of the target in the place of a proxy (X-Forwarded-*,
  // Forwarded, X-Real-IP, X-Original-URL, ...), which is in no key and which origins believe. In
  // reverse mode, where programs get fields as variables of the environment, also names with '_',
  // which are taken for those with '-', and Proxy (httpoxy).
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

  // Of a Cookie that does not go as it came, what does: "a=1; b=2", in the order of the options;
  // empty: nothing.
  std::string kept_cookies() const;
  // Whether the origin gets a Cookie of the client's.
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
