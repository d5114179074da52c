// TraceReader: the requests of a trace file in any of the known formats, in file order. Confined to
// one thread. Deterministic.
//
// Which lines count is a stated rule: where a format has a method, those whose method is listed;
// where it has a status, those whose status is listed. Others are skipped and counted. A line that
// cannot be read is bad: counted, the first ones kept to be shown, and above a share of them the
// trace is refused.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/cli/monitor.h"
#include "base/error.h"
#include "filter/hash.h"
#include "sim/trace/request.h"

namespace encore::sim {

//  enumerator          name             what it is
#define ENCORE_TRACE_FORMATS(X)                                                              \
  X(kEncore, "encore", "encore-sim's own binary format, as generate writes it")              \
  X(kJson, "json", "JSON lines: encore's access log, or --columns names the fields")         \
  X(kCaddy, "caddy", "Caddy's JSON access log")                                              \
  X(kSquid, "squid", "Squid's native access.log")                                            \
  X(kCombined, "combined", "Apache, nginx and varnishncsa: common and combined")             \
  X(kCsv, "csv", "commas, semicolons or bars; a header line, or --columns")                  \
  X(kTsv, "tsv", "the same with tabs")                                                       \
  X(kTwitter, "twitter", "Twitter: time, key, key size, value size, client, operation, ttl") \
  X(kTencentBlock, "tencent-block", "Tencent: time, offset, size, type, volume")             \
  X(kTencentPhoto, "tencent-photo", "Tencent's photos: date, id, format, category, ...")     \
  X(kAlibabaBlock, "alibaba-block", "Alibaba: device, R or W, offset, length, time")         \
  X(kVscsi, "vscsi", "vSCSI and CloudPhysics: records of versions 1 and 2")                  \
  X(kMsr, "msr", "MSR Cambridge: time, host, disk, type, offset, size, latency")             \
  X(kSpc, "spc", "SPC: unit, address, size, R or W, time")                                   \
  X(kIbmCos, "ibm-cos", "IBM's object store: time, REST.GET.OBJECT, id, size")               \
  X(kWikiCdn, "wiki-cdn", "Wikimedia's CDN, 2019: time, id, (image type,) size, latency")    \
  X(kMetaKv, "meta-kv", "Meta's key-value caches without their header")                      \
  X(kMetaCdn, "meta-cdn", "Meta's CDN without its header")                                   \
  X(kLrb, "lrb", "lines of: time id size (webcachesim, LRB)")                                \
  X(kWikibench, "wikibench", "lines of: counter time URL flag")                              \
  X(kOracleGeneral, "oracle-general", "libCacheSim's oracleGeneral, records of 24 bytes")    \
  X(kLcs, "lcs", "libCacheSim's lcs, versions 1 to 8")                                       \
  X(kInt32, "int32", "big-endian 32-bit numbers (cache2k)")                                  \
  X(kInt64, "int64", "big-endian 64-bit numbers (corda)")                                    \
  X(kInt32Little, "int32-little", "little-endian 32-bit numbers")                            \
  X(kInt64Little, "int64-little", "little-endian 64-bit numbers")

enum class TraceFormat : std::uint8_t {
#define ENCORE_ENUMERATOR(id, name, what) id,
  ENCORE_TRACE_FORMATS(ENCORE_ENUMERATOR)
#undef ENCORE_ENUMERATOR
      kAuto,  // by the first bytes
};
std::string_view to_string(TraceFormat format) noexcept;

// How sure the format is. kGiven: it was said. kCertain: the trace begins with a mark that nothing
// else has. kHigh: many lines or records were looked at and fit. kLow: few lines, or lines that
// could be anything.
enum class Confidence : std::uint8_t { kGiven, kCertain, kHigh, kLow };
std::string_view to_string(Confidence confidence) noexcept;

// A file of a trace: how it is read, how sure that is, and why.
struct TraceSource {
  std::string path;
  TraceFormat format = TraceFormat::kAuto;
  Confidence confidence = Confidence::kGiven;
  std::string reason;
};

// "auto" or a name of the table. Errors: anything else; the message lists what is accepted.
Result<TraceFormat> parse_trace_format(std::string_view name);

struct TraceOptions {
  TraceFormat format = TraceFormat::kAuto;
  // csv, tsv: role -> column name or number from 1; json: role -> field, dots go deeper. Roles:
  // time, key, size, ttl, method, status, count. Empty: by the usual names.
  std::map<std::string, std::string> columns;
  char delimiter = 0;      // for csv; 0: a comma, or found with the format
  bool all_lines = false;  // count every method and status
  std::vector<std::string> methods = {"GET"};
  std::vector<int> statuses = {200, 206, 304};
  double bad_share_max = 0.01;
  std::uint64_t default_size_bytes = 1024;  // for requests without one in the trace
  filter::Seed identity_seed;               // seed of Request::key
  std::string key_prefix;                   // in front of each key, of formats of lines
  // Only keys that are URLs of these hosts count: names, or ".example.com" for all below.
  std::vector<std::string> hosts = {};  // empty: every key
  std::uint64_t block_bytes = 0;        // block traces: a request a block; 0: as they are
  Monitor* monitor = nullptr;           // borrowed; counts the bytes read, stops the reading
};

struct TraceCounts {
  std::uint64_t lines = 0;    // or records
  std::uint64_t counted = 0;  // requests that came out
  std::uint64_t skipped = 0;  // by the rule
  std::uint64_t bad = 0;
  std::uint64_t without_size = 0;  // got the default
  std::string first_row;           // for a csv whose columns were given: the parsed first request
  std::vector<std::string> bad_shown;  // the first few: "line 7: no number in the status: \"x\""
};

class TraceReader {
 public:
  virtual ~TraceReader() = default;
  // The next requests, at least one unless it is the end (0) or the monitor stopped it. Errors:
  // reading, decompression, too many bad lines, a record that is cut off.
  virtual Result<std::size_t> read(std::span<Request> out) = 0;
  virtual const TraceCounts& counts() const = 0;
  virtual TraceFormat format() const = 0;
  // The files that were opened so far, in order.
  const std::vector<TraceSource>& sources() const { return sources_; }
  void add_source(TraceSource source) { sources_.push_back(std::move(source)); }

 private:
  std::vector<TraceSource> sources_;
};

}  // namespace encore::sim
