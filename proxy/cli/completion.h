// Completion scripts of shells, made of the commands and options. A pure function.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "proxy/cli/described.h"

namespace encore::cli {

// The script of bash, zsh or fish; nothing for another shell. It completes commands, options, and
// values by the words that stand for them: FILE and DIR names, KEY those of the configuration,
// OUTCOME and SHELL.
std::optional<std::string> completion_of(const DescribedCommand& program, std::string_view shell);

}  // namespace encore::cli
