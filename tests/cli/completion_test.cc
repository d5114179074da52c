// Completion scripts, and the table that they are made of. Shells run them in
// tests/e2e/test_operate_shells.py.
#include "proxy/cli/completion.h"

#include <algorithm>
#include <set>
#include <string>

#include "proxy/cli/command.h"
#include "tests/catch.h"

namespace encore::cli {
namespace {

DescribedCommand program() {
  DescribedCommand root{.options = {{.names = {"--config"}, .value = "FILE", .text = "It's one"}}};
  root.commands.push_back(
      {.path = "purge", .text = "Purge", .options = {{.names = {"--tag"}, .value = "TAG"}}});
  root.commands.push_back(
      {.path = "config",
       .commands = {{.path = "config get", .arguments = {{.names = {"KEY"}, .value = "KEY"}}}}});
  root.commands.push_back({.path = "secret", .hidden = true});
  return root;
}

TEST_CASE("each command is there once, with its texts", "[cli][commands]") {
  std::set<std::string_view> paths;
  for (const CommandSpec& command : commands()) {
    CAPTURE(command.path);
    CHECK(paths.insert(command.path).second);
    CHECK_FALSE(command.text.ends_with('.'));
    CHECK(command.examples.starts_with("encore "));
    CHECK(command.examples.ends_with('\n'));
    CHECK(command.examples.find(command.path) != std::string_view::npos);
    for (const OptionSpec& option : command.options) {
      CHECK(option.name.starts_with("--"));
      CHECK_FALSE(option.text.empty());
    }
    for (const OptionSpec& argument : command.arguments) CHECK_FALSE(argument.value.empty());
  }
  CHECK(paths.size() > 10);
}

TEST_CASE("scripts are made for the shells that are known", "[cli][completion]") {
  for (const char* const shell : {"bash", "zsh", "fish"}) {
    CAPTURE(shell);
    const auto script = completion_of(program(), shell);
    REQUIRE(script.has_value());
    for (const char* const word :
         {"purge", "config get", "tag", "cache.memory", "listen.0.address"}) {
      CHECK(script->find(word) != std::string::npos);
    }
    CHECK(script->find("secret") == std::string::npos);
  }
  CHECK_FALSE(completion_of(program(), "csh").has_value());
}

TEST_CASE("texts cannot end a quotation", "[cli][completion]") {
  CHECK(completion_of(program(), "fish")->find("'It'\\''s one'") != std::string::npos);
  CHECK(completion_of(program(), "zsh")->find("'--config:It'\\''s one'") != std::string::npos);
}

}  // namespace
}  // namespace encore::cli
