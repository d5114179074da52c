#include "sim/cli/lists.h"

#include <charconv>

namespace encore::sim {
namespace {

constexpr std::size_t kNumbersMax = 4096;

bool read(std::string_view text, std::uint64_t& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && end == text.data() + text.size();
}

}  // namespace

Result<std::vector<std::string>> parse_words(std::string_view text) {
  std::vector<std::string> words;
  std::size_t start = 0;
  while (start <= text.size()) {
    const std::size_t end = std::min(text.find(',', start), text.size());
    words.emplace_back(text.substr(start, end - start));
    if (words.back().empty()) {
      return fail("an empty part in \"" + std::string(text) + "\"");
    }
    start = end + 1;
  }
  return words;
}

Result<std::vector<std::uint64_t>> parse_numbers(std::string_view text) {
  const auto words = parse_words(text);
  if (!words) {
    return std::unexpected(words.error());
  }
  std::vector<std::uint64_t> numbers;
  for (const std::string& word : *words) {
    const std::size_t dots = word.find("..");
    std::uint64_t first = 0;
    std::uint64_t last = 0;
    const std::string_view view = word;
    const bool good = dots == std::string::npos
                          ? read(view, first) && read(view, last)
                          : read(view.substr(0, dots), first) && read(view.substr(dots + 2), last);
    if (!good || first > last || last - first >= kNumbersMax ||
        numbers.size() + (last - first) >= kNumbersMax) {
      return fail("cannot read \"" + word + "\" as numbers, accepted: 7, 1..8 or 1,2,4");
    }
    for (std::uint64_t number = first; number <= last; ++number) {
      numbers.push_back(number);
    }
  }
  return numbers;
}

}  // namespace encore::sim
