#include "config/schema.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>

#include "base/units.h"
#include "config/keys.h"
#include "config/tls_texts.h"

namespace encore::config {
namespace {

template <typename Member>
constexpr bool kRepeated = requires(Member& member) { member.resize(1); };

template <auto kMember>
void* at_member(Config& config, std::size_t index) {
  auto& member = config.*kMember;
  if constexpr (kRepeated<decltype(member_of(kMember))>) {
    return &member[index];
  } else {
    return &member;
  }
}

template <auto kMember>
std::size_t count_member(const Config& config) {
  const auto& member = config.*kMember;
  if constexpr (kRepeated<decltype(member_of(kMember))>) {
    return member.size();
  } else {
    return 1;
  }
}

template <auto kMember>
void resize_member(Config& config, std::size_t count) {
  (config.*kMember).resize(count);
}

template <auto kMember>
Section section(std::string_view name, std::string_view doc, std::span<const Key> keys) {
  Section result{.name = name,
                 .doc = doc,
                 .keys = keys,
                 .at = &at_member<kMember>,
                 .count = &count_member<kMember>};
  if constexpr (kRepeated<decltype(member_of(kMember))>) {
    result.repeated = true;
    result.resize = &resize_member<kMember>;
  }
  return result;
}

std::string real_text(double value) {
  std::array<char, 32> buffer{};
  const auto [end, status] = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value);
  std::string text(buffer.data(), end);
  if (text.find_first_of(".en") == std::string::npos) text += ".0";
  return text;
}

std::string unit_text(Kind kind, double value) {
  if (kind == Kind::kBytes) return format_bytes(static_cast<std::uint64_t>(value));
  if (kind == Kind::kDuration) {
    return format_duration(Nanoseconds(static_cast<std::int64_t>(value)));
  }
  if (kind == Kind::kReal && value != 0) return real_text(value);
  return std::to_string(static_cast<std::int64_t>(value));
}

std::string range_text(const Key& key, Kind kind) {
  std::string text = key.power_of_two ? "a power of two, " : "";
  text += unit_text(kind, key.range.min) + " .. " + unit_text(kind, key.range.max);
  if (key.zero_is_off) text += ", or " + unit_text(kind, 0);
  return text;
}

// A value as the operator wrote it.
struct Shown {
  std::string operator()(bool value) const { return value ? "true" : "false"; }
  std::string operator()(std::int64_t value) const { return std::to_string(value); }
  std::string operator()(double value) const { return real_text(value); }
  std::string operator()(const std::string& value) const { return in_quotes(value); }
  std::string operator()(const std::vector<std::string>&) const { return "a list"; }
  std::string operator()(const std::vector<std::int64_t>&) const { return "a list"; }
  std::string operator()(std::monostate) const { return "nothing"; }
};

std::unexpected<Error> refuse(const Key& key, const Value& written, std::string_view what) {
  const auto* text = std::get_if<std::string>(&written);
  std::string shown = key.secret ? "the value" : std::visit(Shown{}, written);
  if (key.tables && text != nullptr) shown = inline_table(*text);
  return fail(shown + " " + std::string(what) + "; accepted: " + accepted_text(key));
}

Result<Value> accept_number(const Key& key, const Value& written, double number) {
  if (key.zero_is_off && number == 0) return Value(std::int64_t{0});
  if (number < key.range.min) return refuse(key, written, "is too small");
  if (number > key.range.max) return refuse(key, written, "is too large");
  const auto whole = static_cast<std::int64_t>(number);
  if (key.power_of_two && !std::has_single_bit(static_cast<std::uint64_t>(whole))) {
    return refuse(key, written, "is not a power of two");
  }
  return Value(whole);
}

Result<Value> accept_integer(const Key& key, const Value& written) {
  if (const auto* whole = std::get_if<std::int64_t>(&written)) {
    return accept_number(key, written, static_cast<double>(*whole));
  }
  const auto* real = std::get_if<double>(&written);
  if (real == nullptr || std::trunc(*real) != *real) {
    return refuse(key, written, "is not a whole number");
  }
  return accept_number(key, written, *real);
}

Result<Value> accept_real(const Key& key, const Value& written) {
  double number = 0;
  if (const auto* whole = std::get_if<std::int64_t>(&written)) {
    number = static_cast<double>(*whole);
  } else if (const auto* real = std::get_if<double>(&written)) {
    number = *real;
  } else {
    return refuse(key, written, "is not a number");
  }
  if (std::isnan(number)) return refuse(key, written, "is not a number");
  if (key.zero_is_off && number == 0) return Value(0.0);
  if (number < key.range.min) return refuse(key, written, "is too small");
  if (number > key.range.max) return refuse(key, written, "is too large");
  return Value(number);
}

Result<Value> accept_quantity(const Key& key, const Value& written) {
  if (const auto* text = std::get_if<std::string>(&written)) {
    if (key.kind == Kind::kBytes) {
      const auto bytes = parse_bytes(*text);
      if (!bytes) return std::unexpected(bytes.error());
      return accept_number(key, written, static_cast<double>(*bytes));
    }
    const auto duration = parse_duration(*text);
    if (!duration) return std::unexpected(duration.error());
    return accept_number(key, written, static_cast<double>(duration->count()));
  }
  const auto* number = std::get_if<std::int64_t>(&written);
  if (number == nullptr) return refuse(key, written, "has no unit");
  if (key.kind == Kind::kDuration && *number != 0) return refuse(key, written, "has no unit");
  return accept_number(key, written, static_cast<double>(*number));
}

Result<Value> accept_choice(const Key& key, const Value& written) {
  const auto* text = std::get_if<std::string>(&written);
  if (text == nullptr) {
    std::string choices;
    for (const auto choice : key.choices) {
      if (!choices.empty()) choices += choice == key.choices.back() ? " or " : ", ";
      choices += in_quotes(choice);
    }
    return fail(std::visit(Shown{}, written) + " is not a string; accepted: " + choices);
  }
  const auto found = std::ranges::find(key.choices, *text);
  if (found == key.choices.end()) return refuse(key, written, "is unknown");
  return Value(std::int64_t{found - key.choices.begin()});
}

Result<std::string> accept_item(const Key& key, const std::string& text) {
  if (key.item_check == nullptr) return text;
  auto item = key.item_check(text);
  if (!item) {
    return std::unexpected(refuse(key, Value(text), item.error().message).error());
  }
  return item;
}

Result<Value> accept_texts(const Key& key, const Value& written) {
  if (const auto* one = std::get_if<std::string>(&written); one != nullptr && key.one_will_do) {
    return accept_texts(key, Value(std::vector<std::string>(1, *one)));
  }
  // An empty list has no type yet.
  const auto* numbers = std::get_if<std::vector<std::int64_t>>(&written);
  const auto* texts = std::get_if<std::vector<std::string>>(&written);
  if (texts == nullptr && (numbers == nullptr || !numbers->empty())) {
    return refuse(key, written, "is not a list of strings");
  }
  std::vector<std::string> items;
  if (texts != nullptr) {
    for (const auto& text : *texts) {
      auto item = accept_item(key, text);
      if (!item) return std::unexpected(item.error());
      items.push_back(std::move(*item));
    }
  }
  const auto count = static_cast<double>(items.size());
  if (count < key.range.min) return refuse(key, written, "is too short");
  if (count > key.range.max) return refuse(key, written, "is too long");
  return Result<Value>(std::in_place, std::move(items));
}

Result<Value> accept_integers(const Key& key, const Value& written) {
  if (const auto* texts = std::get_if<std::vector<std::string>>(&written);
      texts != nullptr && !texts->empty()) {
    return refuse(key, Value(texts->front()), "is not a whole number");
  }
  const auto* numbers = std::get_if<std::vector<std::int64_t>>(&written);
  if (numbers == nullptr) return refuse(key, written, "is not a list of whole numbers");
  for (const auto number : *numbers) {
    auto checked = accept_number(key, Value(number), static_cast<double>(number));
    if (!checked) return checked;
  }
  return *numbers;
}

}  // namespace

