// RequestIds: what requests are known by, over all that handles them: as a trusted proxy has called
// them, else 128 random bits of the system's, which nobody guesses who knows others of them. One a
// worker, confined to it. Why clients are not believed, and who is told: docs/decisions/0291.
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

// Whether a text can be one: letters, digits and -._~+/=:, 1 .. kRequestIdBytesMax of them.
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
