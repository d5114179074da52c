#include "sim/cli/program.h"

#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <ostream>
#include <sstream>
#include <utility>

#include "base/check.h"
#include "base/cli/program.h"
#include "base/cli/progress.h"
#include "base/cpu_time.h"
#include "base/time.h"
#include "sim/cli/provenance.h"

namespace encore::sim {

namespace {

ProgramOutput output_of(const Streams& streams) { return {"encore-sim", streams.out, streams.err}; }

// Options of every command.
struct CommonOptions {
  std::string json;  // empty: a table; "-": standard output
  bool no_timing = false;
  std::string html;
  std::string svg;
  std::string png;
};

void declare_common(Arguments& arguments, CommonOptions& common) {
  arguments.optional_output(
      "--json", common.json,
      "write the report as JSON to standard output, or to FILE with --json=FILE");
  arguments.flag("--no-timing", common.no_timing,
                 "omit time and memory, so that one seed gives the same bytes");
  arguments.output("--html", common.html, "write an HTML page with interactive plots");
  arguments.output("--svg", common.svg, "write the plots to an SVG file (needs gnuplot)");
  arguments.output("--png", common.png, "write the plots to a PNG file (needs gnuplot)");
}

// The speed is that of all that the process did, reading and decoding included.
void measure(Report& report, Nanoseconds spent) {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const double cpu_seconds = process_cpu_seconds();
  Row row = {{"seconds", std::chrono::duration<double>(spent).count()},
             {"cpu_seconds", cpu_seconds},
             {"memory_peak_bytes", static_cast<std::uint64_t>(usage.ru_maxrss) * 1024}};
  if (report.simulated != 0 && cpu_seconds > 0) {
    row.push_back({"requests_per_cpu_second", static_cast<double>(report.simulated) / cpu_seconds});
  }
  report.machine.insert(report.machine.begin(), row.begin(), row.end());
}

Result<void> write_file(const std::string& path, const std::string& content) {
  errno = 0;
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << content;
  file.close();
  if (!file) {
    return fail("cannot write " + path +
                (errno == 0 ? "" : std::string(": ") + std::strerror(errno)));
  }
  return {};
}

Result<void> draw(const Report& report, std::string_view terminal, const std::string& path) {
  if (report.charts.empty()) {
    return fail("this report has no plots for " + path);
  }
  std::FILE* gnuplot = popen("gnuplot >/dev/null 2>&1", "w");
  if (gnuplot == nullptr) {
    return fail("cannot start gnuplot");
  }
  const std::string script = to_gnuplot(report, terminal, path);
  const bool written = std::fwrite(script.data(), 1, script.size(), gnuplot) == script.size();
  if (pclose(gnuplot) != 0 || !written) {
    return fail("gnuplot could not draw " + path +
                "; check that gnuplot is installed and the directory writable");
  }
  return {};
}

Result<void> write_plots(const Report& report, const CommonOptions& common) {
  if (!common.html.empty()) {
    const auto page = to_html(report, {.machine = !common.no_timing});
    auto written = page ? write_file(common.html, *page) : std::unexpected(page.error());
    if (!written) {
      return written;
    }
  }
  if (!common.svg.empty()) {
    if (auto drawn = draw(report, "svg", common.svg); !drawn) {
      return drawn;
    }
  }
  return common.png.empty() ? Result<void>{} : draw(report, "pngcairo", common.png);
}

// All that was asked for in files.
Result<void> write_files(const Report& report, const CommonOptions& common) {
  if (!common.json.empty() && common.json != "-") {
    const std::string json = to_json(report, {.machine = !common.no_timing});
    if (auto written = write_file(common.json, json); !written) {
      return written;
    }
  }
  return write_plots(report, common);
}

int write_report(const Outcome& outcome, const CommonOptions& common, const Streams& streams) {
  const JsonOptions options{.machine = !common.no_timing};
  const bool interrupted = outcome.report.interrupted;
  if (auto written = interrupted ? Result<void>{} : write_plots(outcome.report, common); !written) {
    streams.err << "encore-sim: " << written.error().message << "\n";
    return kExitTrouble;
  }
  errno = 0;
  if (common.json == "-") {
    streams.out << to_json(outcome.report, options);
  } else {
    (outcome.out_is_taken ? streams.err : streams.out) << to_text(outcome.report);
    if (!common.json.empty()) {
      if (auto written = write_file(common.json, to_json(outcome.report, options)); !written) {
        streams.err << "encore-sim: " << written.error().message << "\n";
        return kExitTrouble;
      }
    }
  }
  const int exit_code = check_written(output_of(streams), interrupted ? kExitInterrupted
                                                          : outcome.verdict == Verdict::kGood ? 0
                                                                                              : 1);
  if (exit_code != kExitTrouble && common.json.empty() && !common.no_timing) {
    streams.err << machine_text(outcome.report) << "\n";
  }
  return exit_code;
}

// The texts if the work does not notice the interrupt: that there is no result.
FinalOutput final_output(const std::string& command, const CommonOptions& common) {
  const std::string nothing = "interrupted in work that cannot be stopped: no results";
  Report report;
  report.command = command;
  report.interrupted = true;
  report.notes = {"I" + nothing.substr(1) + "."};
  const std::string json = common.json.empty() ? "" : to_json(report, {.machine = false});
  const bool to_out = common.json == "-";
  return {.out = to_out ? json : "",
          .err = "encore-sim " + command + ": " + nothing + "\n",
          .file_path = to_out ? "" : common.json,
          .file = json};
}

// The results before an interrupt, or an error caused by one.
Outcome cut_short(Result<Outcome> outcome) {
  if (!outcome) {
    const std::string why = outcome.error().message;
    outcome = Outcome{};
    outcome->report.notes = {why};
  }
  outcome->report.interrupted = true;
  outcome->report.paste.clear();
  outcome->report.notes.insert(outcome->report.notes.begin(),
                               "Interrupted: these results are incomplete.");
  return std::move(*outcome);
}

// A command with the pieces that must live as long as its App.
struct Entry {
  std::unique_ptr<Command> command;
  CLI::App* app = nullptr;
  std::unique_ptr<Arguments> arguments;
  CommonOptions common;
};

// Adds how the run can be repeated, if a page is to be written. False: the caller gave objects in
// the place of words, and files are not the data.
Result<void> note_provenance(Report& report, const std::vector<std::string>& words,
                             const Entry& entry, bool is_complete = true) {
  if (entry.common.html.empty()) {
    return {};
  }
  auto provenance =
      provenance_of(words, is_complete ? entry.arguments->inputs() : std::vector<std::string>{});
  if (!provenance) {
    return std::unexpected(provenance.error());
  }
  report.provenance = std::move(*provenance);
  report.provenance.is_complete = is_complete;
  return {};
}

// `words`: the whole command line.
int run_command(const Entry& entry, const std::vector<std::string>& words, const Streams& streams,
                Monitor& monitor, Interrupt* interrupt) {
  Command& command = *entry.command;
  const Arguments& arguments = *entry.arguments;
  const CommonOptions& common = entry.common;
  if (auto fine = arguments.check_outputs(); !fine) {
    streams.err << "encore-sim " << command.name() << ": " << fine.error().message << "\n";
    return kExitTrouble;
  }
  if (interrupt != nullptr) {
    interrupt->set_final_output(final_output(command.name(), common));
  }
  const MonotonicTime started = monotonic_now();
  Result<Outcome> outcome = [&] {
    const ProgressBar bar(monitor, command.name());
    return command.run({.monitor = monitor,
                        .arguments = arguments,
                        .out = streams.out,
                        .json_to_out = common.json == "-"});
  }();
  if (monitor.heard) {
    outcome = cut_short(std::move(outcome));
  }
  if (!outcome) {
    streams.err << "encore-sim " << command.name() << ": " << outcome.error().message << "\n";
    return kExitTrouble;
  }
  outcome->report.command = command.name();
  measure(outcome->report, monotonic_now() - started);
  if (!outcome->report.interrupted) {
    if (auto noted = note_provenance(outcome->report, words, entry); !noted) {
      streams.err << "encore-sim " << command.name() << ": " << noted.error().message << "\n";
      return kExitTrouble;
    }
  }
  if (interrupt != nullptr) {
    interrupt->writing();
  }
  return write_report(*outcome, common, streams);
}

std::string summary_of_group(std::string_view group) {
  return group == "theory"     ? "Print formulas of Bloom filters and rotating pairs as tables"
         : group == "generate" ? "Write a synthetic trace"
                               : "";
}

// The App of "theory fill" hangs below that of "theory".
CLI::App& app_for(CLI::App& root, const Command& command) {
  const std::string name = command.name();
  const std::size_t space = name.find(' ');
  CLI::App* parent = &root;
  if (space != std::string::npos) {
    const std::string group = name.substr(0, space);
    const auto found = root.get_subcommands(
        [&](const CLI::App* candidate) { return candidate->get_name() == group; });
    parent = found.empty() ? nullptr : found.front();
    if (parent == nullptr) {
      parent = root.add_subcommand(group, summary_of_group(group));
      parent->require_subcommand(1);
      parent->footer("Example:\n  " + command.example());
    }
  }
  CLI::App* app = parent->add_subcommand(name.substr(space + 1), command.summary());
  app->footer("Example:\n  " + command.example());
  return *app;
}

// All commands below one App.
class Commands {
 public:
  Commands() : root_("encore-sim: simulate admission and caching of encore", "encore-sim") {
    root_.require_subcommand(1);
    root_.set_version_flag("--version", "encore-sim " ENCORE_VERSION);
    root_.footer(
        "Example:\n  encore-sim blocks --hashes 1..8\nexit codes: 0 done, 1 a check failed, 2 "
        "wrong usage or input, 130 interrupted");
    for (auto& command : all_commands()) {
      Entry entry;
      entry.app = &app_for(root_, *command);
      entry.arguments = std::make_unique<Arguments>(*entry.app);
      entry.command = std::move(command);
      entries_.push_back(std::move(entry));
    }
    // Only now: the options keep references into the entries.
    for (Entry& entry : entries_) {
      entry.command->declare(*entry.arguments);
      declare_common(*entry.arguments, entry.common);
    }
  }

