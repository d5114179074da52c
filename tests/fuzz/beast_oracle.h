// Boost.Beast's HTTP/1 parser as an oracle for ours, behind plain types: Beast is included in one
// .cc. Test-only.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace encore::oracle {

enum class Status { kComplete, kIncomplete, kBad };

struct Head {
  Status status = Status::kIncomplete;
  std::string error;  // the reason for kBad
  std::string method;
  std::string target;
  std::string reason;
  unsigned code = 0;
  int version = 0;  // 10 or 11
  std::vector<std::pair<std::string, std::string>> fields;
  bool chunked = false;
  std::optional<std::uint64_t> content_length;
  std::size_t head_size = 0;
};

Head parse_request(std::string_view bytes);
Head parse_response(std::string_view bytes);

struct Body {
  Status status = Status::kIncomplete;
  std::string error;
  std::string content;
  std::size_t consumed = 0;
};

// Decodes a chunked body.
Body decode_chunked(std::string_view bytes);

// For the benchmark: parses a request head of a reused parser's kind, and returns how many fields
// it had; 0 if it is not complete.
std::size_t count_request_fields(std::string_view bytes);

}  // namespace encore::oracle
