// How origins may read a path: what is denied by its path is denied in whichever way it is written.
// Pure, thread-safe.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace encore::server {

// The further readings of a normalised path, at most three, none longer than it: with all its
// escapes undone ("%2F" is "/"), with a row of slashes taken for one and backslashes for slashes,
// and with both; dot segments that come to light are gone. None where all read it as it stands,
// which costs a look at its bytes.
std::vector<std::string> other_readings(std::string_view path);

// Whether `holds` of the path or of another reading of it.
template <typename Holds>
bool any_reading(std::string_view path, Holds&& holds) {
  return holds(path) || std::ranges::any_of(other_readings(path), holds);
}

}  // namespace encore::server
