#include "proxy/request/request_ids.h"

#include <sys/random.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <span>

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

void RequestIds::fill() {
  std::span<std::byte> rest = std::as_writable_bytes(std::span(random_));
  while (!rest.empty()) {
    const ssize_t got = ::getrandom(rest.data(), rest.size(), 0);
    ENCORE_CHECK(got > 0 || errno == EINTR, "the system has random bytes");
    if (got > 0) rest = rest.subspan(static_cast<std::size_t>(got));
  }
  next_ = 0;
}

std::string_view RequestIds::make() {
  if (next_ == random_.size()) fill();
  put_hex(random_[next_], text_.data());
  put_hex(random_[next_ + 1], text_.data() + 16);
  next_ += 2;
  return {text_.data(), text_.size()};
}

}  // namespace encore::server
