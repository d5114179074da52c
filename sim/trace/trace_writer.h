// TraceWriter: writes a trace in encore-sim's binary format, as csv (time,key,size,ttl), or in one
// of libCacheSim's, through zstd where the name ends in .zst. Confined to one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/error.h"

namespace encore::sim {

//  enumerator      name
#define ENCORE_WRITTEN_FORMATS(X)     \
  X(kEncore, "encore")                \
  X(kCsv, "csv")                      \
  X(kOracleGeneral, "oracle-general") \
  X(kLcs, "lcs")
enum class WrittenFormat : std::uint8_t {
#define ENCORE_ENUMERATOR(id, name) id,
  ENCORE_WRITTEN_FORMATS(ENCORE_ENUMERATOR)
#undef ENCORE_ENUMERATOR
};
std::string_view to_string(WrittenFormat format) noexcept;
// Errors: an unknown name; the message lists what is accepted.
Result<WrittenFormat> parse_written_format(std::string_view name);
// csv by ".csv" in the name, else encore-sim's own.
WrittenFormat written_format_of(std::string_view path);

struct WrittenRequest {
  std::uint64_t id = 0;
  std::int64_t time_ns = 0;
  std::uint64_t size_bytes = 0;
  std::uint32_t ttl_seconds = 0;    // all ones: none
  std::uint64_t next = UINT64_MAX;  // number of the next request for the object; all ones: none
};

// Figures of the whole trace, for the head of lcs.
struct WrittenTrace {
  std::uint64_t requests = 0;
  std::uint64_t objects = 0;
  std::uint64_t requested_bytes = 0;
  std::uint64_t object_bytes = 0;
  std::int64_t first_ns = 0;
  std::int64_t last_ns = 0;
  // TTLs, or sizes of 4 GiB and more: they need version 3, which older readers do not know.
  bool needs_version_3 = false;
};

class TraceWriter {
 public:
  // "-" is standard output. Errors: it cannot be opened.
  struct Options {
    WrittenFormat format = WrittenFormat::kEncore;
    WrittenTrace trace = {};  // lcs alone
  };
  static Result<std::unique_ptr<TraceWriter>> open(const std::string& path, const Options& options);
  ~TraceWriter();
  TraceWriter(const TraceWriter&) = delete;
  TraceWriter& operator=(const TraceWriter&) = delete;

  // Errors: writing; a time or size that the format has no room for.
  Result<void> write(const WrittenRequest& request);
  // Must be called: flushes and closes. Errors: as write().
  Result<void> finish();

 private:
  class Sink;
  TraceWriter(std::unique_ptr<Sink> sink, const Options& options);
  void append_csv(const WrittenRequest& request);
  void append_binary(const WrittenRequest& request);
  Result<void> append_libcachesim(const WrittenRequest& request);

  std::unique_ptr<Sink> sink_;
  Options options_;
  std::string buffer_;
  std::uint64_t written_ = 0;  // requests
};

}  // namespace encore::sim
