#include "sim/sweep/task_results.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "base/cli/output_file.h"
#include "sim/sweep/read_file.h"

namespace encore::sim {
namespace {

bool is_schema(const Row& row) {
  const Value* const schema = find(row, "schema");
  const auto* const version = schema == nullptr ? nullptr : std::get_if<std::uint64_t>(schema);
  return version != nullptr && *version == kResultsSchema;
}

bool has_row(const Row& row, std::string_view key) {
  const Value* const value = find(row, key);
  return value != nullptr && std::holds_alternative<Row>(*value);
}

Result<Row> parse_line(std::string_view line, const std::string& name, std::size_t number) {
  auto row = row_of_json(line);
  const std::string place = name + ":" + std::to_string(number) + ": ";
  if (!row) {
    return fail(place + row.error().message + "; accepted: lines of encore-sim sweep");
  }
  if (!is_schema(*row) || !has_row(*row, "options") || !has_row(*row, "result")) {
    return fail(place + "no result of schema " + std::to_string(kResultsSchema) +
                "; accepted: lines of encore-sim sweep");
  }
  return row;
}

// Each key of the row with its place in the table: options before what was found.
void append_cells(const Row& row, std::vector<std::pair<std::string, std::string>>& cells);

struct Cell {
  std::string operator()(std::monostate) const { return {}; }
  std::string operator()(bool value) const { return value ? "true" : "false"; }
  std::string operator()(std::int64_t value) const { return std::to_string(value); }
  std::string operator()(std::uint64_t value) const { return std::to_string(value); }
  std::string operator()(double value) const {
    return std::isfinite(value) ? to_json_line({{"v", value}}).substr(5, std::string::npos) : "";
  }
  std::string operator()(const std::string& value) const {
    if (value.find_first_of(",\"\r\n") == std::string::npos) return value;
    std::string quoted = "\"";
    for (const char c : value) quoted += c == '"' ? "\"\"" : std::string(1, c);
    return quoted + "\"";
  }
  std::string operator()(const Row& /*row*/) const { return {}; }
  std::string operator()(const std::vector<Row>& /*rows*/) const { return {}; }
};

std::string cell_of(const Value& value) {
  std::string text = std::visit(Cell{}, value);
  if (std::holds_alternative<double>(value) && text.ends_with('}')) text.pop_back();
  return text;
}

void append_cells(const Row& row, std::vector<std::pair<std::string, std::string>>& cells) {
  for (const Field& field : row) {
    if (const auto* inner = std::get_if<Row>(&field.value)) {
      append_cells(*inner, cells);
    } else if (!std::holds_alternative<std::vector<Row>>(field.value) &&
               std::ranges::find(cells, field.key, &std::pair<std::string, std::string>::first) ==
                   cells.end()) {
      cells.emplace_back(field.key, cell_of(field.value));
    }
  }
}

}  // namespace

TaskClaim::~TaskClaim() {
  if (fd_ < 0) return;
  // Before the lock ends: a process that waits for this file finds the result, or makes another
  // file.
  ::unlink(path_.c_str());
  ::close(fd_);
}

Result<void> TaskResults::make_directory() const {
  std::error_code error;
  std::filesystem::create_directories(directory_, error);
  if (error) return fail("cannot make " + directory_ + ": " + error.message());
  return {};
}

bool TaskResults::is_done(const Task& task) const {
  return ::access(path_of(task).c_str(), F_OK) == 0;
}

Result<std::optional<TaskClaim>> TaskResults::claim(const Task& task) const {
  const std::string path = directory_ + "/" + task.name + ".lock";
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (fd < 0) return fail("cannot write " + path + ": " + std::strerror(errno));
  if (::flock(fd, LOCK_EX | LOCK_NB) != 0) {
    const int error = errno;
    ::close(fd);
    if (error == EWOULDBLOCK) return std::nullopt;
    return fail("cannot lock " + path + ": " + std::strerror(error));
  }
  // The process that had it may have removed the file between the two calls.
  struct stat locked{};
  struct stat there{};
  if (::fstat(fd, &locked) != 0 || ::stat(path.c_str(), &there) != 0 ||
      locked.st_ino != there.st_ino) {
    ::close(fd);
    return std::nullopt;
  }
  std::optional<TaskClaim> claim(std::in_place, fd, path);
  // The process that had it may have just ended with its result.
  if (is_done(task)) return std::nullopt;
  return claim;
}

Result<void> TaskResults::write(const Task& task, const std::vector<Row>& rows) const {
  std::string text;
  for (const Row& row : rows) text += to_json_line(row) + "\n";
  return replace_file(path_of(task), text);
}

Result<std::vector<Row>> TaskResults::read(const Task& task) const {
  auto rows = read_results(path_of(task));
  if (rows && rows->size() == std::max<std::size_t>(task.sizes.size(), 1)) return rows;
  return fail((rows ? path_of(task) + ": " + std::to_string(rows->size()) + " results of " +
                          std::to_string(std::max<std::size_t>(task.sizes.size(), 1))
                    : rows.error().message) +
              "; remove the file to run the task again");
}

Row result_row(const Task& task, std::size_t run, Row result) {
  Row options;
  for (const auto& [name, text] : task.options) options.push_back({name, text});
  if (!task.sizes.empty()) options.push_back({"cache-size", task.sizes[run]});
  std::erase_if(result, [](const Field& field) { return field.key == "trace"; });
  return {{"schema", kResultsSchema},
          {"task", task.name},
          {"version", std::string(ENCORE_VERSION)},
          {"trace", task.trace.name},
          {"options", std::move(options)},
          {"result", std::move(result)}};
}

Result<std::vector<Row>> parse_results(std::string_view text, const std::string& name) {
  if (const auto report = row_of_json(text)) {
    const Value* const rows = find(*report, "rows");
    const auto* const list = rows == nullptr ? nullptr : std::get_if<std::vector<Row>>(rows);
    if (list != nullptr) {
      if (!is_schema(*report)) {
        return fail(name +
                    ": a report of another schema, accepted: " + std::to_string(kResultsSchema));
      }
      std::vector<Row> results;
      for (const Row& row : *list) {
        if (find(row, "object_hit_ratio") == nullptr || find(row, "task") != nullptr) {
          return fail(name +
                      ": accepted: a report of encore-sim replay, or results.jsonl of a sweep");
        }
        results.push_back({{"schema", kResultsSchema}, {"options", Row{}}, {"result", row}});
        if (const Value* const trace = find(row, "trace")) {
          results.back().push_back({"trace", *trace});
        }
      }
      return results;
    }
  }
  std::vector<Row> results;
  std::size_t number = 0;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    ++number;
    if (end != 0) {
      auto row = parse_line(text.substr(0, end), name, number);
      if (!row) return std::unexpected(row.error());
      results.push_back(std::move(*row));
    }
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  if (results.empty()) return fail(name + ": no results");
  return results;
}

Result<std::vector<Row>> read_results(const std::string& path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) return read_results(path + "/results.jsonl");
  const auto text = read_file(path);
  return text ? parse_results(*text, path) : std::unexpected(text.error());
}

std::string results_csv(const std::vector<Row>& rows) {
  std::vector<std::vector<std::pair<std::string, std::string>>> lines;
  std::vector<std::string> keys;
  for (const Row& row : rows) {
    append_cells(row, lines.emplace_back());
    for (const auto& [key, text] : lines.back()) {
      if (std::ranges::find(keys, key) == keys.end()) keys.push_back(key);
    }
  }
  std::string csv;
  for (const std::string& key : keys) csv += (csv.empty() ? "" : ",") + key;
  csv += "\n";
  for (const auto& line : lines) {
    std::string out;
    for (const std::string& key : keys) {
      const auto at = std::ranges::find(line, key, &std::pair<std::string, std::string>::first);
      out += (&key == &keys.front() ? "" : ",") + (at == line.end() ? std::string() : at->second);
    }
    csv += out + "\n";
  }
  return csv;
}

}  // namespace encore::sim
