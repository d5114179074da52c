#include "proxy/process/token.h"

#include <algorithm>

#include "base/secret_file.h"
#include "proxy/http/list.h"

namespace encore::server {
namespace {

bool is_token_byte(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         std::string_view("-._~+/=").find(c) != std::string_view::npos;
}

}  // namespace

Result<Token> Token::parse(std::string_view text) {
  while (text.ends_with('\n') || text.ends_with('\r')) text.remove_suffix(1);
  if (text.size() < kBytesMin || text.size() > kBytesMax ||
      !std::ranges::all_of(text, is_token_byte)) {
    // How many there are, and which is at fault, but none of them.
    const bool lines = text.contains('\n');
    const bool others = !std::ranges::all_of(text, is_token_byte);
    return fail("no token; write one line of " + std::to_string(kBytesMin) + " to " +
                std::to_string(kBytesMax) + " letters, digits and -._~+/=, found " +
                (lines ? "more than one line"
                       : std::to_string(text.size()) + " characters" +
                             (others ? ", others among them" : "")));
  }
  Token token;
  token.size_ = text.size();
  std::ranges::copy(text, token.bytes_.begin());
  return token;
}

Result<Token> Token::read(const std::string& path) {
  const auto refused = [&](const std::string& why) {
    return fail("cannot take the token of " + path + ": " + why);
  };
  // One byte more than there may be, with the end of the line.
  const auto bytes = read_secret_file(path, kBytesMax + 2);
  if (!bytes) return refused(bytes.error().message);
  auto token = parse(*bytes);
  return token ? token : refused(token.error().message);
}

bool Token::authorizes(std::string_view field) const {
  constexpr std::string_view kScheme = "Bearer ";
  if (!http::equals_ignoring_case(field.substr(0, kScheme.size()), kScheme)) return false;
  const std::string_view given = field.substr(kScheme.size());
  // All bytes, whichever differs: the time tells nothing of how many were right.
  std::array<char, kBytesMax> padded{};
  std::ranges::copy(given.substr(0, kBytesMax), padded.begin());
  unsigned differs = given.size() == size_ ? 0 : 1;
  for (std::size_t i = 0; i < kBytesMax; ++i) {
    differs |= static_cast<unsigned char>(padded[i] ^ bytes_[i]);
  }
  return differs == 0;
}

}  // namespace encore::server
