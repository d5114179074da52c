#include "sim/trace/detect.h"

#include <algorithm>
#include <array>
#include <string>

#include "sim/trace/record_format.h"

namespace encore::sim {
namespace {

// Bytes that text does not have. Half a character of UTF-16 is none.
bool is_control(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return (byte < 0x20 && c != '\n' && c != '\r' && c != '\t') || byte == 0x7f;
}
bool is_high(char c) { return static_cast<unsigned char>(c) >= 0x80; }

std::size_t share_of(std::size_t count, std::size_t all) { return 100 * count / all; }

// Characters of so many bytes, all but one of which are zero and the other one a letter.
bool has_wide_letters(std::string_view bytes, std::size_t width, std::size_t letter_at) {
  constexpr std::size_t kLettersMin = 8;
  const std::size_t characters = bytes.size() / width;
  std::size_t letters = 0;
  for (std::size_t i = 0; i < characters; ++i) {
    const std::string_view character = bytes.substr(width * i, width);
    const char letter = character[letter_at];
    const auto zeros = static_cast<std::size_t>(std::ranges::count(character, '\0'));
    letters += zeros + 1 == width && !is_control(letter) && !is_high(letter) ? 1U : 0U;
  }
  return characters >= kLettersMin && share_of(letters, characters) >= 90;
}

// "UTF-16" or "UTF-32", by the mark or by what ASCII looks like in it; else nothing.
std::string_view wide_text(std::string_view bytes) {
  using namespace std::string_view_literals;
  if (bytes.starts_with("\0\0\xfe\xff"sv) || bytes.starts_with("\xff\xfe\0\0"sv) ||
      has_wide_letters(bytes, 4, 0) || has_wide_letters(bytes, 4, 3)) {
    return "UTF-32";
  }
  if (bytes.starts_with("\xff\xfe") || bytes.starts_with("\xfe\xff") ||
      has_wide_letters(bytes, 2, 0) || has_wide_letters(bytes, 2, 1)) {
    return "UTF-16";
  }
  return {};
}

// True for UTF-8, of which a character at the end may be cut off.
bool is_utf8(std::string_view bytes) {
  std::size_t i = 0;
  while (i < bytes.size()) {
    const auto first = static_cast<unsigned char>(bytes[i]);
    const std::size_t more = first < 0x80 ? 0U : first < 0xe0 ? 1U : first < 0xf0 ? 2U : 3U;
    if ((first >= 0x80 && first < 0xc2) || first > 0xf4) {
      return false;
    }
    for (std::size_t j = 1; j <= more && i + j < bytes.size(); ++j) {
      if ((static_cast<unsigned char>(bytes[i + j]) & 0xc0U) != 0x80) return false;
    }
    i += 1 + more;
  }
  return true;
}

// Nothing that text does not have, and either UTF-8 or not mostly bytes beyond ASCII.
bool is_text(std::string_view bytes) {
  constexpr std::size_t kHighMax = 30;
  const auto high = static_cast<std::size_t>(std::ranges::count_if(bytes, is_high));
  return std::ranges::none_of(bytes, is_control) &&
         (is_utf8(bytes) || share_of(high, bytes.size()) <= kHighMax);
}

// Text but for some bytes; where the first of them is.
bool is_spoilt_text(std::string_view bytes, std::size_t& at) {
  constexpr std::size_t kPrintableMin = 85;
  const auto printable =
      std::ranges::count_if(bytes, [](char c) { return !is_control(c) && !is_high(c); });
  at = static_cast<std::size_t>(std::ranges::find_if(bytes, is_control) - bytes.begin());
  return at != bytes.size() &&
         share_of(static_cast<std::size_t>(printable), bytes.size()) >= kPrintableMin;
}

// True if the name says that there is text inside; compression is no part of it.
bool is_named_as_text(std::string_view path) {
  for (const std::string_view packed : {".gz", ".xz", ".zst", ".zstd"}) {
    if (path.ends_with(packed)) {
      path.remove_suffix(packed.size());
      break;
    }
  }
  constexpr std::array<std::string_view, 7> kText = {".csv",  ".tsv",   ".txt",   ".log",
                                                     ".json", ".jsonl", ".ndjson"};
  return std::ranges::any_of(kText, [&](std::string_view name) { return path.ends_with(name); });
}

std::unexpected<Error> refuse(const std::string& what) {
  return fail(what + ", not a known trace format; if it is a trace, name its format with --format");
}

std::unexpected<Error> refuse_text_with(std::string_view bytes, std::size_t at) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  const auto byte = static_cast<unsigned char>(bytes[at]);
  return refuse(std::string("it is text with the invalid byte 0x") + kDigits[byte >> 4U] +
                kDigits[byte & 15U] + " at offset " + std::to_string(at) + ", which no text has");
}

Result<Detection> detect_marked(std::string_view bytes) {
  if (bytes.starts_with(kEncoreMagic)) {
    return Detection{.format = TraceFormat::kEncore,
                     .confidence = Confidence::kCertain,
                     .reason = "it begins with " + std::string(kEncoreMagic)};
  }
  if (bytes.size() >= 8 && load_little(bytes, 0, 8) == kLcsMagic) {
    return Detection{.format = TraceFormat::kLcs,
                     .confidence = Confidence::kCertain,
                     .reason = "it begins with the number of lcs"};
  }
  return Detection{};
}

}  // namespace

Result<Detection> detect_format(const Head& head, const TraceOptions& options) {
  const std::string_view bytes = head.bytes;
  if (auto marked = detect_marked(bytes); marked->format != TraceFormat::kAuto) {
    return marked;
  }
  if (const std::string_view known = known_file(bytes); !known.empty()) {
    return refuse("it is " + std::string(known));
  }
  if (const std::string wide(wide_text(bytes)); !wide.empty()) {
    return refuse("it is text in " + wide + ", which `iconv -f " + wide +
                  " -t UTF-8` makes readable");
  }
  if (is_text(bytes)) {
    return detect_lines(head, options);
  }
  std::size_t at = 0;
  if (is_spoilt_text(bytes, at)) {
    return refuse_text_with(bytes, at);
  }
  Detection records = detect_records(head);
  if (records.format == TraceFormat::kAuto) {
    return refuse("its bytes are neither text nor look like the records of a format");
  }
  if (is_named_as_text(head.path)) {
    return refuse("its name says text, but its bytes are not");
  }
  return records;
}

}  // namespace encore::sim
