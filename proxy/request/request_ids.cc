#include "proxy/request/request_ids.h"

#include <sys/random.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstring>

#include "base/check.h"

namespace encore::server {

namespace {

// The 16 digits of a number, the highest first: eight at a time, each in a byte of its own.
void put_hex(std::uint64_t number, char* out) {
  const auto digits = [](std::uint64_t half) {
    std::uint64_t spread = (half | half << 16U) & 0x0000ffff0000ffffU;
    spread = (spread | spread << 8U) & 0x00ff00ff00ff00ffU;
    spread = (spread | spread << 4U) & 0x0f0f0f0f0f0f0f0fU;
    // Above nine there are 39 places more to "a".
    const std::uint64_t above = ((spread + 0x0606060606060606U) >> 4U) & 0x0101010101010101U;
    const std::uint64_t text = spread + 0x3030303030303030U + above * 39;
    if constexpr (std::endian::native == std::endian::big) return text;
    return std::byteswap(text);
  };
  for (const std::uint64_t half : {number >> 32U, number & 0xffffffffU}) {
    const std::uint64_t text = digits(half);
    std::memcpy(out, &text, sizeof(text));
    out += sizeof(text);
  }
}

}  // namespace

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
  put_hex(bits.lo, text_.data());
  put_hex(bits.hi, text_.data() + 16);
  return {text_.data(), text_.size()};
}

}  // namespace encore::server
