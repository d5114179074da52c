#include "filter/published/bloomnames.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>

#include "filter/published/bit_number.h"
#include "filter/published/raw_bits.h"
#include "filter/theory.h"

namespace encore::filter {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::uint64_t kBits = 30'000;
constexpr std::uint32_t kHashes = 7;
// Up to here, 128 KiB, a number may have fewer digits than its filter has positions for: the limit
// of sha1-fields20. A larger one costs its reader as much as it cost its sender.
constexpr std::uint64_t kBitsWithoutDigits = kFields20Bits;

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r\n";
  text.remove_prefix(std::min(text.find_first_not_of(kBlank), text.size()));
  return text.substr(0, text.find_last_not_of(kBlank) + 1);
}

Result<void> check_bloomnames(const FilterParameters& parameters) {
  const FilterParameters wanted = bloomnames_parameters();
  if (parameters.hash == wanted.hash && parameters.shape() == wanted.shape()) {
    return {};
  }
  return fail("a " + std::string(to_string(parameters.layout)) + " filter of " +
              std::to_string(parameters.bits) + " bits with " + std::to_string(parameters.hashes) +
              " hashes " + std::string(to_string(parameters.hash)) +
              " is no bloomnames filter, accepted: classic, 30000 bits, 7 hashes sha1-fields20");
}

std::unexpected<Error> refused(const std::string& what) {
  return fail("bloomnames JSON refused: " + what);
}

// A text of JSON and the long string of digits in it, which the parser would hold several times.
struct Parted {
  std::string frame;  // the text, with kDigitsElsewhere in their place
  std::string_view digits;
};
constexpr std::string_view kDigitsElsewhere = "digits elsewhere";

// If nothing is found that is surely such a string, the frame is the text.
Parted part(std::string_view text) {
  const std::size_t key = text.find("\"filter\"");
  const std::size_t begin = key == std::string_view::npos ? key : text.find("\"0x", key);
  const std::size_t end =
      begin == std::string_view::npos ? begin : text.find_first_of("\"\\", begin + 1);
  if (end == std::string_view::npos || text[end] != '"' || text[begin - 1] == '\\') {
    return {.frame = std::string(text), .digits = {}};
  }
  const std::string_view digits = text.substr(begin + 1, end - begin - 1);
  const std::string_view before = text.substr(0, begin);
  const std::string_view behind = text.substr(end + 1);
  for (const std::string_view part : {before, behind}) {
    if (part.contains(kDigitsElsewhere)) {
      return {.frame = std::string(text), .digits = {}};
    }
  }
  std::string frame(before);
  frame.append("\"").append(kDigitsElsewhere).append("\"").append(behind);
  return {.frame = std::move(frame), .digits = digits};
}

// A member that is a whole number; nothing where there is none.
Result<std::optional<std::uint64_t>> whole_number(const Json& object, const char* name) {
  const auto member = object.find(name);
  if (member == object.end()) {
    return std::nullopt;
  }
  if (!member->is_number_unsigned()) {
    return refused(std::string("\"") + name + "\" is no whole number");
  }
  return member->get<std::uint64_t>();
}

Result<std::optional<std::string>> text_of(const Json& object, const char* name) {
  const auto member = object.find(name);
  if (member == object.end()) {
    return std::nullopt;
  }
  if (!member->is_string()) {
    return refused(std::string("\"") + name + "\" is no string");
  }
  return member->get<std::string>();
}

// The members that are names; those that are missing stay as they are.
Result<void> take_names(const Json& object, FilterParameters& parameters) {
  const auto hash = text_of(object, "hash");
  const auto layout = text_of(object, "layout");
  const auto seed = text_of(object, "seed");
  for (const auto* text : {&hash, &layout, &seed}) {
    if (!*text) {
      return std::unexpected(text->error());
    }
  }
  if (!*hash) {
    return refused("there is no \"hash\"");
  }
  const auto family = parse_hash_family(**hash);
  const auto wanted = *layout ? parse_layout(**layout) : Layout::kClassic;
  const auto key = *seed ? parse_seed(**seed) : Seed{};
  if (!family || !wanted || !key) {
    return refused(!family   ? family.error().message
                   : !wanted ? wanted.error().message
                             : key.error().message);
  }
  parameters.hash = *family;
  parameters.layout = *wanted;
  parameters.seed = *key;
  return {};
}

