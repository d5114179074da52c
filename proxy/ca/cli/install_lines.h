// Commands that make programs trust an authority, a line for each kind of them. Pure.
#pragma once

#include <string>
#include <vector>

namespace encore::ca {

// Lines of a shell, with comments between them. `certificate` is the file, by a name that is good
// in any directory; `hosts` are those that it may sign for, none: any.
std::string install_lines(const std::string& certificate, const std::vector<std::string>& hosts);

// As one word of a shell.
std::string shell_word(const std::string& text);

}  // namespace encore::ca
