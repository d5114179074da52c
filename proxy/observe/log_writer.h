// The one thread that writes logs. Workers collect records in a buffer of their own and hand the
// whole buffer over (LogBuffer::append does so at 64 KiB, the worker's tick each second), so that a
// record costs a worker no lock and no system call. Records that are written together are in the
// order of their times, whichever worker they come from. Thread-safe.
#pragma once

#include <sys/types.h>

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
  // How many bytes may wait to be written before further buffers are dropped, those included that
  // could not be written and are tried again.
  static constexpr std::size_t kBacklogBytesMax = 64U << 20U;

  // Opens `path` for appending; "-" is standard output. Errors: the file cannot be opened.
  static Result<std::unique_ptr<LogWriter>> open(const std::string& path);
  // Checks if open() would succeed. Makes nothing, and does not wait for a pipe's reader.
  static Result<void> check(const std::string& path);
  // Writes the waiting records, then closes the file. Records are lost if a pipe stays full for a
  // second or the disk is full.
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
  // Waits until all that was handed over before the call is written, or could not be.
  void flush();

 private:
  struct Buffer {
    std::string text;
    std::vector<LogMark> marks;  // none: it is written as it is
  };

  explicit LogWriter(std::string path) : path_(std::move(path)) {}
  Result<void> open_file();
  void run();
  void write_sorted(std::vector<Buffer>& batch);
  void write(std::string bytes);
  void keep_from(std::size_t done);
  bool wait_for_room();
  void look_at_file();
  void report_loss();

  const std::string path_;
  // State of the thread that writes.
  std::string unwritten_;        // by the last write, which failed; from the beginning of a line
  std::size_t begun_bytes_ = 0;  // those written before: a part of that line
  bool fails_ = false;           // and that was said
  bool gave_up_ = false;         // the end did not wait for room
  std::size_t share_bytes_ = 0;  // size of one write
  dev_t device_ = 0;             // device of the open file
  ino_t inode_ = 0;
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
  // Buffer for the next record; call finish_record() after appending it.
  std::string& text() { return text_; }
  // Hands over when enough has come together. Returns how many records were dropped.
  std::size_t finish_record(WallTime time) {
    marks_.push_back({time, text_.size()});
    return text_.size() < kHandOverBytes ? 0 : hand_over();
  }
  std::size_t hand_over() {
    const std::size_t records = marks_.size();
    const bool taken = writer_ == nullptr || text_.empty() || writer_->hand_over(text_, marks_);
    return taken ? 0 : records;
  }

 private:
  LogWriter* writer_;
  std::string text_;
  std::vector<LogMark> marks_;
};

}  // namespace encore::server
