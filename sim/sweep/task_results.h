// The results of a sweep: a directory with a file of JSON lines for each task that is done. Any
// number of processes, on any machines that share the directory, may work on it: each task is
// claimed by a lock that ends with its process. Why files and
// locks: docs/decisions/0346. Confined to one thread, but for claims.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "sim/report/report.h"
#include "sim/sweep/tasks.h"

namespace encore::sim {

// One line of results: {"schema", "task", "trace", "options": {...}, "result": {...}}.
inline constexpr std::uint64_t kResultsSchema = kReportSchema;

// A task that this process works on. Movable; released at its end.
class TaskClaim {
 public:
  TaskClaim(int fd, std::string path) : fd_(fd), path_(std::move(path)) {}
  TaskClaim(TaskClaim&& other) noexcept
      : fd_(std::exchange(other.fd_, -1)), path_(std::move(other.path_)) {}
  TaskClaim& operator=(TaskClaim&&) = delete;
  TaskClaim(const TaskClaim&) = delete;
  TaskClaim& operator=(const TaskClaim&) = delete;
  ~TaskClaim();

 private:
  int fd_;
  std::string path_;
};

class TaskResults {
 public:
  explicit TaskResults(std::string directory) : directory_(std::move(directory)) {}

  // Makes the directory where it is missing. Errors: it cannot be made.
  Result<void> make_directory() const;
  const std::string& directory() const { return directory_; }
  bool is_done(const Task& task) const;
  // Nothing: another process has the task, or it is done. Errors: no lock can be made there.
  Result<std::optional<TaskClaim>> claim(const Task& task) const;
  // Writes the file as a whole: a reader meets all rows or none. REQUIRES: the task is claimed.
  Result<void> write(const Task& task, const std::vector<Row>& rows) const;
  // The rows of a task that is done. Errors: the file is not what write() writes.
  Result<std::vector<Row>> read(const Task& task) const;

 private:
  std::string path_of(const Task& task) const { return directory_ + "/" + task.name + ".jsonl"; }

  std::string directory_;
};

// A line for one run of the task: `result` is its row of the replay's report.
Row result_row(const Task& task, std::size_t run, Row result);

// Reads JSON lines, or the rows of one report (encore-sim replay --json). `name` is for errors; a
// directory is that of a sweep.
Result<std::vector<Row>> parse_results(std::string_view text, const std::string& name);
Result<std::vector<Row>> read_results(const std::string& path);

// Comma-separated values with a header, of all keys that the rows have; lists of rows are left out.
std::string results_csv(const std::vector<Row>& rows);

}  // namespace encore::sim
