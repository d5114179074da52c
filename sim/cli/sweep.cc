// encore-sim sweep: replays with every combination of lists of options, on any number of processes
// and machines.
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <iterator>
#include <mutex>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "base/cli/output_file.h"
#include "sim/cli/commands.h"
#include "sim/cli/dask.h"
#include "sim/cli/parallel.h"
#include "sim/cli/replay_words.h"
#include "sim/cli/shell_words.h"
#include "sim/cli/sweep_report.h"
#include "sim/sweep/sweep_file.h"
#include "sim/sweep/task_results.h"
#include "sim/sweep/tasks.h"

namespace encore::sim {
namespace {

constexpr std::uint64_t kSweepThreadsMax = 1024;
constexpr auto kLookAgain = std::chrono::milliseconds(100);

// The words of a task: one thread, and the parts that comparisons need.
std::vector<std::string> words_of(const Task& task, std::uint64_t parts) {
  std::vector<std::string> words = {task.trace.path, "--threads=1"};
  const bool is_sampled = std::ranges::any_of(task.options, [](const auto& option) {
    return option.first == "sample" || option.first == "sample-objects";
  });
  if (!is_sampled && parts != 0) words.push_back("--parts=" + std::to_string(parts));
  words.insert(words.end(), task.words.begin(), task.words.end());
  return words;
}

// Adds to the runs' rows what other tables have of each run, as those of the disk.
void join_tables(std::vector<Table>& tables) {
  std::vector<Row>& rows = tables.front().rows;
  for (std::size_t t = 1; t < tables.size(); ++t) {
    const std::string& key = tables[t].key;
    if (key != "disk" && key != "fleet" && key != "probation") continue;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      for (const Field& field : tables[t].rows[i]) {
        if (find(rows[i], field.key) == nullptr) rows[i].push_back(field);
      }
    }
  }
}

std::string text_of(const Task& task) {
  std::string text = task.trace.name;
  for (const auto& [name, value] : task.options) text += " " + name + "=" + value;
  return text;
}

class SweepCommand final : public Command {
 public:
  std::string name() const override { return "sweep"; }
  std::string summary() const override {
    return "Replay traces with every combination of options in a file, on one machine or many";
  }
  std::string example() const override {
    return "encore-sim sweep policies.toml\n  "
           "encore-sim sweep policies.toml --list | sh\n  "
           "encore-sim sweep policies.toml --merge --svg front.svg";
  }
  void declare(Arguments& a) override {
    a.file("SWEEP", path_, "the sweep: a TOML file with traces, [fixed] and [sweep]");
    a.text("--out", directory_,
           "directory for the results, made if missing (default: the sweep's name with .results); "
           "tasks that have one are not run again");
    a.flag("--list", list_, "print a command for each task that has no result, and run none");
    a.text("--task", task_, "run the task of this name alone");
    a.flag("--merge", merge_, "run nothing: join the results that are there");
    a.text("--on", scheduler_,
           "run the tasks on a Dask cluster: the address of its scheduler, as "
           "tcp://127.0.0.1:8786 (needs python3-distributed)");
    a.number("--parts", parts_, "parts of the trace that intervals come from (0: none)",
             {.max = 1000});
    a.number("--threads", threads_, "tasks at a time (0: one per core)", {.max = kSweepThreadsMax});
  }

  Result<Outcome> run(const Context& context) override {
    if (static_cast<int>(list_) + static_cast<int>(merge_) + static_cast<int>(!task_.empty()) +
            static_cast<int>(!scheduler_.empty()) >
        1) {
      return fail("--list, --merge, --task and --on, accepted: one of them");
    }
    const auto sweep = read_sweep(path_);
    if (!sweep) return std::unexpected(sweep.error());
    auto tasks = plan_tasks(*sweep, parts_);
    if (!tasks) return std::unexpected(tasks.error());
    if (!task_.empty()) {
      std::erase_if(*tasks, [&](const Task& task) { return task.name != task_; });
      if (tasks->empty()) return fail("--task " + task_ + ": no such task; see --list");
    }
    if (auto fine = check_tasks(*sweep, *tasks); !fine) return std::unexpected(fine.error());
    if (directory_.empty()) directory_ = default_directory();
    const TaskResults results(directory_);
    if (list_) return list(*tasks, results, context);
    if (auto made = results.make_directory(); !made) return std::unexpected(made.error());
    if (!merge_) {
      auto done = scheduler_.empty() ? run_all(*tasks, results, context.monitor)
                                     : run_on_dask(*tasks, results, context.monitor);
      if (!done) return std::unexpected(done.error());
    }
    return merge(*sweep, *tasks, results);
  }

