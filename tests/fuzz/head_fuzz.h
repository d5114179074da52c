// Common parts of the fuzzing of requests and of responses. Test-only.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

#include "base/check.h"
#include "proxy/http/message.h"
#include "proxy/http/parser.h"
#include "tests/fuzz/beast_oracle.h"

namespace encore::fuzz {

inline constexpr http::Limits kLimits{
    .head_bytes_max = 2048, .target_bytes_max = 512, .fields_max = 32};

// Fields whose values Beast's parser reads.
inline constexpr http::FieldSet kReadByBeast = {
    http::FieldId::kConnection, http::FieldId::kProxyConnection, http::FieldId::kUpgrade};

inline bool inside(std::string_view part, std::string_view whole) {
  return part.empty() ||
         (part.data() >= whole.data() && part.data() + part.size() <= whole.data() + whole.size());
}

// Parses what comes in reads of `step` bytes. `parse` is parse_request or parse_response.
template <typename Head, typename Parse>
http::ParseStatus parse_cut(std::string_view bytes, std::size_t step, Parse parse) {
  http::ParseProgress progress;
  Head head;
  http::ParseError error;
  auto status = http::ParseStatus::kIncomplete;
  for (std::size_t size = 0; status == http::ParseStatus::kIncomplete && size < bytes.size();) {
    size = std::min(size + step, bytes.size());
    status = parse(bytes.substr(0, size), kLimits, progress, head, error);
  }
  if (status == http::ParseStatus::kBad) ENCORE_CHECK(error.status >= 400, "a status to answer");
  return status;
}

// Cuts do not change the outcome, which is `status`.
template <typename Head, typename Parse>
void check_cut(std::string_view bytes, std::size_t step, http::ParseStatus status, Parse parse) {
  auto cut = parse_cut<Head>(bytes, step, parse);
  // A fault that is no control character may be found only with the end of the head.
  if (cut == http::ParseStatus::kIncomplete && status == http::ParseStatus::kBad) {
    cut = parse_cut<Head>(std::string(bytes) + "\r\n\r\n", step, parse);
  }
  ENCORE_CHECK(cut == status, "cuts do not change the outcome");
}

// True if there is nothing more to compare: the head is not complete, which Beast agrees with, or
// with a fault that `is_known_difference`.
inline bool is_settled(http::ParseStatus status, const http::ParseError& error,
                       const oracle::Head& other, bool is_known_difference) {
  if (status == http::ParseStatus::kComplete) return false;
  ENCORE_CHECK(other.status != oracle::Status::kComplete ||
                   (status == http::ParseStatus::kBad && is_known_difference),
               http::to_string(error.reason));
  return true;
}

inline void compare_fields(const oracle::Head& other, const http::Fields& fields) {
  ENCORE_CHECK(other.fields.size() == fields.size(), "as many fields");
  std::size_t i = 0;
  for (const http::Field& field : fields) {
    ENCORE_CHECK(other.fields[i].first == field.name, "one name");
    ENCORE_CHECK(other.fields[i].second == field.value, "one value");
    ++i;
  }
}

}  // namespace encore::fuzz
