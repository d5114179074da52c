#include "base/cli/lists.h"

namespace encore {

namespace {

// The next comma outside of parentheses, or the end.
std::size_t end_of_word(std::string_view text, std::size_t start) {
  std::size_t open = 0;
  for (std::size_t i = start; i < text.size(); ++i) {
    if (text[i] == ',' && open == 0) {
      return i;
    }
    open += text[i] == '(' ? 1U : 0U;
    open -= text[i] == ')' && open != 0 ? 1U : 0U;
  }
  return text.size();
}

}  // namespace

Result<std::vector<std::string>> parse_words(std::string_view option, std::string_view text) {
  std::vector<std::string> words;
  std::size_t start = 0;
  while (start <= text.size()) {
    const std::size_t end = end_of_word(text, start);
    words.emplace_back(text.substr(start, end - start));
    if (words.back().empty()) {
      return fail(std::string(option) + " \"" + std::string(text) +
                  "\": a part of it is empty, accepted: one word, or several with commas between");
    }
    start = end + 1;
  }
  return words;
}

}  // namespace encore
