// Aligned columns for people. Pure functions, thread-safe.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace encore::cli {

// Rows of cells, the first one the heads. The first column and those of texts are aligned to the
// left, columns of numbers (all cells below the head begin with a digit or "-") to the right. The
// first column is cut to `first_max` characters.
std::string columns(const std::vector<std::vector<std::string>>& rows, std::size_t first_max = 60);

// "1234", "12.3", "0.12": three digits that count.
std::string short_number(double value);
// "1.2KiB", of bytes or bytes a second.
std::string short_bytes(double bytes);
// "0.12 ms", "1.5 s".
std::string short_seconds(double seconds);

}  // namespace encore::cli
