#include "proxy/publish/form.h"

#include <array>
#include <charconv>
#include <cmath>

#include "base/check.h"
#include "filter/published/bloomnames.h"
#include "filter/published/squid_digest.h"

namespace encore::publish {

std::string json_text(std::string_view text) { return '"' + std::string(text) + '"'; }

std::string json_number(double number) {
  if (!std::isfinite(number)) return "null";
  std::array<char, 32> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), number).ptr;
  return {text.data(), end};
}

Facts facts_of(const filter::AnyFilterInfo& info) {
  return {{"set_bits", std::to_string(info.set_bits)},
          {"fill", json_number(info.fill)},
          {"keys_estimated", json_number(info.keys_estimated)},
          {"fpr_now", json_number(info.fpr_now)},
          {"fpr_capacity", json_number(info.fpr_capacity)},
          {"overfull", json_bool(info.keys_estimated > static_cast<double>(info.capacity))}};
}

std::string write(const filter::AnyFilter& filter, Form form, const Facts& facts) {
  if (form == Form::kBinary) return filter.save();
  ENCORE_CHECK(filter.plain() != nullptr, "what is published is a plain filter");
  if (form == Form::kDigest) {
    const auto digest = filter::squid_digest_of(*filter.plain());
    ENCORE_CHECK(digest.has_value(), "a digest's filter is made for it");
    return filter::write_squid_digest(*digest);
  }
  std::string out = "{";
  for (const auto& [name, value] : facts) out += json_text(name) + ": " + value + ", ";
  const std::string bits = filter::write_bloomnames_json(*filter.plain());
  ENCORE_CHECK(bits.starts_with('{'), "a filter in JSON is an object");
  return out + bits.substr(1) + '\n';
}

}  // namespace encore::publish
