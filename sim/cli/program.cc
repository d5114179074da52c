#include "sim/cli/program.h"

#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <ostream>
#include <sstream>

#include "base/time.h"
#include "sim/cli/cpu_time.h"
#include "sim/cli/progress.h"
#include "sim/cli/usage_error.h"

namespace encore::sim {

namespace {

// CLI11 would wrap negative numbers, and read 010 as eight.
template <typename Number, typename Range, typename Parse>
CLI::Option* add_number(CLI::App& app, const std::string& name, Number& value,
                        const std::string& help, const Range& range, Parse parse) {
  std::ostringstream shown;
  shown << value;
  return app
      .add_option_function<std::string>(
          name,
          [&value, name, range, parse](const std::string& text) {
            const auto number = parse(name, text, range);
            if (!number) {
              throw CLI::ValidationError(number.error().message);
            }
            value = *number;
          },
          help)
      ->default_str(shown.str());
}

}  // namespace

void Arguments::number(const std::string& name, std::uint64_t& value, const std::string& help,
                       const NumberRange& range) {
  add_number(app_, name, value, help, range, parse_number)->type_name("N");
}
void Arguments::real(const std::string& name, double& value, const std::string& help,
                     const RealRange& range) {
  add_number(app_, name, value, help, range, parse_real)->type_name("X");
}
void Arguments::text(const std::string& name, std::string& value, const std::string& help) {
  app_.add_option(name, value, help)->capture_default_str()->type_name("TEXT");
}
void Arguments::flag(const std::string& name, bool& value, const std::string& help) {
  app_.add_flag(name, value, help);
}
void Arguments::optional_text(const std::string& name, std::string& value, const std::string& alone,
                              const std::string& help) {
  app_.add_flag(name + "{" + alone + "}", value, help);
}
void Arguments::output(const std::string& name, std::string& value, const std::string& help) {
  text(name, value, help);
  outputs_.push_back({name, &value});
}
// --name alone is "-"; a file is --name=FILE.
void Arguments::optional_output(const std::string& name, std::string& value,
                                const std::string& help) {
  optional_text(name, value, "-", help);
  outputs_.push_back({name, &value});
}
void Arguments::files(const std::string& name, std::vector<std::string>& value,
                      const std::string& help) {
  app_.add_option(name, value, help)->required()->type_name("FILE");
  inputs_ = &value;
}
void Arguments::file(const std::string& name, std::string& value, const std::string& help) {
  app_.add_option(name, value, help)->required()->type_name("FILE");
  input_.push_back(&value);
}
bool Arguments::given(const std::string& name) const {
  const CLI::Option* option = app_.get_option_no_throw(name);
  return option != nullptr && option->count() != 0;
}

namespace {

// Links and other ways to write the same path are seen through; devices and pipes are nothing to
// lose.
bool is_same_file(const std::string& a, const std::string& b) {
  namespace fs = std::filesystem;
  std::error_code error;
  if (fs::exists(a, error) && fs::exists(b, error)) {
    return fs::is_regular_file(a, error) && fs::equivalent(a, b, error);
  }
  return fs::weakly_canonical(a, error) == fs::weakly_canonical(b, error);
}

}  // namespace

Result<void> Arguments::check_outputs() const {
  std::vector<std::string> inputs = inputs_ != nullptr ? *inputs_ : std::vector<std::string>{};
  for (const std::string* path : input_) {
    inputs.push_back(*path);
  }
  for (std::size_t i = 0; i < outputs_.size(); ++i) {
    const auto& [name, path] = outputs_[i];
    if (path->empty() || *path == "-") {
      continue;
    }
    for (const std::string& input : inputs) {
      if (is_same_file(*path, input)) {
        return fail(name + " \"" + *path + "\" is read as well, accepted: another file");
      }
    }
    for (std::size_t other = 0; other < i; ++other) {
      if (!outputs_[other].path->empty() && is_same_file(*path, *outputs_[other].path)) {
        return fail(name + " \"" + *path + "\" is that of " + outputs_[other].name +
                    " as well, accepted: another file");
      }
    }
  }
  return {};
}

namespace {

// What every command takes.
struct CommonOptions {
  std::string json;  // empty: a table; "-": standard output
  bool no_timing = false;
  std::string html;
  std::string svg;
  std::string png;
};

void declare_common(Arguments& arguments, CommonOptions& common) {
  arguments.optional_output("--json", common.json,
                            "write the report as JSON, to standard output or --json=FILE");
  arguments.flag("--no-timing", common.no_timing,
                 "leave out time and memory: the same seed then gives the same bytes");
  arguments.output("--html", common.html, "write a page with interactive plots");
  arguments.output("--svg", common.svg, "draw the plots into an SVG file, by gnuplot");
  arguments.output("--png", common.png, "draw the plots into a PNG file, by gnuplot");
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
    return fail("this report has no plots to draw into " + path);
  }
  std::FILE* gnuplot = popen("gnuplot >/dev/null 2>&1", "w");
  if (gnuplot == nullptr) {
    return fail("cannot start gnuplot");
  }
  const std::string script = to_gnuplot(report, terminal, path);
  const bool written = std::fwrite(script.data(), 1, script.size(), gnuplot) == script.size();
  if (pclose(gnuplot) != 0 || !written) {
    return fail("gnuplot could not draw " + path + " (is it installed, is the place writable?)");
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

// The exit code, or 2 if something of what was printed did not get out: nobody must take a part of
// a report for the whole. errno was 0 before.
int check_written(const Streams& streams, int exit_code) {
  streams.out.flush();
  if (streams.out) {
    return exit_code;
  }
  streams.err << "encore-sim: cannot write to standard output"
              << (errno == 0 ? "" : std::string(": ") + std::strerror(errno)) << "\n";
  return 2;
}

int write_report(const Outcome& outcome, const CommonOptions& common, const Streams& streams) {
  const JsonOptions options{.machine = !common.no_timing};
  const bool interrupted = outcome.report.interrupted;
  if (auto written = interrupted ? Result<void>{} : write_plots(outcome.report, common); !written) {
    streams.err << "encore-sim: " << written.error().message << "\n";
    return 2;
  }
  errno = 0;
  if (common.json == "-") {
    streams.out << to_json(outcome.report, options);
  } else {
    (outcome.out_is_taken ? streams.err : streams.out) << to_text(outcome.report);
    if (!common.json.empty()) {
      if (auto written = write_file(common.json, to_json(outcome.report, options)); !written) {
        streams.err << "encore-sim: " << written.error().message << "\n";
        return 2;
      }
    }
  }
  const int exit_code = check_written(streams, interrupted ? kExitInterrupted
                                               : outcome.verdict == Verdict::kGood ? 0
                                                                                   : 1);
  if (exit_code != 2 && common.json.empty() && !common.no_timing) {
    streams.err << machine_text(outcome.report) << "\n";
  }
  return exit_code;
}

// Where the work does not notice the interrupt: that there is nothing.
LastWords last_words(const std::string& command, const CommonOptions& common) {
  const std::string nothing = "interrupted where it could not be stopped: nothing is known";
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

// What was found before an interrupt, or an error that came of one.
Outcome cut_short(Result<Outcome> outcome) {
  if (!outcome) {
    const std::string why = outcome.error().message;
    outcome = Outcome{};
    outcome->report.notes = {why};
  }
  outcome->report.interrupted = true;
  outcome->report.paste.clear();
  outcome->report.notes.insert(outcome->report.notes.begin(),
                               "Interrupted: what stands here rests on what was done by then.");
  return std::move(*outcome);
}

int run_command(Command& command, const Arguments& arguments, const CommonOptions& common,
                const Streams& streams, Monitor& monitor, Interrupt* interrupt) {
  if (auto fine = arguments.check_outputs(); !fine) {
    streams.err << "encore-sim " << command.name() << ": " << fine.error().message << "\n";
    return 2;
  }
  if (interrupt != nullptr) {
    interrupt->set_last_words(last_words(command.name(), common));
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
    return 2;
  }
  outcome->report.command = command.name();
  measure(outcome->report, monotonic_now() - started);
  if (interrupt != nullptr) {
    interrupt->writing();
  }
  return write_report(*outcome, common, streams);
}

// A command with the pieces that must live as long as its App.
struct Entry {
  std::unique_ptr<Command> command;
  CLI::App* app = nullptr;
  std::unique_ptr<Arguments> arguments;
  CommonOptions common;
};

std::string summary_of_group(std::string_view group) {
  return group == "theory"     ? "The formulas of Bloom filters and rotating pairs, as tables"
         : group == "generate" ? "Synthetic traces"
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

// "--bits=" gives an empty value, which CLI11 would take for none at all.
void split_empty_values(const std::vector<Entry>& entries, std::vector<std::string>& arguments) {
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (!arguments[i].starts_with("--") || !arguments[i].ends_with('=')) {
      continue;
    }
    const std::string name = arguments[i].substr(0, arguments[i].size() - 1);
    const bool takes_value = std::ranges::any_of(entries, [&](const Entry& entry) {
      const CLI::Option* option = entry.app->get_option_no_throw(name);
      return option != nullptr && option->get_items_expected_max() > 0;
    });
    if (takes_value) {
      arguments[i] = name;
      arguments.insert(arguments.begin() + static_cast<std::ptrdiff_t>(++i), "");
    }
  }
}

}  // namespace

int run_program(std::vector<std::string> arguments, const Streams& streams, Monitor& monitor,
                Interrupt* interrupt) {
  CLI::App root("encore-sim: simulates the admission and caching of encore", "encore-sim");
  root.require_subcommand(1);
  root.set_version_flag("--version", "encore-sim " ENCORE_VERSION);
  root.footer(
      "Example:\n  encore-sim blocks --hashes 1..8\nexit codes: 0 fine, 1 a check failed, "
      "2 wrong use or input, 130 interrupted");
  std::vector<Entry> entries;
  for (auto& command : all_commands()) {
    Entry entry;
    entry.app = &app_for(root, *command);
    entry.arguments = std::make_unique<Arguments>(*entry.app);
    entry.command = std::move(command);
    entries.push_back(std::move(entry));
  }
  // Only now: the options keep references into the entries.
  for (Entry& entry : entries) {
    entry.command->declare(*entry.arguments);
    declare_common(*entry.arguments, entry.common);
  }
  split_empty_values(entries, arguments);
  try {
    std::ranges::reverse(arguments);
    root.parse(std::move(arguments));
  } catch (const CLI::Success& asked) {
    errno = 0;
    root.exit(asked, streams.out, streams.err);
    return check_written(streams, 0);
  } catch (const CLI::ParseError& error) {
    streams.err << "encore-sim: " << usage_error(root, error) << "\n";
    return 2;
  }
  for (Entry& entry : entries) {
    if (entry.app->parsed()) {
      return run_command(*entry.command, *entry.arguments, entry.common, streams, monitor,
                         interrupt);
    }
  }
  return 2;
}

}  // namespace encore::sim
