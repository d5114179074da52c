// The commands and options of the program, read from what its parsers are made of: for completions,
// manual pages and docs/COMMANDS.md. Values, thread-compatible.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace encore::cli {

struct DescribedOption {
  std::vector<std::string> names = {};  // "--config", "-h"; of an argument "URL"
  std::string value = {};               // "FILE"; empty: a flag
  std::string text = {};
  std::string usual = {};  // the default; empty: none is stated
  bool repeated = false;
  bool required = false;
};

struct DescribedCommand {
  std::string path = {};  // "config get"; empty: the program
  std::string text = {};
  std::string footer = {};  // examples and exit statuses
  bool hidden = false;
  std::vector<DescribedOption> options = {};
  std::vector<DescribedOption> arguments = {};
  std::vector<DescribedCommand> commands = {};  // below it
};

// Those of disk and ca are included.
DescribedCommand describe(const CLI::App& root);

// {"name": "encore", "version": ..., "text": ..., "options": [...], "commands": [...]}
std::string json_of(const DescribedCommand& program);
// The lists of docs/COMMANDS.md: a section for each command that is not hidden.
std::string markdown_of(const DescribedCommand& program);

}  // namespace encore::cli
