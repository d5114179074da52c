// Messages for a wrong command line.
#pragma once

#include <string>

namespace CLI {
class App;
class Error;
}  // namespace CLI

namespace encore {

// Returns the fault, a likely correction, and help: the commands to choose from, or the place of
// the options' help. REQUIRES: root.parse() threw `error`.
std::string usage_error(const CLI::App& root, const CLI::Error& error);

}  // namespace encore
