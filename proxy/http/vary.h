// Variants (RFC 9111 4.1): which request fields select among the responses to one target, and
// their normalised values as a key. Pure, thread-compatible.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "proxy/http/message.h"

namespace encore::http {

struct VaryOptions {
  // Reduce Accept-Encoding to the set of codings that matter, so that browsers share variants.
  bool normalise_accept_encoding = false;
};

// More selecting names than this are no request's to search for.
inline constexpr std::size_t kSelectingNamesMax = 32;

// The selecting field names of a response in canonical form: lower case, sorted, without
// duplicates, separated by commas; empty if there is no Vary. "*" where nothing can match: a
// member is "*" or no token, or there are more than kSelectingNamesMax.
std::string selecting_names(const Fields& response);

// Writes the variant key of a request to `key` (cleared first): for every name its joined and
// normalised value, or a mark for its absence. Two requests select the same variant exactly if
// their keys are equal. Empty if `names` is empty. REQUIRES: `names` of selecting_names(), not "*".
void write_variant_key(std::string_view names, const Fields& request, const VaryOptions& options,
                       std::string& key);

// Accept-Encoding as the set of {br, gzip, zstd} that it accepts, in that order: "br, gzip"; empty
// for none of them. False, and `out` unspecified, where the value says more than that ("*",
// identity refused, malformed): then it stays as it is.
bool normalise_accept_encoding(const Fields& request, std::string& out);

}  // namespace encore::http
