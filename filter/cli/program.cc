#include "filter/cli/program.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <iterator>
#include <ostream>
#include <utility>

#include "base/cli/program.h"
#include "base/cli/progress.h"
#include "filter/cli/command.h"

namespace encore::filter {
namespace {

ProgramOutput output_of(const Streams& streams) {
  return {"encore-filter", streams.out, streams.err};
}

// A command with the pieces that must live as long as its App.
struct Entry {
  std::unique_ptr<Command> command;
  CLI::App* app = nullptr;
  std::unique_ptr<Arguments> arguments;
};

std::string indented(const std::string& lines) {
  std::string out;
  for (std::size_t start = 0; start < lines.size();) {
    const std::size_t end = std::min(lines.find('\n', start), lines.size());
    out += "\n  " + lines.substr(start, end - start);
    start = end + 1;
  }
  return out;
}

std::vector<Entry> entries_of(CLI::App& root) {
  std::vector<Entry> entries;
  for (auto& command : all_commands()) {
    Entry entry;
    entry.app = root.add_subcommand(command->name(), command->summary());
    entry.app->footer("Example:" + indented(command->examples()));
    entry.arguments = std::make_unique<Arguments>(*entry.app);
    entry.command = std::move(command);
    entries.push_back(std::move(entry));
  }
  // Only now: the options keep references into the entries.
  for (Entry& entry : entries) {
    entry.command->declare(*entry.arguments);
  }
  return entries;
}

int run_command(Command& command, const Arguments& arguments, const Streams& streams) {
  const auto refused = [&](const Error& error) {
    // Output so far comes before the message about the rest.
    streams.out.flush();
    streams.err << "encore-filter " << command.name() << ": " << error.message << "\n";
    return kExitTrouble;
  };
  if (auto fine = arguments.check_outputs(); !fine) {
    return refused(fine.error());
  }
  errno = 0;
  Monitor monitor;
  const Result<SearchOutcome> found = [&] {
    const ProgressBar bar(monitor, command.name());
    return command.run({.monitor = monitor,
                        .arguments = arguments,
                        .in = streams.in,
                        .out = streams.out,
                        .err = streams.err});
  }();
  if (!found) {
    return refused(found.error());
  }
  return check_written(output_of(streams), *found == SearchOutcome::kSomething ? 0 : 1);
}

}  // namespace

std::vector<std::unique_ptr<Command>> all_commands() {
  std::vector<std::unique_ptr<Command>> all;
  all.push_back(make_build_command());
  all.push_back(make_add_command());
  all.push_back(make_remove_command());
  all.push_back(make_test_command());
  all.push_back(make_info_command());
  for (auto& command : make_combine_commands()) {
    all.push_back(std::move(command));
  }
  all.push_back(make_convert_command());
  all.push_back(make_fetch_command());
  all.push_back(make_sizing_command());
  all.push_back(make_join_command());
  all.push_back(make_hashes_command());
  return all;
}

int run_program(std::vector<std::string> arguments, const Streams& streams) {
  CLI::App root("encore-filter: build Bloom filters from keys, one per line, and test keys",
                "encore-filter");
  root.require_subcommand(1);
  root.set_version_flag("--version", "encore-filter " ENCORE_VERSION);
  root.footer(
      "Example:\n  seq 1000 | encore-filter build -o thousand.enc\nexit codes, as grep's: 0 a "
      "match, or done, 1 no match, 2 an error");
  std::vector<Entry> entries = entries_of(root);
  std::vector<const CLI::App*> apps;
  std::ranges::transform(entries, std::back_inserter(apps), &Entry::app);
  const ProgramOutput output = output_of(streams);
  if (const auto over = parse_command_line(root, apps, std::move(arguments), output)) {
    return *over;
  }
  for (Entry& entry : entries) {
    if (entry.app->parsed()) {
      return run_command(*entry.command, *entry.arguments, streams);
    }
  }
  return kExitTrouble;
}

}  // namespace encore::filter