std::span<const Section> schema() {
  static const std::array kSections = {
      section<&Config::listen>("listen", "Listeners for clients, any number.", listen_keys()),
      section<&Config::acme>("acme",
                             "Challenges of certificate authorities. See "
                             "[TLS.md](TLS.md#get-certificates-by-acme).",
                             acme_keys()),
      section<&Config::origin>("origin",
                               "Origins of reverse listeners. The best match by host, then the "
                               "longest path, wins; without a match the response is 404.",
                               origin_keys()),
      section<&Config::rule>(
          "rule",
          "Exceptions for some requests, in order: the first rule that matches applies, and no "
          "other; keys that it does not set come from the rest of the configuration. A rule with "
          "`content_type` is known with the response only, and may only "
          "change storing. See [RULES.md](RULES.md); `encore explain URL` prints the rule that "
          "applies.",
          rule_keys()),
      section<&Config::forward>("forward", "Permissions of forward listeners.", forward_keys()),
      section<&Config::intercept>(
          "intercept",
          "Hosts whose `CONNECT`s are decrypted with your own CA, so that https is cached. None by "
          "default. Read [INTERCEPTION.md](INTERCEPTION.md) first.",
          intercept_keys()),
      section<&Config::cache>("cache", "Storage and lifetime of responses.", cache_keys()),
      section<&Config::compression>("compression",
                                    "Compression of responses that origins send uncompressed. Off "
                                    "by default. See [COMPRESSION.md](COMPRESSION.md).",
                                    compression_keys()),
      section<&Config::disk>(
          "disk",
          "Up to 16 disks behind the memory, none by default; see [DISK.md](DISK.md). "
          "`cache.disk_write_rate`, `cache.disk_reinsert` and `cache.disk_life_min` apply to all.",
          disk_keys()),
      section<&Config::admission>("admission",
                                  "Admission to the cache. Set `capacity` and `fpr`, or `bits` and "
                                  "`hashes`; `--check-config` prints the rest.",
                                  admission_keys()),
      section<&Config::state>("state", "Files that survive a restart.", state_keys()),
      section<&Config::upgrade>("upgrade", "Limits of an [upgrade](UPGRADE.md). 0: none.",
                                upgrade_keys()),
      section<&Config::workers>("workers", "Threads.", workers_keys()),
      section<&Config::admin>("admin", "The listener for operators.", admin_keys()),
      section<&Config::filters>(
          "filters",
          "Published Bloom filters of URLs, on the admin listener under `/filters` and on proxy "
          "listeners under `path`; see [FILTERS.md](FILTERS.md).",
          filters_keys()),
      section<&Config::shadow>("shadow",
                               "Simulation of other policies on a sample of the live requests, "
                               "without storing; see [SHADOW.md](SHADOW.md).",
                               shadow_keys()),
      section<&Config::log>("log", "Logs.", log_keys()),
      section<&Config::timeouts>("timeouts", "Time limits. 0: none.", timeouts_keys()),
      section<&Config::limits>("limits", "Sizes and numbers.", limits_keys()),
      section<&Config::limit>("limit",
                              "Rate limits, any number. Each client has a bucket of `burst` "
                              "tokens, which gains `rate` per second; a request takes one.",
                              limit_keys()),
      section<&Config::upstream>("upstream", "Connections to origin servers.", upstream_keys()),
      section<&Config::fleet>("fleet",
                              "Purges on all nodes; see [FLEET.md](FLEET.md#purges-everywhere).",
                              fleet_keys()),
      section<&Config::http>("http", "The proxy's identity and own pages.", http_keys()),
  };
  return kSections;
}

