// The one thread that writes logs. Workers collect records in a buffer of their own and hand the
// whole buffer over (LogBuffer::append does so at 64 KiB, the worker's tick each second), so that
// a record costs a worker no lock and no system call. What is written together is in the order of
// the records' times, whichever worker it is of. Thread-safe.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "base/mutex.h"
#include "base/time.h"

namespace encore::server {

// A record in a buffer.
struct LogMark {
  WallTime time{};      // that it is sorted by
  std::size_t end = 0;  // in the buffer: where the next one begins
};

// A file (or standard output) that buffers are written to. Reopened on demand, for rotation.
class LogWriter {
 public:
  // How many bytes may wait to be written before further buffers are dropped.
  static constexpr std::size_t kBacklogBytesMax = 64U << 20U;

  // Opens `path` for appending; "-" is standard output. Errors: the file cannot be opened.
  static Result<std::unique_ptr<LogWriter>> open(const std::string& path);
  // Whether open() would succeed. Makes nothing, and does not wait for a pipe's reader.
  static Result<void> check(const std::string& path);
  // Writes what waits, then closes. What a full pipe does not take within a second is lost.
  ~LogWriter();
  LogWriter(const LogWriter&) = delete;
  LogWriter& operator=(const LogWriter&) = delete;

  // Takes the buffer's bytes and leaves it empty. Returns false, with the bytes dropped, when the
  // writer is too far behind.
  bool hand_over(std::string& buffer);
  // The same of records that may be sorted among those of others. Marks of each, in their order.
  bool hand_over(std::string& buffer, std::vector<LogMark>& marks);
  // Closes and opens the file again before the next write (after an external rotation).
  void reopen();
  // Waits until all that was handed over before the call is written.
  void flush();

 private:
  struct Buffer {
    std::string text;
    std::vector<LogMark> marks;  // none: it is written as it is
  };

  explicit LogWriter(std::string path) : path_(std::move(path)) {}
  Result<void> open_file();
  void run();
  void write_sorted(const std::vector<Buffer>& batch);
  void write_all(const std::string& bytes);
  bool wait_for_room();
  void look_at_file();

  void report_failure(std::size_t lost_bytes);
  void report_recovery();

  const std::string path_;
  // Of the thread that writes.
  std::size_t lost_bytes_ = 0;   // since the first write that failed; 0: all is well
  bool gave_up_ = false;         // the end did not wait for room
  bool broken_line_ = false;     // the last record was written in part
  std::size_t share_bytes_ = 0;  // of one write
  int descriptor_ = -1;  // touched by open() before the thread starts, then by the thread alone
  Mutex mutex_;
  std::condition_variable_any wake_;
  std::vector<Buffer> waiting_ ENCORE_GUARDED_BY(mutex_);
  std::size_t waiting_bytes_ ENCORE_GUARDED_BY(mutex_) = 0;
  bool busy_ ENCORE_GUARDED_BY(mutex_) = false;
  bool reopen_ ENCORE_GUARDED_BY(mutex_) = false;
  bool stop_ ENCORE_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

// A worker's own buffer in front of a LogWriter. Confined to its worker.
class LogBuffer {
 public:
  static constexpr std::size_t kHandOverBytes = 64U << 10U;

  // `writer` is borrowed and may be null: then records go nowhere and enabled() is false.
  explicit LogBuffer(LogWriter* writer) : writer_(writer) {}
  ~LogBuffer() { (void)hand_over(); }
  LogBuffer(const LogBuffer&) = delete;
  LogBuffer& operator=(const LogBuffer&) = delete;

  bool enabled() const { return writer_ != nullptr; }
  // Where the next record is appended to; call finish_record() after it.
  std::string& text() { return text_; }
  // Hands over when enough has come together. False when records were dropped.
  bool finish_record(WallTime time) {
    marks_.push_back({time, text_.size()});
    return text_.size() < kHandOverBytes || hand_over();
  }
  bool hand_over() {
    return writer_ == nullptr || text_.empty() || writer_->hand_over(text_, marks_);
  }

 private:
  LogWriter* writer_;
  std::string text_;
  std::vector<LogMark> marks_;
};

}  // namespace encore::server
