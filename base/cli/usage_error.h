// What is said of a command line that is none.
#pragma once

#include <string>

namespace CLI {
class App;
class Error;
}  // namespace CLI

namespace encore {

// What is wrong, what was probably meant, and what helps: the commands to choose from, or where the
// options are explained. REQUIRES: root.parse() threw `error`.
std::string usage_error(const CLI::App& root, const CLI::Error& error);

}  // namespace encore