 private:
  std::string default_directory() const {
    constexpr std::string_view kEnding = ".toml";
    return path_.substr(0, path_.size() - (path_.ends_with(kEnding) ? kEnding.size() : 0)) +
           ".results";
  }

  Result<void> check_tasks(const Sweep& sweep, const std::vector<Task>& tasks) const {
    for (const Task& task : tasks) {
      const auto replay = ReplayWords::parse(words_of(task, parts_));
      if (replay) continue;
      const std::string place = place_of_fault(sweep, task, replay.error().message);
      return fail((place.empty() ? path_ : place) + ": " + text_of(task) + ": " +
                  replay.error().message);
    }
    return {};
  }

  // Paths are whole: workers are in other directories.
  std::string command_of(const Task& task) const {
    const std::string sweep = std::filesystem::absolute(path_).string();
    const std::string out = std::filesystem::absolute(directory_).string();
    std::string command = program_of() + " sweep " + shell_word(sweep) +
                          " --out=" + shell_word(out) + " --task=" + shell_word(task.name);
    if (parts_ != kParts) command += " --parts=" + std::to_string(parts_);
    return command;
  }

  // By its name where the search path has it, else this very file.
  static std::string program_of() {
    const char* const named = program_invocation_name;
    if (std::string_view(named).find('/') == std::string_view::npos) return "encore-sim";
    std::error_code error;
    const auto self = std::filesystem::read_symlink("/proc/self/exe", error);
    return error || !self.filename().string().starts_with("encore-sim") ? "encore-sim"
                                                                        : shell_word(self.string());
  }

  Result<Outcome> list(const std::vector<Task>& tasks, const TaskResults& results,
                       const Context& context) const {
    Outcome outcome = start();
    Table table{.key = "rows", .title = {}, .columns = {}, .rows = {}};
    for (const Task& task : tasks) {
      if (results.is_done(task)) continue;
      const std::string command = command_of(task);
      if (!context.json_to_out) context.out << command << "\n";
      table.rows.push_back({{"task", task.name}, {"command", command}});
    }
    outcome.out_is_taken = !context.json_to_out;
    outcome.report.notes = {std::to_string(table.rows.size()) + " of " +
                            std::to_string(tasks.size()) + " tasks have no result yet."};
    outcome.report.tables.push_back(std::move(table));
    return outcome;
  }

  // Runs the task, unless another process has it. False: another one has.
  Result<bool> run_one(const Task& task, const TaskResults& results, Monitor& whole) {
    const auto claim = results.claim(task);
    if (!claim) return std::unexpected(claim.error());
    if (!*claim) return results.is_done(task);
    Monitor monitor;
    monitor.whole = &whole;
    auto replay = ReplayWords::parse(words_of(task, parts_));
    auto outcome = replay ? replay->run(monitor) : std::unexpected(replay.error());
    if (monitor.stopped()) return false;
    if (!outcome) return fail(text_of(task) + ": " + outcome.error().message);
    std::vector<Row>& found = outcome->report.tables.front().rows;
    if (found.size() != std::max<std::size_t>(task.sizes.size(), 1)) {
      return fail(text_of(task) + ": " + std::to_string(found.size()) +
                  " rows; a value in [sweep] is a list itself: write its parts as values");
    }
    join_tables(outcome->report.tables);
    std::vector<Row> rows;
    for (std::size_t i = 0; i < found.size(); ++i) {
      rows.push_back(result_row(task, i, std::move(found[i])));
    }
    // A process replaces one file at a time.
    const std::lock_guard lock(writing_);
    auto written = results.write(task, rows);
    return written ? Result<bool>(true) : std::unexpected(written.error());
  }

