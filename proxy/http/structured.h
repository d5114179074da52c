// Dictionaries and lists of structured fields (RFC 8941), read strictly. Pure, thread-compatible.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace encore::http {

struct StructuredMember {
  enum class Type : std::uint8_t { kInteger, kDecimal, kString, kToken, kBytes, kBoolean, kList };
  std::string_view key;
  Type type = Type::kBoolean;
  std::int64_t integer = 0;  // for kInteger
  bool boolean = false;      // for kBoolean
  std::string_view text;     // for kString (without quotes, still escaped) and kToken
};

// The members of a dictionary in order, parameters read and left out; of members with one key the
// last counts, in the place of the first. Nothing if any part is malformed, or there are more than
// kMembersMax (RFC 8941 3.2 asks for 1024).
inline constexpr std::size_t kMembersMax = 1024;
std::optional<std::vector<StructuredMember>> parse_dictionary(std::string_view value);

// True if the value is a list (RFC 8941 3.1) of items or inner lists with parameters, or empty. Any
// other value makes the lines after it unreadable as well (4.2).
bool is_structured_list(std::string_view value);

// The parameters of a list's last member, in order, of each key the last one's value (RFC 8941
// 3.1.2); has_member is false for an empty list. Nothing if any part is malformed, or a last member
// so far has more than kParametersMax.
inline constexpr std::size_t kParametersMax = 256;
struct ListEnd {
  bool has_member = false;
  std::vector<StructuredMember> parameters;
};
std::optional<ListEnd> parameters_of_last(std::string_view value);

}  // namespace encore::http
