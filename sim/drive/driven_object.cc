#include "sim/drive/driven_object.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <string>

namespace encore::sim {
namespace {

constexpr std::string_view kPrefix = "/o/";
constexpr std::size_t kNumberDigits = 10;
constexpr std::size_t kPathBytes = kPrefix.size() + 32 + 2 * (1 + kNumberDigits);
constexpr std::size_t kDateBytes = 29;  // "Sun, 06 Nov 1994 08:49:37 GMT"

bool read_digits(std::string_view text, int base, std::uint64_t& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, base);
  return error == std::errc{} && end == text.data() + text.size();
}

// splitmix64 (Steele et al. 2014) by its counter: any word of the sequence costs the same.
std::uint64_t word_of(std::uint64_t seed, std::uint64_t number) {
  std::uint64_t z = seed + (number + 1) * 0x9e3779b97f4a7c15U;
  z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9U;
  z = (z ^ (z >> 27U)) * 0x94d049bb133111ebU;
  return z ^ (z >> 31U);
}

std::uint64_t seed_of(const DrivenObject& object) {
  return filter::remix(object.id) ^ (object.size_bytes * 0x9e3779b97f4a7c15U);
}

constexpr std::size_t kBlock = 4096;

}  // namespace

std::string path_of(const DrivenObject& object) {
  std::array<char, kPathBytes + 1> text{};
  std::snprintf(text.data(), text.size(), "/o/%016llx%016llx/%010llu/%010u",
                static_cast<unsigned long long>(object.id.hi),
                static_cast<unsigned long long>(object.id.lo),
                static_cast<unsigned long long>(std::min(object.size_bytes, kDrivenSizeMax)),
                object.ttl_seconds);
  return text.data();
}

std::optional<DrivenObject> object_at(std::string_view path) {
  DrivenObject object;
  std::uint64_t ttl = 0;
  if (path.size() != kPathBytes || !path.starts_with(kPrefix) || path[35] != '/' ||
      path[46] != '/' || !read_digits(path.substr(3, 16), 16, object.id.hi) ||
      !read_digits(path.substr(19, 16), 16, object.id.lo) ||
      !read_digits(path.substr(36, kNumberDigits), 10, object.size_bytes) ||
      !read_digits(path.substr(47), 10, ttl) || ttl > UINT32_MAX) {
    return std::nullopt;
  }
  object.ttl_seconds = static_cast<std::uint32_t>(ttl);
  return object;
}

std::string etag_of(const DrivenObject& object) {
  std::array<char, 19> text{};
  std::snprintf(text.data(), text.size(), "\"%016llx\"",
                static_cast<unsigned long long>(seed_of(object)));
  return text.data();
}

Fields fields_of(const DrivenObject& object) {
  const std::string path = path_of(object);
  // The padding makes up for the digits that a Content-Length does not have.
  const std::size_t digits = std::to_string(object.size_bytes).size();
  return {{"Content-Type", "application/octet-stream"},
          {"Cache-Control", "max-age=" + path.substr(path.size() - kNumberDigits)},
          {"ETag", etag_of(object)},
          {"X-Padding", std::string(kNumberDigits + 1 - digits, '-')}};
}

std::size_t head_bytes() {
  const std::string_view ends = "HTTP/1.1 200 OK\r\nDate: \r\nContent-Length: 0\r\n\r\n";
  std::size_t bytes = ends.size() + kDateBytes;
  for (const auto& [name, value] : fields_of({})) {
    bytes += name.size() + value.size() + 4;
  }
  return bytes;
}

void fill_body(const DrivenObject& object, std::uint64_t offset, std::span<char> out) {
  const std::uint64_t seed = seed_of(object);
  while (!out.empty()) {
    const std::uint64_t word = word_of(seed, offset / 8);
    const std::size_t skip = offset % 8;
    const std::size_t count = std::min(out.size(), 8 - skip);
    if (count == 8) {
      std::memcpy(out.data(), &word, 8);  // a constant length: no call
    } else {
      std::memcpy(out.data(), reinterpret_cast<const char*>(&word) + skip, count);
    }
    out = out.subspan(count);
    offset += count;
  }
}

bool is_body(const DrivenObject& object, std::uint64_t offset, std::span<const char> bytes) {
  std::array<char, kBlock> expected;
  while (!bytes.empty()) {
    const std::size_t count = std::min(bytes.size(), expected.size());
    fill_body(object, offset, std::span(expected).first(count));
    if (std::memcmp(expected.data(), bytes.data(), count) != 0) {
      return false;
    }
    bytes = bytes.subspan(count);
    offset += count;
  }
  return true;
}

}  // namespace encore::sim
