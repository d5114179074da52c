// The forms in which a filter is written and read: our own and those that others publish. Pure
// functions, thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"
#include "filter/any_filter.h"
#include "filter/parameters.h"

namespace encore::filter {

// encore: AnyFilter::save(). bloomnames: one line, "0x...L"; the same number in decimal digits,
// which is written only; and in JSON (bloomnames.h). squid-digest: squid_digest.h. raw: the bits
// alone.
enum class Form : std::uint8_t {
  kEncore,
  kBloomnames,
  kBloomnamesDecimal,
  kBloomnamesJson,
  kSquidDigest,
  kRaw
};

// "encore", "bloomnames", "bloomnames-decimal", "bloomnames-json", "squid-digest", "raw".
std::string_view to_string(Form form) noexcept;
// Errors: an unknown name; the message shows it and the accepted ones.
Result<Form> parse_form(std::string_view name);

// By how the bytes begin; raw bits are never recognised. Errors: nothing that begins so.
Result<Form> detect_form(std::string_view bytes);

// `of_raw` has the parameters that raw bits do not state; other forms ignore it. Errors: those of
// the form; bloomnames-decimal. Allocates no more than the size of `bytes` justifies: a filter
// above 128 KiB has as many digits or bytes.
Result<AnyFilter> read_form(std::string_view bytes, Form form, const FilterParameters& of_raw);

// A counting filter is written as the plain one of its bits, but for our own form. Errors: a filter
// that the form cannot hold, by its kind, hash or size; memory.
Result<std::string> write_form(const AnyFilter& filter, Form form);

}  // namespace encore::filter