  // Nothing: a command was parsed. Else all is said, and this is the exit code.
  std::optional<int> parse(std::vector<std::string> words, const ProgramOutput& output) {
    std::vector<const CLI::App*> apps;
    std::ranges::transform(entries_, std::back_inserter(apps), &Entry::app);
    return parse_command_line(root_, apps, std::move(words), output);
  }
  // REQUIRES: one was.
  const Entry& parsed() const {
    const auto found =
        std::ranges::find_if(entries_, [](const Entry& entry) { return entry.app->parsed(); });
    ENCORE_CHECK(found != entries_.end(), "the App requires a command");
    return *found;
  }

 private:
  CLI::App root_;
  std::vector<Entry> entries_;
};

}  // namespace

int run_program(const std::vector<std::string>& arguments, const Streams& streams, Monitor& monitor,
                Interrupt* interrupt) {
  Commands commands;
  if (const auto over = commands.parse(arguments, output_of(streams))) {
    return *over;
  }
  return run_command(commands.parsed(), arguments, streams, monitor, interrupt);
}

Result<Report> call_command(const std::vector<std::string>& arguments, const Given& given,
                            Monitor& monitor) {
  std::ostringstream out;
  std::ostringstream err;
  Commands commands;
  if (commands.parse(arguments, output_of({out, err}))) {
    const std::string said = err.str().empty() ? out.str() : err.str();
    return fail(said.substr(0, said.find_last_not_of('\n') + 1));
  }
  const Entry& entry = commands.parsed();
  if (auto fine = entry.arguments->check_outputs(); !fine) {
    return std::unexpected(fine.error());
  }
  const MonotonicTime started = monotonic_now();
  auto outcome = entry.command->run({.monitor = monitor,
                                     .arguments = *entry.arguments,
                                     .out = out,
                                     .json_to_out = true,
                                     .given = &given});
  if (!outcome) {
    return std::unexpected(outcome.error());
  }
  Report& report = outcome->report;
  report.command = entry.command->name();
  report.interrupted = monitor.heard;
  measure(report, monotonic_now() - started);
  if (!report.interrupted) {
    if (auto noted = note_provenance(report, arguments, entry, !given.open && !given.own); !noted) {
      return std::unexpected(noted.error());
    }
    if (auto written = write_files(report, entry.common); !written) {
      return std::unexpected(written.error());
    }
  }
  return std::move(report);
}

}  // namespace encore::sim
