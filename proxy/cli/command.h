// The commands that operate a running proxy: one table, from which the parser, the help,
// suggestions, completions and docs/COMMANDS.md come. Constant data, thread-safe. Why commands ask
// by HTTP, and what takes the token: docs/decisions/0530.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace encore::cli {

// Exit statuses of these commands.
enum class Exit : std::uint8_t {
  kDone = 0,
  kRefused = 1,      // the proxy has answered, and refused
  kUsage = 2,        // wrong use, or a wrong configuration
  kUnreachable = 3,  // no proxy answers
};

class Session;

// An option of a command, or one of its arguments. The word for its value says how a shell
// completes it (completion.h).
struct OptionSpec {
  std::string_view name;   // "--tag"; of an argument "URL"
  std::string_view value;  // "TAG"; empty: a flag
  std::string_view text;
  bool repeated = false;
  bool required = false;
  std::string_view usual = {};  // the default, for the help
};

struct CommandSpec {
  std::string_view path;  // "purge", "config get"
  std::string_view text;
  std::span<const OptionSpec> arguments;
  std::span<const OptionSpec> options;
  std::string_view examples;  // command lines, one a line
  // Null: it is run before a configuration is read, see program.h.
  Exit (*run)(Session& session);
  bool hidden = false;
  bool asks_proxy = true;  // has the options that say which one
};

std::span<const CommandSpec> commands();
// Groups of commands, "config", with their texts.
std::span<const OptionSpec> groups();
// Options of all commands that ask a proxy.
std::span<const OptionSpec> proxy_options();

// The commands. Each prints its result, or why there is none.
Exit run_status(Session& session);
Exit run_purge(Session& session);
Exit run_reload(Session& session);
Exit run_drain(Session& session);
Exit run_upgrade(Session& session);
Exit run_explain(Session& session);
Exit run_fleet(Session& session);
Exit run_top(Session& session);
Exit run_log(Session& session);
Exit run_config_get(Session& session);
Exit run_intercept_list(Session& session);
Exit run_intercept_clear(Session& session);

}  // namespace encore::cli
