#include "base/cli/usage_error.h"

#include <CLI/CLI.hpp>
#include <string_view>
#include <vector>

#include "base/text.h"

namespace encore {
namespace {

// The command that was read last, and the words before its name.
struct Reached {
  const CLI::App* app;
  std::string above;
};
Reached reached(const CLI::App& root) {
  Reached at{.app = &root, .above = {}};
  while (!at.app->get_subcommands().empty()) {
    at.above += at.app->get_name() + " ";
    at.app = at.app->get_subcommands().front();
  }
  return at;
}

std::string nearest_of(const std::string& word, const std::vector<std::string>& names) {
  const std::vector<std::string_view> candidates(names.begin(), names.end());
  return std::string(nearest(word, candidates));
}

std::string nearest_option(const CLI::App& app, const std::string& word) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    names.insert(names.end(), option->get_lnames().begin(), option->get_lnames().end());
  }
  const std::string name = nearest_of(word.substr(word.find_first_not_of('-')), names);
  return name.empty() ? "" : "--" + name;
}

// Among the commands below `app`; failing these, one of a group of them: "fill" is "theory fill".
std::string nearest_command(const CLI::App& app, const std::string& word) {
  const auto any = [](const CLI::App*) { return true; };
  std::vector<std::string> names;
  for (const CLI::App* below : app.get_subcommands(any)) {
    names.push_back(below->get_name());
  }
  std::string name = nearest_of(word, names);
  for (const CLI::App* group : app.get_subcommands(any)) {
    if (!name.empty()) {
      break;
    }
    const std::string inner = nearest_command(*group, word);
    name = inner.empty() ? "" : group->get_name() + " " + inner;
  }
  return name;
}

// The first word that nothing was known to do with; empty: there is none.
std::string unknown_word(const CLI::App& app) {
  const std::vector<std::string> words = app.remaining();
  return words.empty() ? "" : words.front().substr(0, words.front().find('='));
}

bool is_option(const std::string& word) {
  return word.size() > 1 && word.find_first_not_of('-') != std::string::npos &&
         word.starts_with('-');
}

bool has_commands(const CLI::App& app) {
  return !app.get_subcommands([](const CLI::App*) { return true; }).empty();
}

// The nearest option of the command, or of those above it, whose options it takes as well.
std::string nearest_option_above(const CLI::App& app, const std::string& word) {
  std::string name = nearest_option(app, word);
  for (const CLI::App* above = app.get_parent(); above != nullptr && name.empty();
       above = above->get_parent()) {
    name = nearest_option(*above, word);
  }
  return name;
}

std::string meant(const std::string& name) {
  return name.empty() ? "" : ", did you mean \"" + name + "\"?";
}

std::string what_is_wrong(const CLI::App& app, const CLI::Error& error) {
  std::string word = unknown_word(app);
  const bool is_above = word.empty();
  for (const CLI::App* above = app.get_parent(); above != nullptr && word.empty();
       above = above->get_parent()) {
    word = unknown_word(*above);
  }
  if (word.empty()) return error.what();
  if (is_option(word)) {
    // It stands in front of a command, which knows it, or nobody does.
    const bool known = is_above && app.get_option_no_throw(word) != nullptr;
    return "unknown option \"" + word + "\"" +
           (known ? ", accepted: behind \"" + app.get_name() + "\""
                  : meant(nearest_option_above(app, word)));
  }
  if (!has_commands(app)) return "unexpected argument \"" + word + "\"";
  return "unknown command \"" + word + "\"" + meant(nearest_command(app, word));
}

}  // namespace

std::string usage_error(const CLI::App& root, const CLI::Error& error) {
  const auto [app, above] = reached(root);
  const std::string wrong = what_is_wrong(*app, error);
  if (app->get_require_subcommand_min() != 0) {
    return wrong + "\n\n" + app->help(above.empty() ? "" : above.substr(0, above.size() - 1));
  }
  return wrong + " (see " + above + app->get_name() + " --help)";
}

}  // namespace encore
