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

template <auto kMember>
Value get_member(const void* section) {
  const auto& value = static_cast<const decltype(section_of(kMember))*>(section)->*kMember;
  using Member = decltype(member_of(kMember));
  if constexpr (std::is_same_v<Member, Nanoseconds>) {
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

template <auto kMember>
void set_member(void* section, const Value& value) {
  auto& member = static_cast<decltype(section_of(kMember))*>(section)->*kMember;
  using Member = decltype(member_of(kMember));
  if constexpr (std::is_same_v<Member, Nanoseconds>) {
    member = Nanoseconds(std::get<std::int64_t>(value));
  } else if constexpr (std::is_same_v<Member, std::vector<std::uint64_t>>) {
    const auto& numbers = std::get<std::vector<std::int64_t>>(value);
    member.assign(numbers.begin(), numbers.end());
  } else if constexpr (IsParsed<Member>) {
    member = std::get<std::string>(value);
  } else if constexpr (IsParsedList<Member>) {
    const auto& texts = std::get<std::vector<std::string>>(value);
    member.assign(texts.begin(), texts.end());
  } else if constexpr (std::is_enum_v<Member> ||
                       (std::is_integral_v<Member> && !std::is_same_v<Member, bool>)) {
    member = static_cast<Member>(std::get<std::int64_t>(value));
  } else {
    member = std::get<Member>(value);
  }
}

// Starts a key of a member; what the kind needs beside name and doc is given in `key`.
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
std::span<const Key> origin_keys();
std::span<const Key> forward_keys();
std::span<const Key> cache_keys();
std::span<const Key> disk_keys();
std::span<const Key> admission_keys();
std::span<const Key> state_keys();
std::span<const Key> workers_keys();
std::span<const Key> admin_keys();
std::span<const Key> filters_keys();
std::span<const Key> log_keys();
std::span<const Key> timeouts_keys();
std::span<const Key> limits_keys();
std::span<const Key> limit_keys();
std::span<const Key> upstream_keys();
std::span<const Key> http_keys();

// A text that is parsed is kept as it is written.
template <typename Text>
Result<std::string> check_parsed(std::string_view text) {
  const auto parsed = Text::parse(text);
  if (!parsed) return std::unexpected(parsed.error());
  return std::string(text);
}

// What other texts are made of. Each gives the text as it is kept.
Result<std::string> check_host_pattern(std::string_view text);
Result<std::string> check_host_name(std::string_view text);
Result<std::string> check_path_prefix(std::string_view text);
Result<std::string> check_target_or_empty(std::string_view text);
Result<std::string> check_authority_or_empty(std::string_view text);
Result<std::string> check_folder_or_empty(std::string_view text);
Result<std::string> check_published(std::string_view text);
Result<std::string> check_field_name(std::string_view text);
Result<std::string> check_token(std::string_view text);
Result<std::string> check_host_glob(std::string_view text);
Result<std::string> check_path_glob(std::string_view text);
Result<std::string> check_method(std::string_view text);
Result<std::string> check_lower_field_or_empty(std::string_view text);
Result<std::string> check_realm(std::string_view text);
Result<std::string> check_query_name(std::string_view text);
Result<std::string> check_seed(std::string_view text);
Result<std::string> check_file_name(std::string_view text);
Result<std::string> check_disk_name(std::string_view text);  // a file name, not ""

}  // namespace encore::config
