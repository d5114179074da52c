#include "proxy/cli/program.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <optional>
#include <ostream>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "proxy/cli/completion.h"
#include "proxy/cli/described.h"

namespace encore::cli {
namespace {

constexpr const char* kStatuses =
    "Exit status: 0 done, 1 the proxy refused, 2 wrong use or configuration, 3 no proxy answers.\n";

std::string indented(std::string_view lines) {
  std::string out = "Examples:\n";
  for (std::size_t start = 0; start < lines.size();) {
    const std::size_t end = std::min(lines.find('\n', start), lines.size());
    out.append("  ").append(lines.substr(start, end - start)).append("\n");
    start = end + 1;
  }
  return out;
}

// The command's App, below that of its group.
CLI::App* add_app(CLI::App& root, const CommandSpec& command) {
  const std::size_t space = command.path.find(' ');
  if (space == std::string_view::npos) {
    return root.add_subcommand(std::string(command.path), std::string(command.text));
  }
  const std::string group(command.path.substr(0, space));
  const auto is_group = [&group](const CLI::App* app) { return app->get_name() == group; };
  const auto found = root.get_subcommands(is_group);
  CLI::App* above = found.empty() ? nullptr : found.front();
  if (above == nullptr) {
    std::string text;
    for (const OptionSpec& each : groups()) {
      if (each.name == group) text = each.text;
    }
    above = root.add_subcommand(group, text);
    above->fallthrough();
    above->require_subcommand(1);
  }
  return above->add_subcommand(std::string(command.path.substr(space + 1)),
                               std::string(command.text));
}

// Those of all commands of the group.
void add_group_examples(CLI::App& root) {
  for (const OptionSpec& group : groups()) {
    std::string examples;
    for (const CommandSpec& command : commands()) {
      if (command.path.starts_with(std::string(group.name) + " ")) examples += command.examples;
    }
    root.get_subcommand(std::string(group.name))->footer(indented(examples) + kStatuses);
  }
}

void add_option(CLI::App& app, const OptionSpec& spec, Values& values) {
  const std::string name(spec.name);
  std::string text(spec.text);
  if (spec.value.empty()) {
    app.add_flag_callback(name, [&values, name] { values[name] = {"1"}; }, text);
    return;
  }
  CLI::Option* const option = app.add_option_function<std::vector<std::string>>(
      name, [&values, name](const std::vector<std::string>& given) { values[name] = given; }, text);
  option->type_name(std::string(spec.value))->required(spec.required);
  if (!spec.usual.empty()) option->default_str(std::string(spec.usual));
  const bool is_argument = !name.starts_with('-');
  if (!spec.repeated) {
    option->expected(1);
  } else if (is_argument) {
    option->expected(-1);
  } else {
    option->take_all()->allow_extra_args(false);
  }
}

}  // namespace

struct OperatorCommands::Added {
  const CommandSpec* command = nullptr;
  CLI::App* app = nullptr;
  Values values;
};

OperatorCommands::OperatorCommands(CLI::App& root) : root_(root) {
  for (const CommandSpec& command : commands()) {
    auto added = std::make_unique<Added>();
    added->command = &command;
    added->app = add_app(root, command);
    added->app->fallthrough();
    if (command.hidden) added->app->group("");
    for (const OptionSpec& each : command.arguments) add_option(*added->app, each, added->values);
    for (const OptionSpec& each : command.options) add_option(*added->app, each, added->values);
    if (command.asks_proxy) {
      for (const OptionSpec& each : proxy_options()) add_option(*added->app, each, added->values);
    }
    added->app->footer(indented(command.examples) + kStatuses);
    added_.push_back(std::move(added));
  }
  add_group_examples(root);
}

OperatorCommands::~OperatorCommands() = default;

const OperatorCommands::Added* OperatorCommands::given() const {
  for (const auto& added : added_) {
    if (added->app->parsed()) return added.get();
  }
  return nullptr;
}

bool OperatorCommands::is_given() const { return given() != nullptr; }

Exit OperatorCommands::run(const config::Sources& sources, const Streams& streams) const {
  const Added* const added = given();
  ENCORE_CHECK(added != nullptr, "a command was parsed");
  if (added->command->run == nullptr) return run_shown(*added, streams);
  Session session(*added->command, added->values, sources, streams);
  return added->command->run(session);
}

// Commands that show the commands themselves.
Exit OperatorCommands::run_shown(const Added& added, const Streams& streams) const {
  const DescribedCommand program = describe(root_);
  if (added.command->path == "commands") {
    streams.out << (added.values.contains("--markdown") ? markdown_of(program) : json_of(program));
    return Exit::kDone;
  }
  const std::string shell = added.values.at("SHELL").back();
  const std::optional<std::string> script = completion_of(program, shell);
  if (!script) {
    streams.err << "encore completion: \"" << printable(shell)
                << "\" is no shell that is known; accepted: bash, zsh, fish\n";
    return Exit::kUsage;
  }
  streams.out << *script;
  return Exit::kDone;
}

}  // namespace encore::cli
