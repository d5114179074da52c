// Which format a trace is in, by its first bytes; how sure that is, and why. Pure functions.
//
// The rule. What begins with the mark of one of the binary formats is that format: certain. Text is
// tried line by line: a format of lines is taken where nine of ten of the first lines fit it. Other
// bytes are taken for a binary format without a mark only where sixteen records or more look like
// one: times in order, sizes that are sizes, ids that come again as those of a trace do. What is
// neither is refused, with a sentence that says what it looks like.
#pragma once

#include <string_view>

#include "base/error.h"
#include "sim/trace/trace_reader.h"

namespace encore::sim {

// So many first bytes are looked at.
inline constexpr std::size_t kHeadBytes = 64 * 1024;
// UTF-8's, which some editors put before text.
inline constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

struct Head {
  std::string_view bytes;
  bool whole = false;          // nothing comes after them
  std::string_view path = {};  // a name that says csv is not that of numbers
};

struct Detection {
  TraceFormat format = TraceFormat::kAuto;
  Confidence confidence = Confidence::kLow;
  std::string reason;
  char delimiter = 0;  // of csv
};

// Errors: it cannot be told, or not surely enough. REQUIRES: some bytes.
Result<Detection> detect_format(const Head& head, const TraceOptions& options);

// --- its parts ----------------------------------------------------------------------------------

// What the bytes are by their mark, where they are no trace: "an ELF program". Empty: not known.
std::string_view known_file(std::string_view bytes);
// Errors: no format of lines fits.
Result<Detection> detect_lines(const Head& head, const TraceOptions& options);
// A binary format without a mark; kAuto: none, or there are too few records to tell.
Detection detect_records(const Head& head);

}  // namespace encore::sim
