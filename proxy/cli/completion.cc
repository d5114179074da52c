#include "proxy/cli/completion.h"

#include <algorithm>
#include <string>
#include <vector>

#include "config/config.h"
#include "config/dump.h"
#include "proxy/observe/outcome.h"

namespace encore::cli {
namespace {

// How a value is completed.
enum class Kind : std::uint8_t { kNothing, kFile, kDirectory, kWords };

struct Completed {
  Kind kind = Kind::kNothing;
  std::vector<std::string> words = {};
};

Completed completed(const std::string& value) {
  if (value == "FILE" || value == "PATH" || value == "CERT") return {Kind::kFile};
  if (value == "DIR") return {Kind::kDirectory};
  if (value == "SHELL") return {Kind::kWords, {"bash", "zsh", "fish"}};
  if (value == "OUTCOME") {
    return {Kind::kWords, {server::kOutcomeNames.begin(), server::kOutcomeNames.end()}};
  }
  if (value != "KEY") return {};
  const std::vector<std::string> keys = config::config_paths(config::Config());
  return {Kind::kWords, keys};
}

// An argument that is just text is completed by its name.
Completed completed(const DescribedOption& argument) {
  const Completed by_value = completed(argument.value);
  return by_value.kind == Kind::kNothing ? completed(argument.names.front()) : by_value;
}

// The program and all commands below it that are not hidden.
void flatten(const DescribedCommand& command, std::vector<const DescribedCommand*>& out) {
  if (command.hidden) return;
  out.push_back(&command);
  for (const DescribedCommand& below : command.commands) flatten(below, out);
}

std::vector<const DescribedCommand*> all_of(const DescribedCommand& program) {
  std::vector<const DescribedCommand*> all;
  flatten(program, all);
  return all;
}

std::string last_word(const std::string& path) { return path.substr(path.rfind(' ') + 1); }

// "purge" comes behind "", "get" behind "config": the patterns of "PLACE WORD" for a case.
std::string path_patterns(const std::vector<const DescribedCommand*>& all,
                          std::string_view between) {
  std::string out;
  for (const DescribedCommand* command : all) {
    if (command->path.empty()) continue;
    const bool is_below = command->path.find(' ') != std::string::npos;
    out.append(out.empty() ? "" : between).append(is_below ? "'" : "' ");
    out.append(command->path).append("'");
  }
  return out;
}

std::string words(const std::vector<std::string>& list) {
  std::string out;
  for (const std::string& each : list) out += (out.empty() ? "" : " ") + each;
  return out;
}

std::vector<std::string> names_of(const std::vector<DescribedOption>& options) {
  std::vector<std::string> names;
  for (const DescribedOption& each : options) {
    names.insert(names.end(), each.names.begin(), each.names.end());
  }
  return names;
}

std::vector<std::string> commands_of(const DescribedCommand& command) {
  std::vector<std::string> names;
  for (const DescribedCommand& below : command.commands) {
    if (!below.hidden) names.push_back(last_word(below.path));
  }
  return names;
}

// Values of options of the program are completed behind every command.
std::string place_pattern(const DescribedCommand& command, const std::string& option) {
  return (command.path.empty() ? "*" : "'" + command.path + "'") + ":" + option;
}

std::string bash_value(const Completed& value) {
  switch (value.kind) {
    case Kind::kFile:
      return "compopt -o filenames; mapfile -t COMPREPLY < <(compgen -f -- \"$current\")";
    case Kind::kDirectory:
      return "compopt -o filenames; mapfile -t COMPREPLY < <(compgen -d -- \"$current\")";
    case Kind::kWords:
      return "mapfile -t COMPREPLY < <(compgen -W '" + words(value.words) + "' -- \"$current\")";
    case Kind::kNothing:
      break;
  }
  return ":";
}

std::string bash(const DescribedCommand& program) {
  const auto all = all_of(program);
  std::string out =
      "# bash completion of encore; made by: encore completion bash\n"
      "_encore() {\n"
      "  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]}\n"
      "  local place= word i\n"
      "  COMPREPLY=()\n"
      "  for ((i = 1; i < COMP_CWORD; ++i)); do\n"
      "    word=${COMP_WORDS[i]}\n"
      "    case \"$place $word\" in\n"
      "      " +
      path_patterns(all, "|") +
      ")\n"
      "        place=${place:+$place }$word ;;\n"
      "    esac\n"
      "  done\n"
      "  case \"$place:$previous\" in\n";
  for (const DescribedCommand* command : all) {
    for (const DescribedOption& option : command->options) {
      if (option.value.empty()) continue;
      for (const std::string& name : option.names) {
        out += "    " + place_pattern(*command, name) + ") " + bash_value(completed(option.value)) +
               "; return ;;\n";
      }
    }
  }
  out += "  esac\n  local options= commands=\n  case \"$place\" in\n";
  for (const DescribedCommand* command : all) {
    out += "    '" + command->path + "') options='" + words(names_of(command->options)) +
           "' commands='" + words(commands_of(*command)) + "' ;;\n";
  }
  out +=
      "  esac\n"
      "  if [[ $current == -* ]]; then\n"
      "    mapfile -t COMPREPLY < <(compgen -W \"$options\" -- \"$current\")\n"
      "    return\n"
      "  fi\n"
      "  case \"$place\" in\n";
  for (const DescribedCommand* command : all) {
    if (command->arguments.empty()) continue;
    const Completed value = completed(command->arguments.front());
    if (value.kind == Kind::kNothing) continue;
    out += "    '" + command->path + "') " + bash_value(value) + "; return ;;\n";
  }
  return out +
         "  esac\n"
         "  mapfile -t COMPREPLY < <(compgen -W \"$commands\" -- \"$current\")\n"
         "}\n"
         "complete -F _encore encore\n";
}

// In single quotes.
std::string in_quotes(const std::string& text) {
  std::string out;
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return "'" + out + "'";
}

// "name:text" of zsh's _describe.
std::string zsh_entry(const std::string& name, const std::string& text) {
  std::string escaped;
  for (const char c : name) escaped += c == ':' ? std::string("\\:") : std::string(1, c);
  return in_quotes(escaped + ":" + text);
}

std::string zsh_value(const Completed& value) {
  switch (value.kind) {
    case Kind::kFile:
      return "_files";
    case Kind::kDirectory:
      return "_files -/";
    case Kind::kWords:
      return "compadd -- " + words(value.words);
    case Kind::kNothing:
      break;
  }
  return ":";
}

std::string zsh_lists(const DescribedCommand& command) {
  std::string options;
  for (const DescribedOption& option : command.options) {
    for (const std::string& name : option.names) options += " " + zsh_entry(name, option.text);
  }
  std::string commands;
  for (const DescribedCommand& below : command.commands) {
    if (!below.hidden) commands += " " + zsh_entry(last_word(below.path), below.text);
  }
  return "options=(" + options + " ) commands=(" + commands + " )";
}

std::string zsh(const DescribedCommand& program) {
  const auto all = all_of(program);
  std::string out =
      "#compdef encore\n"
      "# zsh completion of encore; made by: encore completion zsh\n"
      "_encore() {\n"
      "  local place= word\n"
      "  local -a options commands\n"
      "  integer i\n"
      "  for ((i = 2; i < CURRENT; ++i)); do\n"
      "    word=$words[i]\n"
      "    case \"$place $word\" in\n"
      "      (" +
      path_patterns(all, "|") +
      ") place=${place:+$place }$word ;;\n"
      "    esac\n"
      "  done\n"
      "  case \"$place:$words[CURRENT-1]\" in\n";
  for (const DescribedCommand* command : all) {
    for (const DescribedOption& option : command->options) {
      if (option.value.empty()) continue;
      for (const std::string& name : option.names) {
        out += "    (" + place_pattern(*command, name) + ") " + zsh_value(completed(option.value)) +
               "; return ;;\n";
      }
    }
  }
  out += "  esac\n  case \"$place\" in\n";
  for (const DescribedCommand* command : all) {
    out += "    ('" + command->path + "') " + zsh_lists(*command) + " ;;\n";
  }
  out +=
      "  esac\n"
      "  if [[ $words[CURRENT] == -* ]]; then\n"
      "    _describe -o option options\n"
      "    return\n"
      "  fi\n"
      "  case \"$place\" in\n";
  for (const DescribedCommand* command : all) {
    if (command->arguments.empty()) continue;
    const Completed value = completed(command->arguments.front());
    if (value.kind == Kind::kNothing) continue;
    out += "    ('" + command->path + "') " + zsh_value(value) + "; return ;;\n";
  }
  return out +
         "  esac\n"
         "  _describe command commands\n"
         "}\n"
         "if [[ $funcstack[1] == _encore ]]; then _encore \"$@\"; else compdef _encore encore; "
         "fi\n";
}

std::string fish_value(const Completed& value) {
  switch (value.kind) {
    case Kind::kFile:
      return " -r -F";
    case Kind::kDirectory:
      return " -x -a '(__fish_complete_directories)'";
    case Kind::kWords:
      return " -x -a " + in_quotes(words(value.words));
    case Kind::kNothing:
      break;
  }
  return " -x";
}

void append_fish(const DescribedCommand& command, std::string& out) {
  const std::string at = "complete -c encore -n \"__encore_at '" + command.path + "'\"";
  for (const DescribedCommand& below : command.commands) {
    if (below.hidden) continue;
    out += at + " -a " + last_word(below.path) + " -d " + in_quotes(below.text) + "\n";
  }
  // Options of the program are accepted behind every command.
  const std::string options = command.path.empty() ? "complete -c encore" : at;
  for (const DescribedOption& option : command.options) {
    std::string line = options;
    for (const std::string& name : option.names) {
      line += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
    }
    if (!option.value.empty()) line += fish_value(completed(option.value));
    out += line + " -d " + in_quotes(option.text) + "\n";
  }
  if (command.arguments.empty()) return;
  const Completed value = completed(command.arguments.front());
  if (value.kind == Kind::kWords) out += at + " -a " + in_quotes(words(value.words)) + "\n";
  if (value.kind == Kind::kFile) out += at + " -F\n";
}

std::string fish(const DescribedCommand& program) {
  const auto all = all_of(program);
  std::string out =
      "# fish completion of encore; made by: encore completion fish\n"
      "function __encore_at\n"
      "  set -l place\n"
      "  for word in (commandline -opc)[2..-1]\n"
      "    switch \"$place $word\"\n"
      "      case " +
      path_patterns(all, " ") +
      "\n"
      "        set place (string trim \"$place $word\")\n"
      "    end\n"
      "  end\n"
      "  test \"$place\" = \"$argv[1]\"\n"
      "end\n"
      "complete -c encore -f\n";
  for (const DescribedCommand* command : all) append_fish(*command, out);
  return out;
}

}  // namespace

std::optional<std::string> completion_of(const DescribedCommand& program, std::string_view shell) {
  if (shell == "bash") return bash(program);
  if (shell == "zsh") return zsh(program);
  if (shell == "fish") return fish(program);
  return std::nullopt;
}

}  // namespace encore::cli