const Section* find_section(std::string_view name) {
  const auto all = schema();
  const auto found = std::ranges::find(all, name, &Section::name);
  return found == all.end() ? nullptr : &*found;
}

const Key* find_key(const Section& section, std::string_view name) {
  const auto found = std::ranges::find(section.keys, name, &Key::name);
  return found == section.keys.end() ? nullptr : &*found;
}

Result<Value> accept(const Key& key, const Value& written) {
  switch (key.kind) {
    case Kind::kBool:
      if (!std::holds_alternative<bool>(written)) return refuse(key, written, "is not a boolean");
      return written;
    case Kind::kInteger:
      return accept_integer(key, written);
    case Kind::kReal:
      return accept_real(key, written);
    case Kind::kBytes:
    case Kind::kDuration:
      return accept_quantity(key, written);
    case Kind::kChoice:
      return accept_choice(key, written);
    case Kind::kTextList:
      return accept_texts(key, written);
    case Kind::kIntegerList:
      return accept_integers(key, written);
    case Kind::kText:
      break;
  }
  if (const auto* number = std::get_if<std::int64_t>(&written); number && key.number_will_do) {
    return accept(key, Value(std::to_string(*number)));
  }
  const auto* text = std::get_if<std::string>(&written);
  if (text == nullptr) return refuse(key, written, "is not a string");
  auto item = accept_item(key, *text);
  if (!item) return std::unexpected(item.error());
  return Result<Value>(std::in_place, std::move(*item));
}

