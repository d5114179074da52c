// Numbers at fixed places of a page: little-endian, unaligned. Pure, thread-safe.
#pragma once

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstring>

namespace encore::disk {

template <std::unsigned_integral T>
void put(std::byte* at, T value) {
  if constexpr (std::endian::native == std::endian::big) value = std::byteswap(value);
  std::memcpy(at, &value, sizeof value);
}

template <std::unsigned_integral T>
T get(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  if constexpr (std::endian::native == std::endian::big) value = std::byteswap(value);
  return value;
}

}  // namespace encore::disk
