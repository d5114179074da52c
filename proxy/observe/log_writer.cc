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

#include "base/check.h"
#include "base/new_file.h"
#include "proxy/observe/log.h"

namespace encore::server {
namespace {

// How long a buffer of records waits for those of other workers.
constexpr Nanoseconds kGathered = std::chrono::milliseconds(20);

// How often what could not be written is tried again, where nothing new comes.
constexpr Nanoseconds kRetry = std::chrono::seconds(1);

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
    return fail("cannot open log " + path + ": " + why_no_new_file(path, errno));
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
  // One that is there by now is another process's, or a link to where none is yet.
  errno = check_new_file(path);
  return errno == 0 || errno == EEXIST ? Result<void>() : refused();
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
  if (descriptor < 0)
    return fail("cannot open log " + path_ + ": " + why_no_new_file(path_, errno));
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
  // A line that was begun elsewhere, or in what was cut off since, is written whole.
  const bool is_same = status.st_dev == device_ && status.st_ino == inode_;
  if (!is_same || (regular && status.st_size == 0)) begun_bytes_ = 0;
  device_ = status.st_dev;
  inode_ = status.st_ino;
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
  const auto has_work = [this]() ENCORE_NO_THREAD_SAFETY_ANALYSIS {
    return !waiting_.empty() || reopen_ || stop_;
  };
  std::unique_lock<Mutex> lock(mutex_);
  while (true) {
    if (unwritten_.empty()) {
      wake_.wait(lock, has_work);
    } else {
      wake_.wait_for(lock, kRetry, has_work);
    }
    const bool is_last = stop_ && waiting_.empty() && !reopen_;
    if (is_last && unwritten_.empty()) return;
    // Workers hand over in the same beat, and one of them first.
    if (!waiting_.empty() && !waiting_.front().marks.empty()) {
      wake_.wait_for(lock, kGathered, [this]() ENCORE_NO_THREAD_SAFETY_ANALYSIS { return stop_; });
    }
    std::vector<Buffer> batch;
    batch.swap(waiting_);
    std::size_t held = unwritten_.size();
    for (const Buffer& buffer : batch) held += buffer.text.size();
    const bool reopen = std::exchange(reopen_, false);
    busy_ = true;
    lock.unlock();
    if (reopen) {
      if (auto opened = open_file(); !opened) log::error("{}", opened.error().message);
    } else if (begun_bytes_ != 0) {
      look_at_file();
    }
    write_sorted(batch);
    lock.lock();
    ENCORE_CHECK(unwritten_.size() <= held, "a log keeps no more than it was given");
    waiting_bytes_ -= held - unwritten_.size();
    busy_ = false;
    wake_.notify_all();
    if (is_last) {
      report_loss();
      return;
    }
  }
}

// Buffers of records as one, in the order of their times; others stand where they stood.
void LogWriter::write_sorted(std::vector<Buffer>& batch) {
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
    if (!text.empty()) write(std::move(text));
  };
  const auto is_in_order = [](const Buffer& buffer) {
    return std::ranges::is_sorted(buffer.marks, {}, &LogMark::time);
  };
  if (batch.empty()) return write({});
  if (batch.size() == 1 && is_in_order(batch.front())) return write(std::move(batch.front().text));
  for (Buffer& buffer : batch) {
    if (buffer.marks.empty()) {
      write_records();
      write(std::move(buffer.text));
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

// Appends to the bytes that earlier writes left over, and keeps the rest if this write fails too.
void LogWriter::write(std::string bytes) {
  if (unwritten_.empty()) {
    unwritten_ = std::move(bytes);
  } else {
    unwritten_ += bytes;
  }
  std::size_t done = begun_bytes_;
  while (done < unwritten_.size()) {
    if (!wait_for_room()) {
      errno = EAGAIN;
      return keep_from(done);
    }
    const std::size_t share = std::min(unwritten_.size() - done, share_bytes_);
    const ssize_t written = ::write(descriptor_, unwritten_.data() + done, share);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return keep_from(done);
    done += static_cast<std::size_t>(written);
  }
  unwritten_ = {};
  begun_bytes_ = 0;
  if (std::exchange(fails_, false)) log::warn("log {}: writing again", path_);
}

// Keeps the line that was begun from its beginning: another file may be opened before it is
// written.
void LogWriter::keep_from(std::size_t done) {
  if (!std::exchange(fails_, true)) {
    log::error("cannot write log {}: {}; up to {} MiB of records are buffered", path_,
               std::strerror(errno), kBacklogBytesMax >> 20U);
  }
  std::size_t line = done;
  while (line != 0 && unwritten_[line - 1] != '\n') --line;
  unwritten_.erase(0, line);
  begun_bytes_ = done - line;
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

void LogWriter::report_loss() {
  const std::size_t lost = unwritten_.size() - begun_bytes_;
  if (lost != 0) log::error("log {}: its last {} bytes could not be written", path_, lost);
}

}  // namespace encore::server
