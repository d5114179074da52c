#include "sim/cli/dask.h"

#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string_view>

#include "sim/cli/shell_words.h"

__asm__(
    ".pushsection .rodata\n"
    "encore_on_dask_begin:\n"
    ".incbin \"" ENCORE_ON_DASK
    "\"\n"
    "encore_on_dask_end:\n"
    ".byte 0\n"
    ".popsection\n"
    ".global encore_on_dask_begin\n"
    ".global encore_on_dask_end\n");
extern "C" const char encore_on_dask_begin[];
extern "C" const char encore_on_dask_end[];

namespace encore::sim {
namespace {

// A file with the text that goes with this object.
class TaskFile {
 public:
  explicit TaskFile(std::string_view text) {
    const char* const directory = std::getenv("TMPDIR");
    path_ = std::string(directory == nullptr || *directory == '\0' ? "/tmp" : directory) +
            "/encore-sim-tasks-XXXXXX";
    const int fd = ::mkstemp(path_.data());
    if (fd < 0) return;
    there_ = true;
    written_ = ::write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
    ::close(fd);
  }
  ~TaskFile() {
    if (there_) ::unlink(path_.c_str());
  }
  TaskFile(const TaskFile&) = delete;
  TaskFile& operator=(const TaskFile&) = delete;
  bool is_written() const { return written_; }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  bool there_ = false;
  bool written_ = false;
};

}  // namespace

Result<void> run_on_scheduler(const std::string& scheduler, const std::vector<DaskTask>& tasks,
                              Monitor& monitor) {
  if (tasks.empty()) return {};
  std::string text;
  for (const DaskTask& task : tasks) text += task.name + "\t" + task.command + "\n";
  const TaskFile file(text);
  if (!file.is_written()) {
    return fail("cannot write " + file.path() + ": " + std::strerror(errno));
  }
  const std::string script(encore_on_dask_begin, encore_on_dask_end);
  const std::string command = "python3 -c " + shell_word(script) + " " + shell_word(scheduler) +
                              " " + shell_word(file.path());
  std::FILE* const pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return fail(std::string("cannot start python3: ") + std::strerror(errno));
  monitor.begin("tasks", tasks.size());
  std::size_t done = 0;
  std::string trouble;
  char* line = nullptr;
  std::size_t room = 0;
  while (true) {
    const ssize_t length = getline(&line, &room, pipe);
    if (length <= 0) break;
    std::string_view said(line, static_cast<std::size_t>(length));
    if (said.ends_with('\n')) said.remove_suffix(1);
    if (said.starts_with("done ")) {
      ++done;
      monitor.advance(1);
    } else if (trouble.empty()) {
      trouble = said;
    }
  }
  std::free(line);
  const int status = pclose(pipe);
  if (trouble.empty() && (status != 0 || done != tasks.size()) && !monitor.stopped()) {
    trouble = "python3 ended with " + std::to_string(done) + " of " + std::to_string(tasks.size()) +
              " tasks done";
  }
  return trouble.empty() ? Result<void>() : fail("--on " + scheduler + ": " + trouble);
}

}  // namespace encore::sim
