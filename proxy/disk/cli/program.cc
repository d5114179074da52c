#include "proxy/disk/cli/program.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cerrno>
#include <iostream>
#include <memory>
#include <utility>

#include "base/cli/program.h"
#include "base/cli/progress.h"
#include "base/time.h"
#include "proxy/disk/cli/command.h"

namespace encore::disk {
namespace {

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
  for (const auto make : {make_list_command, make_verify_command, make_stat_command}) {
    Entry entry;
    entry.command = make();
    entry.app = root.add_subcommand(entry.command->name(), entry.command->summary());
    entry.app->footer("Example:" + indented(entry.command->examples()));
    entry.arguments = std::make_unique<Arguments>(*entry.app);
    entries.push_back(std::move(entry));
  }
  // Only now: the options keep references into the entries.
  for (Entry& entry : entries) entry.command->declare(*entry.arguments);
  return entries;
}

struct Parser {
  Parser() {
    root.require_subcommand(1);
    root.footer(
        "Example:\n  encore disk stat /var/cache/encore/disk\n"
        "exit codes: 0 done, 1 verify found damage, 2 wrong usage or an unreadable disk");
    entries = entries_of(root);
  }
  CLI::App root{"encore disk: inspect disks of the cache, in use or not, without writing",
                "encore disk"};
  std::vector<Entry> entries;
};

int run_command(Command& command, const ProgramOutput& output, WallSeconds now) {
  errno = 0;
  Monitor monitor;
  const Result<Verdict> verdict = [&] {
    const ProgressBar bar(monitor, command.name());
    return command.run({.monitor = monitor, .now = now, .out = output.out, .err = output.err});
  }();
  if (!verdict) {
    // Output so far comes before the message about the rest.
    output.out.flush();
    output.err << output.program << " " << command.name() << ": " << verdict.error().message
               << "\n";
    return kExitTrouble;
  }
  return check_written(output, static_cast<int>(*verdict));
}

}  // namespace

Verdict look_at_each(const std::vector<std::string>& paths, const std::string& command,
                     const Context& context, const LookAt& look) {
  Verdict worst = Verdict::kFine;
  for (const std::string& path : paths) {
    const auto disk = InspectedDisk::open(path);
    const Result<Verdict> seen = disk ? look(path, *disk) : std::unexpected(disk.error());
    if (!seen) {
      context.out.flush();
      context.err << "encore disk " << command << ": " << seen.error().message << "\n";
    }
    worst = std::max(worst, seen.value_or(Verdict::kUnreadable));
  }
  return worst;
}

int run_program(std::vector<std::string> words, const Streams& streams, WallSeconds now) {
  Parser parser;
  std::vector<const CLI::App*> apps;
  for (const Entry& entry : parser.entries) apps.push_back(entry.app);
  const ProgramOutput output{"encore disk", streams.out, streams.err};
  if (const auto over = parse_command_line(parser.root, apps, std::move(words), output)) {
    return *over;
  }
  for (Entry& entry : parser.entries) {
    if (entry.app->parsed()) return run_command(*entry.command, output, now);
  }
  return kExitTrouble;
}

void with_parser(const std::function<void(const CLI::App&)>& look) {
  const Parser parser;
  look(parser.root);
}

int disk_main(std::vector<std::string> words) {
  begin_process("encore disk");
  std::ios::sync_with_stdio(false);
  words.erase(words.begin());
  const auto now = std::chrono::floor<std::chrono::seconds>(wall_now().time_since_epoch()).count();
  return run_program(std::move(words), {std::cout, std::cerr}, static_cast<WallSeconds>(now));
}

}  // namespace encore::disk
