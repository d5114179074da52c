#include "tests/fuzz/proxy/content.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>

#include "tests/fuzz/proxy/random.h"

namespace encore::proxyfuzz {
namespace {

constexpr std::size_t kBlock = 64;
constexpr std::size_t kIndexAt = 12;
constexpr std::size_t kLettersAt = 22;
constexpr std::size_t kLetters = kBlock - 1 - kLettersAt;
constexpr std::size_t kPoolBytes = 1 << 16;

using Block = std::array<char, kBlock>;

// Two digits for each byte.
constexpr auto kHex = [] {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::array<std::array<char, 2>, 256> all{};
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = {kDigits[i / 16], kDigits[i % 16]};
  return all;
}();

// `digits` is even.
void write_hex(std::uint64_t value, std::size_t digits, char* out) {
  for (std::size_t i = digits; i > 0; value >>= 8) {
    i -= 2;
    std::memcpy(out + i, kHex[value & 255].data(), 2);
  }
}

// Source of the letters of all blocks, each block's from another place.
const char* pool() {
  static const auto letters = [] {
    auto made = std::make_unique<std::array<char, kPoolBytes + kLetters>>();
    Random random(1);
    for (char& letter : *made) letter = static_cast<char>('@' + (random.next() & 31));
    return made;
  }();
  return letters->data();
}

// All of a block that does not depend on its index.
Block make_frame(const ContentName& name) {
  Block block;
  block[0] = 'C';
  write_hex(name.number, 10, &block[1]);
  block[11] = '@';
  block[18] = 'u';
  block[19] = name.user < 0 ? '-' : static_cast<char>('0' + name.user / 10);
  block[20] = name.user < 0 ? '-' : static_cast<char>('0' + name.user % 10);
  block[21] = '|';
  block[kBlock - 1] = '\n';
  return block;
}

void fill_frame(const ContentName& name, std::uint64_t index, Block& block) {
  write_hex(index, 6, &block[kIndexAt]);
  const std::uint64_t from = mix(name.number * 0x10001 + index) % kPoolBytes;
  std::memcpy(&block[kLettersAt], pool() + from, kLetters);
}

// Calls f(bytes of the content) for each piece of [begin, end) until it answers false.
template <typename F>
void for_each_piece(const ContentName& name, std::uint64_t begin, std::uint64_t end, F&& f) {
  Block block = make_frame(name);
  while (begin < end) {
    fill_frame(name, begin / kBlock, block);
    const auto at = static_cast<std::size_t>(begin % kBlock);
    const auto size = static_cast<std::size_t>(std::min<std::uint64_t>(kBlock - at, end - begin));
    if (!f(std::string_view(block.data() + at, size))) return;
    begin += size;
  }
}

}  // namespace

void append_content(const ContentName& name, std::uint64_t begin, std::uint64_t end,
                    std::string& out) {
  const std::size_t before = out.size();
  const std::size_t all = before + static_cast<std::size_t>(end - begin);
  out.resize_and_overwrite(all, [&](char* at, std::size_t) {
    at += before;
    for_each_piece(name, begin, end, [&](std::string_view piece) {
      if (piece.size() == kBlock) {
        std::memcpy(at, piece.data(), kBlock);
      } else {
        std::memcpy(at, piece.data(), piece.size());
      }
      at += piece.size();
      return true;
    });
    return all;
  });
}

std::size_t find_difference(const ContentName& name, std::uint64_t offset, std::string_view bytes) {
  std::size_t seen = 0;
  std::size_t found = std::string_view::npos;
  for_each_piece(name, offset, offset + bytes.size(), [&](std::string_view piece) {
    const std::string_view got = bytes.substr(seen, piece.size());
    if (piece.size() == kBlock ? std::memcmp(got.data(), piece.data(), kBlock) == 0
                               : got == piece) {
      seen += piece.size();
      return true;
    }
    found = seen + static_cast<std::size_t>(std::ranges::mismatch(got, piece).in1 - got.begin());
    return false;
  });
  return found;
}

}  // namespace encore::proxyfuzz