Result<FilterParameters> parameters_of(const Json& object) {
  FilterParameters parameters;
  if (auto taken = take_names(object, parameters); !taken) {
    return std::unexpected(taken.error());
  }
  const auto bits = whole_number(object, "m");
  const auto hashes = whole_number(object, "k");
  const auto capacity = whole_number(object, "capacity");
  for (const auto* number : {&bits, &hashes, &capacity}) {
    if (!*number) {
      return std::unexpected(number->error());
    }
  }
  if (!*bits || !*hashes) {
    return refused("there is no \"m\" or no \"k\"");
  }
  parameters.bits = **bits;
  parameters.hashes = static_cast<std::uint32_t>(
      std::min<std::uint64_t>(**hashes, std::numeric_limits<std::uint32_t>::max()));
  parameters.capacity = capacity->value_or(1);
  const auto accepted = checked(parameters);
  if (!accepted) {
    return refused(accepted.error().message);
  }
  if (!*capacity) {
    parameters.capacity = std::max<std::uint64_t>(1, half_full_capacity(parameters.shape()));
  }
  return parameters;
}

}  // namespace

FilterParameters bloomnames_parameters() {
  FilterParameters parameters{.layout = Layout::kClassic,
                              .hash = HashFamily::kSha1Fields20,
                              .bits = kBits,
                              .hashes = kHashes,
                              .capacity = 0,
                              .seed = {}};
  parameters.capacity = half_full_capacity(parameters.shape());
  return parameters;
}

Result<std::string> write_bloomnames(const BloomFilter& filter) {
  if (auto fine = check_bloomnames(filter.parameters()); !fine) {
    return std::unexpected(fine.error());
  }
  return hex_number(filter.raw_bits()) + "\n";
}

Result<std::string> write_bloomnames_decimal(const BloomFilter& filter) {
  if (auto fine = check_bloomnames(filter.parameters()); !fine) {
    return std::unexpected(fine.error());
  }
  auto number = decimal_number(filter.raw_bits());
  if (number) {
    *number += "\n";
  }
  return number;
}

Result<BloomFilter> read_bloomnames(std::string_view text) {
  const std::string_view number = trimmed(text);
  const auto raw = read_hex_number(number, kBits);
  if (!raw) {
    return std::unexpected(raw.error());
  }
  // Its first digits are those of the highest bits: of a part of it, every bit is another one.
  constexpr std::size_t kDigits = kBits / 4;
  if (!number.ends_with('L') && number.size() != 2 + kDigits) {
    return fail("a bloomnames filter of " + std::to_string(number.size() - 2) +
                " digits without an L behind them, accepted: the L, or all " +
                std::to_string(kDigits) + " digits; it may be cut short");
  }
  return read_raw_bits(*raw, bloomnames_parameters());
}

std::string write_bloomnames_json(const BloomFilter& filter) {
  const FilterParameters& parameters = filter.parameters();
  Json object = {
      {"m", parameters.bits},
      {"k", parameters.hashes},
      {"hash", to_string(parameters.hash)},
      {"layout", to_string(parameters.layout)},
      {"capacity", parameters.capacity},
      {"keys", filter.set_bits() == parameters.bits ? Json() : Json(filter.insertions())}};
  if (parameters.seed != Seed{}) {
    object["seed"] = to_hex(parameters.seed);
  }
  const bool large = parameters.bits > kBitsWithoutDigits;
  std::string text = object.dump();
  text.pop_back();
  text += ",\"filter\":\"";
  append_hex_number(text, filter.raw_bits(), large ? (parameters.bits + 3) / 4 : 1);
  return text + "\"}\n";
}

Result<BloomFilter> read_bloomnames_json(std::string_view text) {
  const Parted parted = part(text);
  const Json object = Json::parse(parted.frame, nullptr, false);
  if (!object.is_object()) {
    return refused("no JSON object (" + std::to_string(text.size()) + " bytes)");
  }
  const auto parameters = parameters_of(object);
  if (!parameters) {
    return std::unexpected(parameters.error());
  }
  const auto member = text_of(object, "filter");
  if (!member) {
    return std::unexpected(member.error());
  }
  if (!*member) {
    return refused("there is no \"filter\"");
  }
  const std::string_view digits = **member == kDigitsElsewhere ? parted.digits : **member;
  if (parameters->bits > kBitsWithoutDigits && parameters->bits / 4 > digits.size()) {
    return refused("\"m\" is " + std::to_string(parameters->bits) + ", and \"filter\" has " +
                   std::to_string(digits.size()) + " digits");
  }
  const auto raw = read_hex_number(digits, parameters->bits);
  if (!raw) {
    return refused(raw.error().message);
  }
  auto filter = read_raw_bits(*raw, *parameters);
  return filter ? std::move(filter) : Result<BloomFilter>(refused(filter.error().message));
}

}  // namespace encore::filter
