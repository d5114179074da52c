#include "filter/published/form.h"

#include <algorithm>
#include <array>
#include <utility>

#include "filter/published/bloomnames.h"
#include "filter/published/raw_bits.h"
#include "filter/published/squid_digest.h"

namespace encore::filter {
namespace {

struct NamedForm {
  Form form;
  std::string_view name;
};
constexpr std::array kForms{NamedForm{Form::kEncore, "encore"},
                            NamedForm{Form::kBloomnames, "bloomnames"},
                            NamedForm{Form::kBloomnamesDecimal, "bloomnames-decimal"},
                            NamedForm{Form::kBloomnamesJson, "bloomnames-json"},
                            NamedForm{Form::kSquidDigest, "squid-digest"},
                            NamedForm{Form::kRaw, "raw"}};

Result<AnyFilter> any_of(Result<BloomFilter> filter) {
  if (!filter) {
    return std::unexpected(filter.error());
  }
  return AnyFilter(std::move(*filter));
}

Result<AnyFilter> read_digest(std::string_view bytes) {
  const auto digest = read_squid_digest(bytes);
  if (!digest) {
    return std::unexpected(digest.error());
  }
  return any_of(filter_of(*digest));
}

Result<std::string> write_digest(const BloomFilter& filter) {
  const auto digest = squid_digest_of(filter);
  if (!digest) {
    return std::unexpected(digest.error());
  }
  return write_squid_digest(*digest);
}

Result<std::string> write_plain(const BloomFilter& filter, Form form) {
  switch (form) {
    case Form::kEncore:
      return filter.save();
    case Form::kBloomnames:
      return write_bloomnames(filter);
    case Form::kBloomnamesDecimal:
      return write_bloomnames_decimal(filter);
    case Form::kBloomnamesJson:
      return write_bloomnames_json(filter);
    case Form::kSquidDigest:
      return write_digest(filter);
    case Form::kRaw:
      break;
  }
  return filter.raw_bits();
}

}  // namespace

std::string_view to_string(Form form) noexcept {
  for (const NamedForm& entry : kForms) {
    if (entry.form == form) {
      return entry.name;
    }
  }
  return "?";
}

Result<Form> parse_form(std::string_view name) {
  std::string accepted;
  for (const NamedForm& entry : kForms) {
    if (entry.name == name) {
      return entry.form;
    }
    accepted += accepted.empty() ? "" : ", ";
    accepted += entry.name;
  }
  return fail("unknown form \"" + std::string(name) + "\", accepted: " + accepted);
}

Result<Form> detect_form(std::string_view bytes) {
  // Squid's digests begin with their versions, 5 and 3, and one that it may have after them.
  constexpr std::string_view kDigest("\0\5\0\3", 4);
  const std::size_t text = bytes.find_first_not_of(" \t\r\n");
  const std::string_view written = bytes.substr(std::min(text, bytes.size()));
  if (bytes.starts_with("ENCBLOOM")) {
    return Form::kEncore;
  }
  if (bytes.starts_with(kDigest)) {
    return Form::kSquidDigest;
  }
  if (written.starts_with('{')) {
    return Form::kBloomnamesJson;
  }
  if (written.starts_with("0x") || written.starts_with("0X")) {
    return Form::kBloomnames;
  }
  return fail("these " + std::to_string(bytes.size()) +
              " bytes begin like no filter, known are: a saved filter, bloomnames (0x...L or JSON) "
              "and a Squid digest");
}

Result<AnyFilter> read_form(std::string_view bytes, Form form, const FilterParameters& of_raw) {
  switch (form) {
    case Form::kEncore:
      return AnyFilter::load(bytes);
    case Form::kBloomnames:
      return any_of(read_bloomnames(bytes));
    case Form::kBloomnamesJson:
      return any_of(read_bloomnames_json(bytes));
    case Form::kSquidDigest:
      return read_digest(bytes);
    case Form::kRaw:
      return any_of(read_raw_bits(bytes, of_raw));
    case Form::kBloomnamesDecimal:
      break;
  }
  return fail("the form bloomnames-decimal is written only, accepted: bloomnames");
}

Result<std::string> write_form(const AnyFilter& filter, Form form) {
  if (form == Form::kEncore) {
    return filter.save();
  }
  if (const BloomFilter* const plain = filter.plain(); plain != nullptr) {
    return write_plain(*plain, form);
  }
  const auto plain = filter.to_plain();
  if (!plain) {
    return std::unexpected(plain.error());
  }
  return write_plain(*plain, form);
}

}  // namespace encore::filter
