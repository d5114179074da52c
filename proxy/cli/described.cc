#include "proxy/cli/described.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "proxy/ca/cli/program.h"
#include "proxy/cli/command.h"
#include "proxy/disk/cli/program.h"

namespace encore::cli {
namespace {

using Json = nlohmann::ordered_json;

// A parser adds the range to the word: "INT:INT in [1 - 36500]".
std::string value_of(const std::string& type) {
  if (type.starts_with("INT") || type.starts_with("UINT")) return "N";
  return type;
}

DescribedOption describe(const CLI::Option& option) {
  DescribedOption described;
  for (const std::string& name : option.get_snames()) described.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) described.names.push_back("--" + name);
  if (described.names.empty()) described.names = {option.get_name(true)};
  if (option.get_items_expected_max() != 0) described.value = value_of(option.get_type_name());
  described.text = option.get_description();
  described.usual = option.get_default_str();
  described.repeated = option.get_items_expected_max() > 1 ||
                       option.get_multi_option_policy() == CLI::MultiOptionPolicy::TakeAll;
  described.required = option.get_required();
  return described;
}

DescribedCommand describe_app(const CLI::App& app, const std::string& path) {
  DescribedCommand described;
  described.path = path;
  described.text = app.get_description();
  described.footer = app.get_footer();
  described.hidden = !path.empty() && app.get_group().empty();
  for (const CLI::Option* option : app.get_options()) {
    auto& list = option->nonpositional() ? described.options : described.arguments;
    list.push_back(describe(*option));
  }
  const auto any = [](const CLI::App*) { return true; };
  for (const CLI::App* below : app.get_subcommands(any)) {
    described.commands.push_back(
        describe_app(*below, (path.empty() ? "" : path + " ") + below->get_name()));
  }
  return described;
}

Json json_of(const DescribedOption& option) {
  Json json = {{"names", option.names}, {"text", option.text}};
  if (!option.value.empty()) json["value"] = option.value;
  if (!option.usual.empty()) json["default"] = option.usual;
  if (option.repeated) json["repeated"] = true;
  if (option.required) json["required"] = true;
  return json;
}

Json to_json(const DescribedCommand& command) {
  Json json = {{"path", command.path}, {"text", command.text}};
  if (command.hidden) json["hidden"] = true;
  const auto list = [&](const char* name, const auto& items, auto&& make) {
    Json out = Json::array();
    for (const auto& item : items) out.push_back(make(item));
    json[name] = out;
  };
  list("arguments", command.arguments, [](const auto& each) { return json_of(each); });
  list("options", command.options, [](const auto& each) { return json_of(each); });
  json["footer"] = command.footer;
  list("commands", command.commands, [](const auto& each) { return to_json(each); });
  return json;
}

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

std::string usage_of(const DescribedCommand& command) {
  std::string text = "encore " + command.path;
  for (const DescribedOption& each : command.arguments) {
    const std::string name = each.names.front() + (each.repeated ? "..." : "");
    text += each.required ? " " + name : " [" + name + "]";
  }
  return text + (command.options.empty() ? "" : " [OPTION...]");
}

bool is_named(const DescribedOption& option, std::string_view name) {
  return std::ranges::find(option.names, name) != option.names.end();
}

bool is_help(const DescribedOption& option) { return is_named(option, "--help"); }

// True if all commands that ask a proxy have it.
bool is_common(const DescribedOption& option) {
  return std::ranges::any_of(proxy_options(),
                             [&](const OptionSpec& each) { return is_named(option, each.name); });
}

bool has_option(const DescribedCommand& command, std::string_view name) {
  return std::ranges::any_of(command.options,
                             [&](const DescribedOption& each) { return is_named(each, name); });
}

void append_list(const std::vector<DescribedOption>& all, std::string& out) {
  if (!all.empty()) out += "\n";
  for (const DescribedOption& each : all) {
    const bool has_value = !each.value.empty() && each.names.front().starts_with('-');
    out += "- `" + joined(each.names) + (has_value ? " " + each.value : "") + "`: " + each.text +
           (each.usual.empty() ? "" : " (default: `" + each.usual + "`)") + "\n";
  }
}

void append_options(const DescribedCommand& command, std::string& out) {
  std::vector<DescribedOption> all = command.arguments;
  all.insert(all.end(), command.options.begin(), command.options.end());
  const bool asks = has_option(command, "--admin");
  std::erase_if(all, [asks](const DescribedOption& each) {
    return is_help(each) || (asks && is_common(each));
  });
  append_list(all, out);
}

void append_section(const DescribedCommand& command, std::string& out) {
  if (command.hidden) return;
  if (command.commands.empty()) {
    out +=
        "### encore " + command.path + "\n\n`" + usage_of(command) + "`: " + command.text + ".\n";
    append_options(command, out);
    out += "\n";
  }
  for (const DescribedCommand& below : command.commands) append_section(below, out);
}

}  // namespace

DescribedCommand describe(const CLI::App& root) {
  DescribedCommand program = describe_app(root, "");
  for (DescribedCommand& command : program.commands) {
    const auto with_parser = [&command](const CLI::App& app) {
      command = describe_app(app, command.path);
      command.hidden = false;
    };
    if (command.path == "disk") disk::with_parser(with_parser);
    if (command.path == "ca") ca::with_parser(with_parser);
  }
  return program;
}

std::string json_of(const DescribedCommand& program) {
  Json json = {{"name", "encore"}, {"version", ENCORE_VERSION}};
  json.update(to_json(program));
  constexpr int kIndent = 1;
  return json.dump(kIndent) + "\n";
}

std::string markdown_of(const DescribedCommand& program) {
  std::string out = "### Commands that ask a proxy\n";
  std::vector<DescribedOption> common;
  for (const OptionSpec& each : proxy_options()) {
    common.push_back({.names = {std::string(each.name)},
                      .value = std::string(each.value),
                      .text = std::string(each.text),
                      .usual = {}});
  }
  append_list(common, out);
  out += "\n";
  for (const DescribedCommand& command : program.commands) append_section(command, out);
  while (out.ends_with("\n\n")) out.pop_back();
  return out;
}

}  // namespace encore::cli
