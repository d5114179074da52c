#include "base/cli/lists.h"

#include <algorithm>

namespace encore {

Result<std::vector<std::string>> parse_words(std::string_view option, std::string_view text) {
  std::vector<std::string> words;
  std::size_t start = 0;
  while (start <= text.size()) {
    const std::size_t end = std::min(text.find(',', start), text.size());
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