  // In turns: tasks of another process are tried again, for it may be killed.
  Result<void> run_all(const std::vector<Task>& tasks, const TaskResults& results,
                       Monitor& monitor) {
    std::vector<const Task*> left;
    for (const Task& task : tasks) {
      if (!results.is_done(task)) left.push_back(&task);
    }
    monitor.begin("tasks", left.size());
    std::atomic<bool> gave_up = false;  // a fault, as a full disk, comes again
    while (!left.empty() && !monitor.stopped()) {
      std::vector<std::optional<Result<bool>>> ended(left.size());
      parallel_for(
          left.size(),
          [&](std::size_t i) {
            if (monitor.stopped() || gave_up) return;
            ended[i] = run_one(*left[i], results, monitor);
            if (!*ended[i]) gave_up = true;
            if (ended[i]->value_or(false)) monitor.advance(1);
          },
          static_cast<unsigned>(threads_));
      std::vector<const Task*> others;
      for (std::size_t i = 0; i < left.size(); ++i) {
        if (ended[i] && !*ended[i]) return std::unexpected(ended[i]->error());
        if (!ended[i] || !**ended[i]) others.push_back(left[i]);
      }
      left = std::move(others);
      if (!left.empty() && !monitor.stopped()) std::this_thread::sleep_for(kLookAgain);
    }
    return {};
  }

  Result<void> run_on_dask(const std::vector<Task>& tasks, const TaskResults& results,
                           Monitor& monitor) const {
    std::vector<DaskTask> left;
    for (const Task& task : tasks) {
      if (!results.is_done(task)) left.push_back({.name = task.name, .command = command_of(task)});
    }
    return run_on_scheduler(scheduler_, left, monitor);
  }

  Result<Outcome> merge(const Sweep& sweep, const std::vector<Task>& tasks,
                        const TaskResults& results) const {
    Outcome outcome = start();
    std::vector<Row> lines;
    std::size_t missing = 0;
    for (const Task& task : tasks) {
      if (!results.is_done(task)) {
        ++missing;
        continue;
      }
      auto rows = results.read(task);
      if (!rows) return std::unexpected(rows.error());
      std::ranges::move(*rows, std::back_inserter(lines));
    }
    if (task_.empty()) {
      std::string text;
      for (const Row& line : lines) text += to_json_line(line) + "\n";
      for (const auto& [file, content] :
           {std::pair("/results.jsonl", text), std::pair("/results.csv", results_csv(lines))}) {
        if (auto written = replace_file(directory_ + file, content); !written) {
          return std::unexpected(written.error());
        }
      }
    }
    fill_sweep_report(outcome.report, sweep, lines);
    outcome.report.notes.push_back(std::to_string(tasks.size() - missing) + " of " +
                                   std::to_string(tasks.size()) + " tasks, " +
                                   std::to_string(lines.size()) + " runs, in " + directory_ +
                                   (task_.empty() ? "/results.jsonl and .csv" : "") + ".");
    if (missing != 0) {
      outcome.report.notes.push_back("Missing: " + std::to_string(missing) +
                                     " tasks. --list prints them.");
      outcome.verdict = Verdict::kCheckFailed;
    }
    return outcome;
  }

  Outcome start() const {
    Outcome outcome;
    outcome.report.parameters = {
        {"sweep", path_}, {"out", directory_}, {"task", task_}, {"parts", parts_}};
    return outcome;
  }

  static constexpr std::uint64_t kParts = 16;

  std::string path_;
  std::string directory_;
  std::string task_;
  std::string scheduler_;
  bool list_ = false;
  bool merge_ = false;
  std::uint64_t parts_ = kParts;
  std::uint64_t threads_ = 0;
  std::mutex writing_;
};

}  // namespace

std::unique_ptr<Command> make_sweep_command() { return std::make_unique<SweepCommand>(); }

}  // namespace encore::sim
