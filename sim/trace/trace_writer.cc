#include "sim/trace/trace_writer.h"

#include <zstd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <utility>
#include <vector>

#include "sim/trace/record_format.h"

namespace encore::sim {
namespace {

constexpr std::size_t kFlush = 256 * 1024;

void append_little(std::string& out, std::uint64_t value, std::size_t size) {
  for (std::size_t i = 0; i < size; ++i) {
    out += static_cast<char>(value >> (8 * i) & 0xffU);
  }
}

void append_number(std::string& out, std::uint64_t value) {
  char digits[24];
  const auto [end, error] = std::to_chars(digits, digits + sizeof digits, value);
  out.append(digits, end);
}

constexpr std::array kNames = {
#define ENCORE_NAME(id, name) std::string_view(name),
    ENCORE_WRITTEN_FORMATS(ENCORE_NAME)
#undef ENCORE_NAME
};

constexpr std::int64_t kSecondNs = 1'000'000'000;

// Head of lcs: the version, some of the statistics, and zeros for those that we do not count.
std::string lcs_head(const WrittenTrace& trace) {
  std::string head;
  append_little(head, kLcsMagic, 8);
  append_little(head, trace.needs_version_3 ? 3 : 1, 8);
  for (const std::uint64_t figure :
       {std::uint64_t{1}, trace.requests, trace.objects, trace.requested_bytes, trace.object_bytes,
        static_cast<std::uint64_t>(trace.first_ns / kSecondNs),
        static_cast<std::uint64_t>(trace.last_ns / kSecondNs)}) {
    append_little(head, figure, 8);
  }
  head.resize(kLcsHeader - 8);
  append_little(head, kLcsMagic, 8);
  return head;
}

std::string head_of(const TraceWriter::Options& options) {
  switch (options.format) {
    case WrittenFormat::kEncore:
      return std::string(kEncoreMagic);
    case WrittenFormat::kCsv:
      return "time,key,size,ttl\n";
    case WrittenFormat::kLcs:
      return lcs_head(options.trace);
    case WrittenFormat::kOracleGeneral:
      break;
  }
  return {};
}

}  // namespace

std::string_view to_string(WrittenFormat format) noexcept {
  return kNames[static_cast<std::size_t>(format)];
}

Result<WrittenFormat> parse_written_format(std::string_view name) {
  const auto at = std::ranges::find(kNames, name);
  if (at == kNames.end()) {
    std::string accepted;
    for (const std::string_view each : kNames) {
      accepted.append(accepted.empty() ? "" : " ").append(each);
    }
    return fail("unknown format \"" + std::string(name) + "\", accepted: " + accepted);
  }
  return static_cast<WrittenFormat>(at - kNames.begin());
}

WrittenFormat written_format_of(std::string_view path) {
  return path.ends_with(".csv") || path.ends_with(".csv.zst") ? WrittenFormat::kCsv
                                                              : WrittenFormat::kEncore;
}

// A file, with zstd before it where wanted.
class TraceWriter::Sink {
 public:
  Sink(std::FILE* file, bool owned, bool compress) : file_(file), owned_(owned) {
    if (compress) {
      zstd_ = ZSTD_createCCtx();
      out_.resize(ZSTD_CStreamOutSize());
    }
  }
  ~Sink() {
    ZSTD_freeCCtx(zstd_);
    if (owned_ && file_ != nullptr) {
      std::fclose(file_);
    }
  }
  Sink(const Sink&) = delete;
  Sink& operator=(const Sink&) = delete;

  Result<void> write(std::string_view bytes, bool last) {
    if (zstd_ == nullptr) {
      return put(bytes.data(), bytes.size());
    }
    ZSTD_inBuffer in{bytes.data(), bytes.size(), 0};
    std::size_t left = 1;
    while (in.pos < in.size || (last && left != 0)) {
      ZSTD_outBuffer out{out_.data(), out_.size(), 0};
      left = ZSTD_compressStream2(zstd_, &out, &in, last ? ZSTD_e_end : ZSTD_e_continue);
      if (ZSTD_isError(left) != 0) {
        return fail(std::string("zstd failed: ") + ZSTD_getErrorName(left));
      }
      if (auto written = put(out_.data(), out.pos); !written) {
        return written;
      }
    }
    return {};
  }
  Result<void> close() {
    const bool flushed = std::fflush(file_) == 0;
    const bool closed = !owned_ || std::fclose(std::exchange(file_, nullptr)) == 0;
    return flushed && closed ? Result<void>{}
                             : fail(std::string("writing failed: ") + std::strerror(errno));
  }

