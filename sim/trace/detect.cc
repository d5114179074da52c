#include <algorithm>
#include <array>
#include <memory>
#include <set>

#include "sim/trace/line_parser.h"
#include "sim/trace/record_format.h"

namespace encore::sim {
namespace {

constexpr std::size_t kRecordsLooked = 64;

bool is_text(std::string_view head) {
  return std::ranges::none_of(head, [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte < 0x20 && c != '\n' && c != '\r' && c != '\t';
  });
}

// Times that never run back by much nor leap, sizes that are sizes.
bool looks_oracle_general(std::string_view head) {
  const std::size_t records = std::min(head.size() / 24, kRecordsLooked);
  if (records == 0) {
    return false;
  }
  std::uint64_t last_time = load_little(head, 0, 4);
  for (std::size_t i = 0; i < records; ++i) {
    const std::uint64_t time = load_little(head, 24 * i, 4);
    const auto next = static_cast<std::int64_t>(load_little(head, 24 * i + 16, 8));
    constexpr std::uint64_t kDay = 86400;
    if (time + 60 < last_time || time > last_time + kDay || next < -2 ||
        next > (std::int64_t{1} << 42)) {
      return false;
    }
    last_time = time;
  }
  return true;
}

// Small numbers, where the upper half of each is zero; or hashes, where the upper bytes of both
// halves are spread evenly (of 32-bit numbers that are ids they hardly vary).
bool looks_int64(std::string_view head) {
  const std::size_t records = std::min(head.size() / 8, kRecordsLooked);
  std::size_t small = 0;
  std::set<char> upper;
  for (std::size_t i = 0; i < records; ++i) {
    small += load_big(head, 8 * i, 4) == 0 ? 1U : 0U;
    upper.insert(head[8 * i]);
    upper.insert(head[8 * i + 4]);
  }
  constexpr std::size_t kEnough = 16;  // fewer hashes may look like anything
  return records != 0 && (small == records || (records >= kEnough && upper.size() > records));
}

// Ids: their upper bytes hardly vary. Of noise they do.
bool looks_int32(std::string_view head) {
  const std::size_t records = std::min(head.size() / 4, kRecordsLooked);
  std::set<char> upper;
  for (std::size_t i = 0; i < records; ++i) {
    upper.insert(head[4 * i]);
  }
  return records != 0 && upper.size() <= (records + 1) / 2;
}

bool parses(LineParser& parser, std::string_view line) {
  LineFields fields;
  return parser.parse(line, fields) == nullptr;
}

TraceFormat detect_text(std::string_view line) {
  if (line.starts_with('{')) {
    const bool caddy = line.find("\"request\"") != std::string_view::npos &&
                       line.find("\"uri\"") != std::string_view::npos;
    return caddy ? TraceFormat::kCaddy : TraceFormat::kJson;
  }
  if (parses(*make_combined_parser(), line)) {
    return TraceFormat::kCombined;
  }
  if (parses(*make_squid_parser(), line)) {
    return TraceFormat::kSquid;
  }
  if (line.find('\t') != std::string_view::npos) {
    return TraceFormat::kTsv;
  }
  if (line.find(',') != std::string_view::npos) {
    return TraceFormat::kCsv;
  }
  std::string_view rest = line;
  std::array<std::string_view, 4> words;
  for (std::string_view& word : words) {
    word = take_word(rest);
  }
  if (words[2].find("://") != std::string_view::npos && parses(*make_wikibench_parser(), line)) {
    return TraceFormat::kWikibench;
  }
  if (!words[1].empty() && parses(*make_lrb_parser(), line)) {
    return TraceFormat::kLrb;
  }
  // One word a line: the key.
  return words[1].empty() ? TraceFormat::kCsv : TraceFormat::kAuto;
}

}  // namespace

Result<TraceFormat> detect_format(std::string_view head) {
  if (head.empty()) {
    return fail("the trace is empty");
  }
  if (head.starts_with(kEncoreMagic)) {
    return TraceFormat::kEncore;
  }
  if (head.size() >= 8 && load_little(head, 0, 8) == kLcsMagic) {
    return TraceFormat::kLcs;
  }
  TraceFormat format = TraceFormat::kAuto;
  if (is_text(head)) {
    // A line that begins with # is a remark.
    std::string_view rest = head;
    std::string_view line = take_field(rest, '\n');
    while (line.starts_with('#') && !rest.empty()) {
      line = take_field(rest, '\n');
    }
    format = detect_text(line.substr(0, line.find('\r')));
  } else if (looks_oracle_general(head)) {
    format = TraceFormat::kOracleGeneral;
  } else if (looks_int64(head)) {
    format = TraceFormat::kInt64;
  } else if (looks_int32(head) && (head.size() % 4 == 0 || head.size() >= 4096)) {
    format = TraceFormat::kInt32;
  }
  if (format == TraceFormat::kAuto) {
    return fail("its format cannot be told: give it with --format");
  }
  return format;
}

}  // namespace encore::sim
