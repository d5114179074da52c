#include "filter/published/bit_number.h"

#include <openssl/bn.h>
#include <openssl/crypto.h>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>

#include "base/check.h"

namespace encore::filter {
namespace {

std::optional<unsigned> digit_of(char c) {
  if (c >= '0' && c <= '9') {
    return static_cast<unsigned>(c - '0');
  }
  const char lower = static_cast<char>(c | 0x20);
  if (lower >= 'a' && lower <= 'f') {
    return static_cast<unsigned>(lower - 'a' + 10);
  }
  return std::nullopt;
}

// Returns the printable begin of a text that may be long or have any bytes.
std::string shown(std::string_view text) {
  constexpr std::size_t kShown = 32;
  std::string out;
  for (const char c : text.substr(0, kShown)) {
    out.push_back(c >= ' ' && c <= '~' ? c : '?');
  }
  return "\"" + out + (text.size() > kShown ? "...\"" : "\"");
}

}  // namespace

void append_hex_number(std::string& out, std::string_view raw, std::size_t digits_min) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  const std::size_t highest = raw.find_last_not_of('\0');
  raw = raw.substr(0, highest == std::string_view::npos ? 0 : highest + 1);
  const bool half = !raw.empty() && static_cast<unsigned char>(raw.back()) < 0x10;
  const std::size_t digits = 2 * raw.size() - (half ? 1 : 0);
  const std::size_t wanted = std::max<std::size_t>({digits, digits_min, 1});
  out.reserve(out.size() + wanted + 3);
  out += "0x";
  out.append(wanted - digits, '0');
  for (std::size_t i = digits; i-- > 0;) {
    const auto value = static_cast<unsigned char>(raw[i / 2]);
    out.push_back(kDigits[i % 2 != 0 ? value >> 4U : value & 0xfU]);
  }
  out += 'L';
}

std::string hex_number(std::string_view raw, std::size_t digits_min) {
  std::string out;
  append_hex_number(out, raw, digits_min);
  return out;
}

Result<std::string> decimal_number(std::string_view raw) {
  if (raw.size() > kDecimalBitsMax / 8) {
    return fail("a number of " + std::to_string(raw.size() * 8) +
                " bits in decimal digits, accepted: up to " + std::to_string(kDecimalBitsMax));
  }
  struct Free {
    void operator()(BIGNUM* number) const noexcept { BN_free(number); }
    void operator()(char* text) const noexcept { OPENSSL_free(text); }
  };
  const std::unique_ptr<BIGNUM, Free> number(BN_lebin2bn(
      reinterpret_cast<const unsigned char*>(raw.data()), static_cast<int>(raw.size()), nullptr));
  const std::unique_ptr<char, Free> text(number ? BN_bn2dec(number.get()) : nullptr);
  if (!text) {
    return fail("no memory for a number of " + std::to_string(raw.size() * 8) + " bits");
  }
  return std::string(text.get());
}

Result<std::string> read_hex_number(std::string_view text, std::uint64_t bits) {
  std::string_view digits = text;
  if (!digits.starts_with("0x") && !digits.starts_with("0X")) {
    return fail("a filter written as " + shown(text) + ", accepted: 0x and hex digits");
  }
  digits.remove_prefix(2);
  if (digits.ends_with('L')) {
    digits.remove_suffix(1);
  }
  if (digits.empty()) {
    return fail("a filter written as " + shown(text) + ", accepted: 0x and hex digits");
  }
  digits.remove_prefix(std::min(digits.find_first_not_of('0'), digits.size()));
  const std::uint64_t digits_max = bits / 4 + (bits % 4 != 0 ? 1 : 0);
  if (digits.size() > digits_max) {
    return fail("a filter of " + std::to_string(digits.size()) + " hex digits, accepted: up to " +
                std::to_string(digits_max) + ", for it has " + std::to_string(bits) + " bits");
  }
  std::string raw(bits / 8 + (bits % 8 != 0 ? 1 : 0), '\0');
  for (std::size_t i = 0; i < digits.size(); ++i) {
    const auto digit = digit_of(digits[digits.size() - 1 - i]);
    if (!digit) {
      return fail("a filter written with " + shown(digits.substr(digits.size() - 1 - i, 1)) +
                  ", accepted: hex digits");
    }
    raw[i / 2] = static_cast<char>(static_cast<unsigned char>(raw[i / 2]) | *digit << (i % 2 * 4));
  }
  if (bits % 8 != 0 && static_cast<unsigned char>(raw.back()) >> (bits % 8) != 0) {
    return fail("a filter with bits beyond its " + std::to_string(bits));
  }
  return raw;
}

}  // namespace encore::filter
