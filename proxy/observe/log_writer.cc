#include "proxy/observe/log_writer.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <utility>

#include "proxy/observe/log.h"

namespace encore::server {
namespace {

// How long a buffer of records waits for those of other workers.
constexpr Nanoseconds kGathered = std::chrono::milliseconds(20);

}  // namespace

Result<std::unique_ptr<LogWriter>> LogWriter::open(const std::string& path) {
  std::unique_ptr<LogWriter> writer(new LogWriter(path));
  if (auto opened = writer->open_file(); !opened) return std::unexpected(opened.error());
  writer->thread_ = std::thread([raw = writer.get()] { raw->run(); });
  return writer;
}

Result<void> LogWriter::check(const std::string& path) {
  if (path == "-") return {};
  const auto refused = [&] {
    return fail("cannot open log " + path + ": " + std::strerror(errno));
  };
  struct stat status{};
  const bool there = ::stat(path.c_str(), &status) == 0;
  if (!there && errno != ENOENT) return refused();
  if ((there && S_ISDIR(status.st_mode)) || path.ends_with('/')) {
    errno = EISDIR;
    return refused();
  }
  if (there) {
    return ::faccessat(AT_FDCWD, path.c_str(), W_OK, AT_EACCESS) == 0 ? Result<void>() : refused();
  }
  // The permissions of its directory do not tell whether a file can be made there.
  const int made = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (made < 0) return errno == EEXIST ? Result<void>() : refused();
  ::close(made);
  ::unlink(path.c_str());
  return {};
}

LogWriter::~LogWriter() {
  if (thread_.joinable()) {
    {
      const MutexLock lock(mutex_);
      stop_ = true;
    }
    wake_.notify_all();
    thread_.join();
  }
  if (descriptor_ > STDERR_FILENO) ::close(descriptor_);
}

Result<void> LogWriter::open_file() {
  if (path_ == "-") {
    descriptor_ = STDOUT_FILENO;
    look_at_file();
    return {};
  }
  const int descriptor =
      ::open(path_.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY, 0640);
  if (descriptor < 0) return fail("cannot open log " + path_ + ": " + std::strerror(errno));
  if (descriptor_ > STDERR_FILENO) ::close(descriptor_);
  descriptor_ = descriptor;
  look_at_file();
  return {};
}

void LogWriter::look_at_file() {
  struct stat status{};
  const bool regular = ::fstat(descriptor_, &status) == 0 && S_ISREG(status.st_mode);
  // A pipe with room takes so much without waiting.
  share_bytes_ = regular ? SIZE_MAX : PIPE_BUF;
  if (regular && status.st_size == 0) broken_line_ = false;
}

bool LogWriter::hand_over(std::string& buffer) {
  std::vector<LogMark> none;
  return hand_over(buffer, none);
}

bool LogWriter::hand_over(std::string& buffer, std::vector<LogMark>& marks) {
  std::string bytes;
  bytes.swap(buffer);
  buffer.reserve(bytes.capacity());
  std::vector<LogMark> records;
  records.swap(marks);
  marks.reserve(records.capacity());
  {
    const MutexLock lock(mutex_);
    if (waiting_bytes_ + bytes.size() > kBacklogBytesMax) return false;
    waiting_bytes_ += bytes.size();
    waiting_.push_back({std::move(bytes), std::move(records)});
  }
  wake_.notify_all();
  return true;
}

void LogWriter::reopen() {
  {
    const MutexLock lock(mutex_);
    reopen_ = true;
  }
  wake_.notify_all();
}

// The condition variable releases and takes the mutex where the analysis cannot see it.
void LogWriter::flush() ENCORE_NO_THREAD_SAFETY_ANALYSIS {
  std::unique_lock<Mutex> lock(mutex_);
  wake_.wait(lock,
             [this]() ENCORE_NO_THREAD_SAFETY_ANALYSIS { return waiting_.empty() && !busy_; });
}

void LogWriter::run() ENCORE_NO_THREAD_SAFETY_ANALYSIS {
  std::unique_lock<Mutex> lock(mutex_);
  while (true) {
    wake_.wait(lock, [this]() ENCORE_NO_THREAD_SAFETY_ANALYSIS {
      return !waiting_.empty() || reopen_ || stop_;
    });
    if (waiting_.empty() && !reopen_) return;  // told to stop, and all is written
    // Workers hand over in the same beat, and one of them first.
    if (!waiting_.empty() && !waiting_.front().marks.empty()) {
      wake_.wait_for(lock, kGathered, [this]() ENCORE_NO_THREAD_SAFETY_ANALYSIS { return stop_; });
    }
    std::vector<Buffer> batch;
    batch.swap(waiting_);
    waiting_bytes_ = 0;
    const bool reopen = std::exchange(reopen_, false);
    busy_ = true;
    lock.unlock();
    if (reopen) {
      if (auto opened = open_file(); !opened) log::error("{}", opened.error().message);
    }
    write_sorted(batch);
    lock.lock();
    busy_ = false;
    wake_.notify_all();
  }
}

// Buffers of records as one, in the order of their times; others stand where they stood.
void LogWriter::write_sorted(const std::vector<Buffer>& batch) {
  struct Record {
    WallTime time;
    std::string_view line;
  };
  std::vector<Record> records;
  const auto write_records = [&] {
    if (!std::ranges::is_sorted(records, {}, &Record::time)) {
      std::ranges::stable_sort(records, {}, &Record::time);
    }
    std::size_t bytes = 0;
    for (const Record& record : records) bytes += record.line.size();
    std::string text;
    text.reserve(bytes);
    for (const Record& record : records) text += record.line;
    records.clear();
    if (!text.empty()) write_all(text);
  };
  const auto is_in_order = [](const Buffer& buffer) {
    return std::ranges::is_sorted(buffer.marks, {}, &LogMark::time);
  };
  if (batch.size() == 1 && is_in_order(batch.front())) return write_all(batch.front().text);
  for (const Buffer& buffer : batch) {
    if (buffer.marks.empty()) {
      write_records();
      write_all(buffer.text);
      continue;
    }
    std::size_t begin = 0;
    for (const LogMark& mark : buffer.marks) {
      records.push_back({mark.time, std::string_view(buffer.text).substr(begin, mark.end - begin)});
      begin = mark.end;
    }
  }
  write_records();
}

void LogWriter::write_all(const std::string& bytes) {
  std::size_t done = 0;
  // What was begun before the disk was full ends here: the next record has a line of its own.
  if (broken_line_ && wait_for_room() && ::write(descriptor_, "\n", 1) == 1) broken_line_ = false;
  while (done < bytes.size()) {
    if (!wait_for_room()) {
      broken_line_ = broken_line_ || done != 0;
      errno = EAGAIN;
      report_failure(bytes.size() - done);
      return;
    }
    const std::size_t share = std::min(bytes.size() - done, share_bytes_);
    const ssize_t written = ::write(descriptor_, bytes.data() + done, share);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) {
      broken_line_ = broken_line_ || done != 0;
      report_failure(bytes.size() - done);
      return;
    }
    done += static_cast<std::size_t>(written);
  }
  report_recovery();
}

// Waits while a pipe (or terminal) is full, but not when the process is to end.
bool LogWriter::wait_for_room() {
  constexpr int kMilliseconds = 1000;
  if (gave_up_) return false;
  pollfd room{.fd = descriptor_, .events = POLLOUT, .revents = 0};
  while (true) {
    const int ready = ::poll(&room, 1, kMilliseconds);
    if (ready > 0 || (ready < 0 && errno != EINTR)) return true;
    const MutexLock lock(mutex_);
    gave_up_ = stop_;
    if (gave_up_) return false;
  }
}

// Once for each time that the disk is full, not once for each write.
void LogWriter::report_failure(std::size_t lost_bytes) {
  if (lost_bytes_ == 0) {
    log::error("cannot write log {}: {}; records are lost", path_, std::strerror(errno));
  }
  lost_bytes_ += lost_bytes;
}

void LogWriter::report_recovery() {
  if (lost_bytes_ == 0) return;
  log::warn("log {} is written again; {} bytes were lost", path_, lost_bytes_);
  lost_bytes_ = 0;
}

}  // namespace encore::server
