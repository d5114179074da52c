#include "proxy/request/request_ids.h"

#include <sys/random.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>

#include "base/check.h"

namespace encore::server {

bool is_request_id(std::string_view text) {
  return !text.empty() && text.size() <= kRequestIdBytesMax &&
         std::ranges::all_of(text, [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  std::string_view("-._~+/=:").contains(c);
         });
}

RequestIds::RequestIds() : seed_{} {
  std::array<std::byte, sizeof(seed_)> bytes;
  const ssize_t got = ::getrandom(bytes.data(), bytes.size(), 0);
  ENCORE_CHECK(got == static_cast<ssize_t>(bytes.size()), "the system has random bytes");
  seed_ = std::bit_cast<filter::Seed>(bytes);
}

std::string_view RequestIds::make() {
  ++number_;
  const filter::Hash128 bits =
      filter::hash_key(filter::HashFamily::kSiphash, seed_,
                       {reinterpret_cast<const char*>(&number_), sizeof(number_)});
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::size_t at = 0;
  for (const std::uint64_t word : {bits.lo, bits.hi}) {
    for (int shift = 60; shift >= 0; shift -= 4) text_[at++] = kDigits[(word >> shift) & 15U];
  }
  return {text_.data(), text_.size()};
}

}  // namespace encore::server
