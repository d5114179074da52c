// Variants (RFC 9111 4.1): which request fields select among the responses to one target, and
// their normalised values as a key. Pure, thread-compatible.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "proxy/http/message.h"
#include "proxy/http/sent_fields.h"

namespace encore::http {

// More selecting names than this are no request's to search for.
inline constexpr std::size_t kSelectingNamesMax = 32;

// The selecting field names of a response in canonical form: lower case, sorted, without
// duplicates, separated by commas; empty if there is no Vary. "*" if nothing can match, so that it
// is not stored (storing.h): a member is "*" or not a token, or there are more than
// kSelectingNamesMax.
std::string selecting_names(const Fields& response);
// The same with the operator's options: without names in Vary, or with additional names that
// distinguish requests (VaryOptions).
std::string selecting_names(const Fields& response, const VaryOptions& options);

// A selecting field that says more than this in a request selects nothing: what would be compared,
// kept and searched for is the client's to make large. Long cookies are what comes near.
inline constexpr std::size_t kSelectingBytesMax = 1024;
inline constexpr std::size_t kSelectingMembersMax = 64;

// Writes the variant key of a request to `key` (cleared first): for every name its joined and
// normalised value as the origin receives it (sent_fields.h), or a mark for its absence. Two
// requests select the same variant exactly if their keys are equal. Empty if `names` is empty.
// False, and a key that no response has, if the request selects nothing: a field is beyond the
// limits, or is one that gives an origin the client's address. REQUIRES: `names` of
// selecting_names(), not "*".
bool write_variant_key(std::string_view names, const Fields& request, const VaryOptions& options,
                       std::string& key);

}  // namespace encore::http
