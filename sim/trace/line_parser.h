// LineParser: one text format; LineFields: what a line says. For the readers in this folder.
#pragma once

#include <charconv>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/error.h"
#include "sim/trace/input.h"
#include "sim/trace/trace_reader.h"

namespace encore::sim {

struct LineFields {
  std::string_view key;
  std::string_view method;  // empty: the format has none
  int status = -1;          // -1: the format has none
  std::int64_t time_ns = 0;
  std::uint64_t size_bytes = 0;
  bool has_size = false;
  std::uint32_t ttl_seconds = kNoTtl;
  std::uint64_t count = 1;  // requests that this line stands for
  // A read that found nothing, in a key-value cache's trace: the write that follows has the size.
  bool awaits_size = false;
  bool is_write = false;  // such a write
  // A block trace's: where the request begins, and the volume, of which the rest of the key is
  // made.
  std::uint64_t offset_bytes = 0;
  std::string_view volume;
};

// The blocks that a request touches. False: more than kBlocksMax, or it ends beyond 2^64.
inline constexpr std::uint64_t kBlocksMax = 1'000'000;
struct BlockRange {
  std::uint64_t first = 0;
  std::uint64_t end = 0;  // behind the last one
};
inline bool split_into_blocks(std::uint64_t offset_bytes, std::uint64_t size_bytes,
                              std::uint64_t block_bytes, BlockRange& range) {
  if (offset_bytes + size_bytes < offset_bytes) return false;
  range.first = offset_bytes / block_bytes;
  range.end = (offset_bytes + (size_bytes == 0 ? 0 : size_bytes - 1)) / block_bytes + 1;
  return range.end - range.first <= kBlocksMax;
}
// True for formats whose requests have an offset.
bool is_of_blocks(TraceFormat format);

class LineParser {
 public:
  virtual ~LineParser() = default;
  // Null, or what is wrong with the line. Views in `fields` may point into the line or into the
  // parser, valid until the next call.
  virtual const char* parse(std::string_view line, LineFields& fields) = 0;
};

// Errors of the csv parser: a column that the header does not have.
std::unique_ptr<LineParser> make_squid_parser();
std::unique_ptr<LineParser> make_combined_parser();
std::unique_ptr<LineParser> make_lrb_parser();
std::unique_ptr<LineParser> make_wikibench_parser();
std::unique_ptr<LineParser> make_json_parser(const TraceOptions& options, bool caddy);
// One of the published forms (sim/trace/published_parser.cc). Takes a header from the input.
Result<std::unique_ptr<LineParser>> make_published_parser(Input& input, TraceFormat format,
                                                          char separator);
// Which of them rows of columns fit: kAuto for none. `named`: nothing else looks like it.
struct PublishedFit {
  TraceFormat format = TraceFormat::kAuto;
  std::size_t fit = 0;
  bool named = true;
  bool header = false;  // the first line is one
};
PublishedFit published_form(std::span<const std::string_view> lines, char separator);
bool is_published(TraceFormat format);
// The operation of a key-value cache or an object store as a method: "gets", "GET_LEASE" and
// "REST.GET.OBJECT" are GET. Others as they are, in capitals.
std::string method_of(std::string_view operation);
// A read or a write by its method; of a read without a value the size is that of the write.
void note_operation(LineFields& fields, bool has_value);
// True if some column is a number.
bool has_number(std::string_view line, char separator);

// Checks the first line, and takes it from the input if it is a header.
Result<std::unique_ptr<LineParser>> make_separated_parser(Input& input, char separator,
                                                          const TraceOptions& options);
// The same for detection: by the first line, and the number of columns that the lines have.
struct SeparatedFirst {
  std::string_view line;
  char separator;
  std::size_t columns;
  std::string_view second = {};  // the line behind it, where there is one
};
struct SeparatedLayout {
  std::unique_ptr<LineParser> parser;
  bool header = false;  // the first line is one
  std::string roles;    // "time, key, size": what the columns are taken for
};
Result<SeparatedLayout> separated_layout(const SeparatedFirst& first, const TraceOptions& options);
// How many columns a line has; separators within quotes are none.
std::size_t count_columns(std::string_view line, char separator);

// --- pieces -------------------------------------------------------------------------------------

// A whole number and nothing else.
template <typename Number>
bool read_number(std::string_view text, Number& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && end == text.data() + text.size();
}
// Seconds, with a fraction or without, to nanoseconds. A number above 10^11 is taken for
// milliseconds, above 10^14 for microseconds, above 10^17 for nanoseconds.
bool read_time(std::string_view text, std::int64_t& time_ns);
// The text up to the next separator, which goes too.
inline std::string_view take_field(std::string_view& rest, char separator) {
  const std::size_t end = rest.find(separator);
  const std::string_view field = rest.substr(0, end);
  rest = end == std::string_view::npos ? std::string_view{} : rest.substr(end + 1);
  return field;
}
// The same where several blanks are one separator.
std::string_view take_word(std::string_view& rest);

}  // namespace encore::sim
