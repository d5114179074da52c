// The published form of J. Gregorio's "Bloom Filter Resources" (2008), bloomnames: a filter of
// 30,000 bits with 7 hashes, cut from the key's SHA-1 (HashFamily::kSha1Fields20), as one number;
// and a JSON form that says what the number is the bits of. Pure functions, thread-safe.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"
#include "filter/bloom_filter.h"
#include "filter/parameters.h"

namespace encore::filter {

// classic, sha1-fields20, m = 30000, k = 7; the capacity is where half of the bits are set.
FilterParameters bloomnames_parameters();

// One line, "0x80...L". Errors: other parameters than bloomnames_parameters(), capacity aside.
Result<std::string> write_bloomnames(const BloomFilter& filter);
// The same number in decimal digits, for a comparison with the published ones.
Result<std::string> write_bloomnames_decimal(const BloomFilter& filter);
// The number ends with an L, as Python 2 wrote it and write_bloomnames() does, or has all its 7,500
// digits: a shorter one without the L is cut short, for all that can be known.
// Errors: no such number, a bit beyond the 30,000. White space around the number is no part of it.
Result<BloomFilter> read_bloomnames(std::string_view text);

// {"m": 30000, "k": 7, "hash": "sha1-fields20", "layout": "classic", "capacity": 2970, "keys": 2,
// "filter": "0x80...L"}, for any plain filter; with "seed" where it has one: who publishes a filter
// must not have keyed it with a secret.
std::string write_bloomnames_json(const BloomFilter& filter);
// Needs m, k, hash and filter; what is not known is passed over. Errors: no JSON object, a member
// that is missing or of another kind, parameters that no filter has (checked()), a bit beyond m, an
// m above 2^20 that has not as many digits.
Result<BloomFilter> read_bloomnames_json(std::string_view text);

}  // namespace encore::filter
