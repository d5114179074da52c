// Which format a trace is in, by its first bytes; how sure that is, and why. Pure functions.
//
// The rule. Bytes that begin with the mark of one of the binary formats are that format: certain.
// Text is tried line by line: a format of lines is accepted if nine of ten of the first lines fit
// it. Other bytes are accepted as a binary format without a mark only if sixteen records or more
// look like one: times in order, plausible sizes, ids that come again as those of a trace do.
// Anything else is refused, with a sentence that says what it looks like.
#pragma once

#include <string_view>

#include "base/error.h"
#include "sim/trace/trace_reader.h"

namespace encore::sim {

// Number of first bytes that are checked.
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
  char delimiter = 0;  // for csv
};

// Errors: the format is unknown, or not sure enough. REQUIRES: some bytes.
Result<Detection> detect_format(const Head& head, const TraceOptions& options);

// --- its parts ----------------------------------------------------------------------------------

// Returns the kind of a file by its mark, if it is not a trace: "an ELF program". Empty: not known.
std::string_view known_file(std::string_view bytes);
// Errors: no format of lines fits.
Result<Detection> detect_lines(const Head& head, const TraceOptions& options);
// A binary format without a mark; kAuto: none, or there are too few records to tell.
Detection detect_records(const Head& head);

}  // namespace encore::sim