 private:
  Result<void> put(const char* bytes, std::size_t size) {
    return std::fwrite(bytes, 1, size, file_) == size
               ? Result<void>{}
               : fail(std::string("writing failed: ") + std::strerror(errno));
  }
  std::FILE* file_;
  bool owned_;
  ZSTD_CCtx* zstd_ = nullptr;
  std::vector<char> out_;
};

Result<std::unique_ptr<TraceWriter>> TraceWriter::open(const std::string& path,
                                                       const Options& options) {
  const bool standard_output = path == "-";
  // Nobody looks for what is not compressed, or otherwise, below such a name.
  for (const std::string_view other : {".gz", ".xz", ".bz2", ".lz4", ".zip"}) {
    if (path.ends_with(other)) {
      return fail("cannot write " + path + " compressed as its name says, accepted: .zst");
    }
  }
  std::FILE* file = standard_output ? stdout : std::fopen(path.c_str(), "wb");
  if (file == nullptr) {
    return fail("cannot write " + path + ": " + std::strerror(errno));
  }
  auto sink = std::make_unique<Sink>(file, !standard_output, path.ends_with(".zst"));
  return std::unique_ptr<TraceWriter>(new TraceWriter(std::move(sink), options));
}

TraceWriter::TraceWriter(std::unique_ptr<Sink> sink, const Options& options)
    : sink_(std::move(sink)), options_(options), buffer_(head_of(options)) {}
TraceWriter::~TraceWriter() = default;

Result<void> TraceWriter::write(const WrittenRequest& request) {
  switch (options_.format) {
    case WrittenFormat::kEncore:
      append_binary(request);
      break;
    case WrittenFormat::kCsv:
      append_csv(request);
      break;
    case WrittenFormat::kOracleGeneral:
    case WrittenFormat::kLcs:
      if (auto fits = append_libcachesim(request); !fits) {
        return fits;
      }
      break;
  }
  ++written_;
  if (buffer_.size() < kFlush) {
    return {};
  }
  auto written = sink_->write(buffer_, false);
  buffer_.clear();
  return written;
}

Result<void> TraceWriter::finish() {
  if (auto written = sink_->write(buffer_, true); !written) {
    return written;
  }
  buffer_.clear();
  return sink_->close();
}

void TraceWriter::append_csv(const WrittenRequest& request) {
  constexpr std::uint64_t kSecond = 1'000'000'000;
  const auto time = static_cast<std::uint64_t>(request.time_ns);
  append_number(buffer_, time / kSecond);
  // Microseconds, with their leading zeros.
  const std::uint64_t micros = time % kSecond / 1000;
  if (micros != 0) {
    buffer_ += '.';
    for (std::uint64_t place = 100000; place != 0; place /= 10) {
      buffer_ += static_cast<char>('0' + micros / place % 10);
    }
  }
  buffer_ += ',';
  append_number(buffer_, request.id);
  buffer_ += ',';
  append_number(buffer_, request.size_bytes);
  buffer_ += ',';
  if (request.ttl_seconds != 0xffffffffU) {
    append_number(buffer_, request.ttl_seconds);
  }
  buffer_ += '\n';
}

// Seconds, object, size, (operation and tenant, TTL,) number of the next request.
Result<void> TraceWriter::append_libcachesim(const WrittenRequest& request) {
  constexpr std::uint64_t kMost = UINT32_MAX;
  const bool is_large = options_.format == WrittenFormat::kLcs && options_.trace.needs_version_3;
  const std::int64_t seconds = request.time_ns / kSecondNs;
  if (seconds < 0 || static_cast<std::uint64_t>(seconds) > kMost) {
    return fail("request " + std::to_string(written_ + 1) + " has a time of " +
                std::to_string(seconds) + " s, accepted in " +
                std::string(to_string(options_.format)) + ": 0 to " + std::to_string(kMost));
  }
  if (!is_large && request.size_bytes > kMost) {
    return fail("request " + std::to_string(written_ + 1) + " has a size of " +
                std::to_string(request.size_bytes) + " bytes, accepted in " +
                std::string(to_string(options_.format)) + ": 0 to " + std::to_string(kMost) +
                "; lcs has room for larger ones");
  }
  const bool has_ttl = request.ttl_seconds != 0xffffffffU;
  append_little(buffer_, static_cast<std::uint64_t>(seconds), 4);
  append_little(buffer_, request.id, 8);
  append_little(buffer_, request.size_bytes, is_large ? 8 : 4);
  if (is_large) {
    append_little(buffer_, 0, 4);
    append_little(buffer_, has_ttl ? request.ttl_seconds : 0, 4);
  }
  const bool is_lcs = options_.format == WrittenFormat::kLcs;
  const std::uint64_t none = is_lcs ? INT64_MAX : UINT64_MAX;
  append_little(buffer_, request.next == UINT64_MAX ? none : request.next, 8);
  return {};
}

void TraceWriter::append_binary(const WrittenRequest& request) {
  append_little(buffer_, request.id, 8);
  append_little(buffer_, request.size_bytes, 8);
  append_little(buffer_, static_cast<std::uint64_t>(request.time_ns), 8);
  append_little(buffer_, request.ttl_seconds, 4);
  append_little(buffer_, 0, 4);
}

}  // namespace encore::sim
