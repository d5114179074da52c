// How the tables of keys are written: one line of code a key, made from a pointer to the member of
// the struct that it fills. Used by the keys_*.cc files only.
#pragma once

#include <concepts>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/time.h"
#include "config/config.h"
#include "config/key.h"
#include "config/texts.h"

namespace encore::config {

template <typename Section, typename Member>
Section section_of(Member Section::*);
template <typename Section, typename Member>
Member member_of(Member Section::*);

template <typename T>
concept IsParsed = requires(const T& value) {
  { value.text() } -> std::same_as<const std::string&>;
};
template <typename T>
concept IsParsedList =
    IsParsed<typename T::value_type> && requires(T& list) { list.assign(1, list[0]); };

template <typename T>
concept IsOptional = requires(T& value) {
  value.reset();
  value.has_value();
};

template <typename Member>
Value value_of_member(const Member& value) {
  if constexpr (IsOptional<Member>) {
    return value.has_value() ? value_of_member(*value) : Value(std::monostate());
  } else if constexpr (std::is_same_v<Member, Nanoseconds>) {
    return std::int64_t{value.count()};
  } else if constexpr (std::is_same_v<Member, std::vector<std::uint64_t>>) {
    return std::vector<std::int64_t>(value.begin(), value.end());
  } else if constexpr (IsParsed<Member>) {
    return value.text();
  } else if constexpr (IsParsedList<Member>) {
    std::vector<std::string> texts;
    for (const auto& each : value) texts.push_back(each.text());
    return texts;
  } else if constexpr (std::is_enum_v<Member> ||
                       (std::is_integral_v<Member> && !std::is_same_v<Member, bool>)) {
    return static_cast<std::int64_t>(value);
  } else {
    return value;
  }
}

template <typename Member>
Member member_of_value(const Value& value) {
  if constexpr (IsOptional<Member>) {
    if (is_unset(value)) return {};
    return member_of_value<typename Member::value_type>(value);
  } else if constexpr (std::is_same_v<Member, Nanoseconds>) {
    return Nanoseconds(std::get<std::int64_t>(value));
  } else if constexpr (std::is_same_v<Member, std::vector<std::uint64_t>>) {
    const auto& numbers = std::get<std::vector<std::int64_t>>(value);
    return Member(numbers.begin(), numbers.end());
  } else if constexpr (IsParsed<Member>) {
    return Member(std::get<std::string>(value));
  } else if constexpr (IsParsedList<Member>) {
    const auto& texts = std::get<std::vector<std::string>>(value);
    return Member(texts.begin(), texts.end());
  } else if constexpr (std::is_enum_v<Member> ||
                       (std::is_integral_v<Member> && !std::is_same_v<Member, bool>)) {
    return static_cast<Member>(std::get<std::int64_t>(value));
  } else {
    return std::get<Member>(value);
  }
}

template <auto kMember>
Value get_member(const void* section) {
  return value_of_member(static_cast<const decltype(section_of(kMember))*>(section)->*kMember);
}

template <auto kMember>
void set_member(void* section, const Value& value) {
  static_cast<decltype(section_of(kMember))*>(section)->*kMember =
      member_of_value<decltype(member_of(kMember))>(value);
}

// Starts a key of a member; `key` has what the kind needs in addition to name and doc.
template <auto kMember>
constexpr Key bound(Key key) {
  key.get = &get_member<kMember>;
  key.set = &set_member<kMember>;
  return key;
}

constexpr double kSecond = 1e9;
constexpr double kDay = 86400 * kSecond;

// The tables, one for each section; schema.cc puts them together.
std::span<const Key> listen_keys();
std::span<const Key> listen_tls_keys();  // a part of them
std::span<const Key> acme_keys();
std::span<const Key> origin_keys();
std::span<const Key> rule_keys();
std::span<const Key> forward_keys();
std::span<const Key> intercept_keys();
std::span<const Key> cache_keys();
std::span<const Key> compression_keys();
std::span<const Key> disk_keys();
std::span<const Key> admission_keys();
std::span<const Key> state_keys();
std::span<const Key> upgrade_keys();
std::span<const Key> workers_keys();
std::span<const Key> admin_keys();
std::span<const Key> filters_keys();
std::span<const Key> shadow_keys();
std::span<const Key> log_keys();
std::span<const Key> timeouts_keys();
std::span<const Key> limits_keys();
std::span<const Key> limit_keys();
std::span<const Key> upstream_keys();
std::span<const Key> http_keys();
std::span<const Key> fleet_keys();

// A text that is parsed is kept as it is written.
template <typename Text>
Result<std::string> check_parsed(std::string_view text) {
  const auto parsed = Text::parse(text);
  if (!parsed) return std::unexpected(parsed.error());
  return std::string(text);
}

}  // namespace encore::config
