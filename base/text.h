// Two small things done with words. Pure functions, thread-safe.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace encore {

std::string lower_ascii(std::string_view text);

// The candidate that `word` was probably meant to be: the least edits (Damerau and Levenshtein's,
// letters' case ignored), at most a third of the word's length and at least one. Empty: none.
std::string_view nearest(std::string_view word, std::span<const std::string_view> candidates);

}  // namespace encore
