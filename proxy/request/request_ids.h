// RequestIds: what requests are known by, over all that handles them: as a trusted proxy has called
// them, else 128 bits that nobody guesses who knows others of them (SipHash of a number, by a
// secret from the system). One a worker, confined to it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "filter/hash.h"

namespace encore::server {

inline constexpr std::string_view kRequestIdField = "X-Request-Id";
inline constexpr std::string_view kRequestIdName = "x-request-id";
inline constexpr std::size_t kRequestIdBytesMax = 128;

// Whether a text can be one: letters, digits and -._~+/=:, 1 .. kRequestIdBytesMax of them.
bool is_request_id(std::string_view text);

class RequestIds {
 public:
  RequestIds();

  // Another one, of 32 digits; a view into this until the next call.
  std::string_view make();

 private:
  filter::Seed seed_;
  std::uint64_t number_ = 0;
  std::array<char, 32> text_{};
};

}  // namespace encore::server
