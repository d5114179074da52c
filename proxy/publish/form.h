// The forms in which a filter is published, and what is said of it. Pure, thread-safe.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "filter/any_filter.h"

namespace encore::publish {

// enc: the filter's saved form. json: filter/published/bloomnames.h, with what is said of it.
// digest: filter/published/squid_digest.h, of another filter that is made for that, where there is
// one.
enum class Form : std::uint8_t { kBinary, kJson, kDigest };

struct FormRow {
  Form form;
  std::string_view suffix;
  std::string_view type;
};
// The first is for those who do not say.
inline constexpr std::array kForms{FormRow{Form::kBinary, ".enc", "application/vnd.encore.filter"},
                                   FormRow{Form::kJson, ".json", "application/json"},
                                   FormRow{Form::kDigest, ".digest", "application/cache-digest"}};
inline constexpr std::span<const FormRow> kFormsWithoutDigest(kForms.data(), 2);

// Facts about a filter in addition to its bits: names with values as JSON writes them.
using Facts = std::vector<std::pair<std::string, std::string>>;
// Values for Facts.
std::string json_text(std::string_view text);
std::string json_number(double number);  // null where it is none
inline std::string json_bool(bool yes) { return yes ? "true" : "false"; }

// Facts from the bits themselves: fill, keys_estimated, fpr_now, fpr_capacity, and whether there
// are more keys than it was made for.
Facts facts_of(const filter::AnyFilterInfo& info);

// REQUIRES: a plain filter; for the digest one that can be it.
std::string write(const filter::AnyFilter& filter, Form form, const Facts& facts);

}  // namespace encore::publish