std::string accepted_text(const Key& key) {
  switch (key.kind) {
    case Kind::kBool:
      return "true or false";
    case Kind::kInteger:
    case Kind::kReal:
    case Kind::kBytes:
    case Kind::kDuration:
      return range_text(key, key.kind);
    case Kind::kIntegerList:
      return "a list of numbers, " + range_text(key, Kind::kInteger);
    case Kind::kText:
      return std::string(key.accepted);
    case Kind::kTextList: {
      const auto least = static_cast<int>(key.range.min);
      return std::string(key.one_will_do ? "one, or a list of " : "a list of ") +
             (least > 0 ? std::to_string(least) + " .. " : std::string("up to ")) +
             std::to_string(static_cast<int>(key.range.max)) + ": " + std::string(key.accepted);
    }
    case Kind::kChoice:
      break;
  }
  std::string text;
  for (const auto choice : key.choices) {
    if (!text.empty()) text += choice == key.choices.back() ? " or " : ", ";
    text += choice;
  }
  return text;
}

std::string toml_text(const Key& key, const Value& value) {
  if (is_unset(value)) return {};
  if (key.kind == Kind::kChoice) {
    return in_quotes(key.choices[static_cast<std::size_t>(std::get<std::int64_t>(value))]);
  }
  if (key.kind == Kind::kBytes || key.kind == Kind::kDuration) {
    const auto number = std::get<std::int64_t>(value);
    if (key.kind == Kind::kDuration) return in_quotes(format_duration(Nanoseconds(number)));
    // format_bytes() rounds; a number that it cannot write exactly is written in bytes.
    std::string text = format_bytes(static_cast<std::uint64_t>(number));
    if (parse_bytes(text) != static_cast<std::uint64_t>(number)) text = std::to_string(number);
    return in_quotes(text);
  }
  std::string text = "[";
  if (const auto* texts = std::get_if<std::vector<std::string>>(&value)) {
    for (const auto& item : *texts) {
      text += (text.size() > 1 ? ", " : "") + (key.tables ? inline_table(item) : in_quotes(item));
    }
    return text + "]";
  }
  if (const auto* numbers = std::get_if<std::vector<std::int64_t>>(&value)) {
    for (const auto item : *numbers) text += (text.size() > 1 ? ", " : "") + std::to_string(item);
    return text + "]";
  }
  return std::visit(Shown{}, value);
}

std::string key_path(const Section& section, std::size_t index, const Key& key) {
  std::string path(section.name);
  if (section.repeated) path += "." + std::to_string(index);
  return path + "." + std::string(key.name);
}

}  // namespace encore::config
