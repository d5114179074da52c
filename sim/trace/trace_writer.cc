#include "sim/trace/trace_writer.h"

#include <zstd.h>

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

}  // namespace

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
  const bool csv = options.csv || path.ends_with(".csv") || path.ends_with(".csv.zst");
  auto sink = std::make_unique<Sink>(file, !standard_output, path.ends_with(".zst"));
  return std::unique_ptr<TraceWriter>(new TraceWriter(std::move(sink), csv));
}

TraceWriter::TraceWriter(std::unique_ptr<Sink> sink, bool csv) : sink_(std::move(sink)), csv_(csv) {
  buffer_ = csv ? "time,key,size,ttl\n" : std::string(kEncoreMagic);
}
TraceWriter::~TraceWriter() = default;

Result<void> TraceWriter::write(const WrittenRequest& request) {
  csv_ ? append_csv(request) : append_binary(request);
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

void TraceWriter::append_binary(const WrittenRequest& request) {
  append_little(buffer_, request.id, 8);
  append_little(buffer_, request.size_bytes, 8);
  append_little(buffer_, static_cast<std::uint64_t>(request.time_ns), 8);
  append_little(buffer_, request.ttl_seconds, 4);
  append_little(buffer_, 0, 4);
}

}  // namespace encore::sim
