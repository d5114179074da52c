#include "proxy/http/digest_path.h"

#include <algorithm>

#include "proxy/http/message.h"

namespace encore::http {
namespace {

constexpr std::string_view kName = "sha256";
constexpr std::string_view kSeparators = ":-_/";
constexpr std::size_t kDigits = 64;

bool is_hex(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

bool stands_at(std::string_view path, std::size_t at) {
  return equals_lower(path.substr(at, kName.size()), kName);
}

}  // namespace

std::optional<std::string> sha256_in_path(std::string_view path) {
  for (std::size_t at = 0; at + kName.size() + 1 + kDigits <= path.size(); ++at) {
    if (!stands_at(path, at)) continue;
    const std::string_view behind = path.substr(at + kName.size());
    if (kSeparators.find(behind.front()) == std::string_view::npos) continue;
    const std::string_view digits = behind.substr(1, kDigits);
    if (!std::ranges::all_of(digits, is_hex)) continue;
    if (behind.size() > 1 + kDigits && is_hex(behind[1 + kDigits])) continue;
    std::string text(digits);
    std::ranges::transform(text, text.begin(), to_lower);
    return text;
  }
  return std::nullopt;
}

}  // namespace encore::http
