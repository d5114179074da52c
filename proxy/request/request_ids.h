// RequestIds: identifiers of requests, over all that handles them: the one of a trusted proxy, else
// 128 random bits of the system's, which cannot be guessed from others of them. One per worker,
// confined to it. Why clients are not trusted, and who receives them: docs/decisions/0291.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace encore::server {

inline constexpr std::string_view kRequestIdField = "X-Request-Id";
inline constexpr std::string_view kRequestIdName = "x-request-id";
inline constexpr std::size_t kRequestIdBytesMax = 128;

// True if a text can be one: letters, digits and -._~+/=:, 1 .. kRequestIdBytesMax of them.
bool is_request_id(std::string_view text);

class RequestIds {
 public:
  // Another one, of 32 digits; a view into this until the next call.
  std::string_view make();

 private:
  void fill();

  // A call of the system costs as much as many ids.
  std::array<std::uint64_t, 256> random_{};
  std::size_t next_ = random_.size();
  std::array<char, 32> text_{};
};

}  // namespace encore::server
