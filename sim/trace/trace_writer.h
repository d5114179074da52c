// TraceWriter: writes a trace in encore-sim's binary format or as csv (time,key,size,ttl), through
// zstd where the name ends in .zst. Confined to one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/error.h"

namespace encore::sim {

struct WrittenRequest {
  std::uint64_t id = 0;
  std::int64_t time_ns = 0;
  std::uint64_t size_bytes = 0;
  std::uint32_t ttl_seconds = 0;  // all ones: none
};

class TraceWriter {
 public:
  // "-" is standard output. csv by ".csv" in the name, or as asked. Errors: it cannot be opened.
  struct Options {
    bool csv = false;
  };
  static Result<std::unique_ptr<TraceWriter>> open(const std::string& path, const Options& options);
  ~TraceWriter();
  TraceWriter(const TraceWriter&) = delete;
  TraceWriter& operator=(const TraceWriter&) = delete;

  Result<void> write(const WrittenRequest& request);
  // Must be called: flushes and closes. Errors: as write().
  Result<void> finish();

 private:
  class Sink;
  TraceWriter(std::unique_ptr<Sink> sink, bool csv);
  void append_csv(const WrittenRequest& request);
  void append_binary(const WrittenRequest& request);

  std::unique_ptr<Sink> sink_;
  bool csv_;
  std::string buffer_;
};

}  // namespace encore::sim
