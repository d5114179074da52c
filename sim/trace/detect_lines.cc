// Formats of lines: which one the first lines fit.
#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <string>
#include <unordered_set>
#include <vector>

#include "sim/trace/detect.h"
#include "sim/trace/line_parser.h"

namespace encore::sim {
namespace {

constexpr std::size_t kLinesLooked = 100;
// Nine of ten lines must fit; of fewer than eight nothing is sure.
constexpr std::size_t kFitOf = 10;
constexpr std::size_t kFit = 9;
constexpr std::size_t kLinesForHigh = 8;

using Lines = std::vector<std::string_view>;

bool enough(std::size_t fit, std::size_t lines) {
  return lines != 0 && fit * kFitOf >= lines * kFit;
}

// The first lines, without remarks and empty ones; the last one that is cut off is left out.
Lines first_lines(const Head& head, std::size_t count = kLinesLooked) {
  std::string_view rest = head.bytes;
  if (rest.starts_with(kByteOrderMark)) {
    rest.remove_prefix(kByteOrderMark.size());
  }
  Lines lines;
  while (!rest.empty() && lines.size() < count) {
    const bool ends = rest.find('\n') != std::string_view::npos;
    std::string_view line = take_field(rest, '\n');
    if (line.ends_with('\r')) {
      line.remove_suffix(1);
    }
    if (!line.empty() && line.front() != '#' && (ends || head.whole)) {
      lines.push_back(line);
    }
  }
  return lines;
}

struct Fit {
  std::size_t fit = 0;
  std::size_t lines = 0;
  std::string first_wrong;  // the fault of the first line that does not fit
  bool good() const { return enough(fit, lines); }
  std::string text() const {
    return std::to_string(fit) + " of " + std::to_string(lines) + " lines fit";
  }
};

// Requirements of the lines in addition to those of their format.
struct Demand {
  bool size = false;
};

Fit try_parser(LineParser& parser, std::span<const std::string_view> lines,
               const Demand& demand = {}) {
  Fit fit;
  for (const std::string_view line : lines) {
    LineFields fields;
    const char* wrong = parser.parse(line, fields);
    wrong = wrong == nullptr && demand.size && !fields.has_size ? "no size" : wrong;
    ++fit.lines;
    fit.fit += wrong == nullptr ? 1U : 0U;
    if (wrong != nullptr && fit.first_wrong.empty()) {
      constexpr std::size_t kShown = 40;
      fit.first_wrong = std::string(wrong) + " in \"" + std::string(line.substr(0, kShown)) + "\"";
    }
  }
  return fit;
}

Detection detected(TraceFormat format, const Fit& fit, const std::string& what = {}) {
  return {.format = format,
          .confidence = fit.lines >= kLinesForHigh ? Confidence::kHigh : Confidence::kLow,
          .reason = what + fit.text()};
}

std::unexpected<Error> unknown_lines(const std::string& what) {
  return fail("unknown format: " + what +
              "; name it with --format, and the columns of csv with --columns and --delimiter");
}

Result<Detection> detect_json(const Lines& lines, const TraceOptions& options) {
  const auto is_caddy = [](std::string_view line) {
    return line.find("\"request\"") != std::string_view::npos &&
           line.find("\"uri\"") != std::string_view::npos;
  };
  const bool caddy = options.columns.empty() && is_caddy(lines.front());
  const Fit fit = try_parser(*make_json_parser(options, caddy), lines);
  return fit.good()
             ? Result<Detection>(detected(caddy ? TraceFormat::kCaddy : TraceFormat::kJson, fit))
             : unknown_lines("its lines begin as JSON, but " + fit.text() + ": " + fit.first_wrong +
                             " (one object a line, --columns names its fields)");
}

// --- columns ------------------------------------------------------------------------------------

struct Separator {
  char character;
  std::string_view name;
};
constexpr std::array kSeparators = {Separator{'\t', "tabs"}, Separator{',', "commas"},
                                    Separator{';', "semicolons"}, Separator{'|', "bars"},
                                    Separator{' ', "blanks"}};

// How many columns nine of ten lines have, at least two; 0: no number.
std::size_t common_columns(const Lines& lines, char separator) {
  std::vector<std::size_t> counts;
  for (const std::string_view line : lines) {
    counts.push_back(count_columns(line, separator));
  }
  std::ranges::sort(counts);
  const std::size_t middle = counts[counts.size() / 2];
  const auto same = static_cast<std::size_t>(std::ranges::count(counts, middle));
  return middle >= 2 && enough(same, counts.size()) ? middle : 0;
}

// The columns found, if they make no known format.
struct Unread {
  std::size_t columns = 0;
  Separator separator{};
  std::string why;
};

// True if the first line has no number, but all others do.
bool looks_like_names(const Lines& lines, char separator) {
  return lines.size() > 1 && !has_number(lines.front(), separator) &&
         std::ranges::all_of(lines.begin() + 1, lines.end(),
                             [&](std::string_view line) { return has_number(line, separator); });
}

// Returns the error text for columns of unknown meaning, with the first row.
std::string which_columns(std::string_view line, char separator) {
  constexpr std::size_t kShown = 20;
  constexpr int kColumnsShown = 8;
  std::string text = "forms; name them, for example --columns time=1,key=2,size=3. The first row:";
  for (int column = 1; !line.empty() && column <= kColumnsShown; ++column) {
    const std::string_view cell = take_field(line, separator);
    text += " " + std::to_string(column) + "=" + std::string(cell.substr(0, kShown));
  }
  return text;
}

// A trace in the form in which others were published. Names that are known say more than a shape.
std::optional<Detection> detect_published(const Lines& lines, const TraceOptions& options) {
  const bool is_named = std::ranges::any_of(kSeparators, [&](const Separator& separator) {
    const auto layout =
        separated_layout({.line = lines.front(),
                          .separator = separator.character,
                          .columns = count_columns(lines.front(), separator.character)},
                         {});
    return layout && layout->header && layout->roles.find("size") != std::string::npos;
  });
  if (is_named || !options.columns.empty()) {
    return std::nullopt;
  }
  for (const Separator& separator : kSeparators) {
    const char character = separator.character;
    if (options.delimiter != 0 && options.delimiter != character) {
      continue;
    }
    const PublishedFit found = published_form(lines, character);
    const Fit fit{
        .fit = found.fit, .lines = lines.size() - (found.header ? 1U : 0U), .first_wrong = {}};
    if (found.format == TraceFormat::kAuto || !fit.good()) {
      continue;
    }
    Detection detection = detected(
        found.format, fit, "columns as published between " + std::string(separator.name) + ", ");
    // A header's names, or words that nothing else has, are needed as well; else it may be
    // anything.
    if (!found.named && !found.header) {
      detection.confidence = Confidence::kLow;
    }
    detection.delimiter = character;
    return detection;
  }
  return std::nullopt;
}

std::optional<Detection> try_separator(const Separator& separator, const Lines& lines,
                                       const TraceOptions& options, Unread& unread) {
  const std::size_t columns = common_columns(lines, separator.character);
  const std::size_t first_columns = count_columns(lines.front(), separator.character);
  const auto layout = separated_layout({.line = lines.front(),
                                        .separator = separator.character,
                                        .columns = std::max(columns, std::size_t{1}),
                                        .second = lines.size() > 1 ? lines[1] : ""},
                                       options);
  const bool header = layout && layout->header && first_columns >= 2;
  // Blanks are in too many texts: there a header must say what is what.
  if (columns == 0 && !header) {
    return std::nullopt;
  }
  if (!layout) {
    unread = {columns, separator, layout.error().message};
    return std::nullopt;
  }
  if (separator.character == ' ' && !header && options.columns.empty()) {
    return std::nullopt;
  }
  // Without names the sizes are what tells columns from text with commas.
  if (!header && options.columns.empty() && looks_like_names(lines, separator.character)) {
    unread = {columns, separator,
              "\"" + std::string(lines.front()) +
                  "\" looks like a header with unknown names: name them with --columns"};
    return std::nullopt;
  }
  constexpr std::size_t kColumnsMax = 4;
  if (!header && options.columns.empty() && columns > kColumnsMax) {
    unread = {columns, separator,
              "no header names them, and they are of none of the published " +
                  which_columns(lines.front(), separator.character)};
    return std::nullopt;
  }
  const Fit fit = try_parser(*layout->parser, std::span(lines).subspan(header ? 1 : 0),
                             {.size = !header && options.columns.empty()});
  if (!fit.good() && !(header && fit.lines == 0)) {
    if (unread.columns == 0) {
      unread = {std::max(columns, first_columns), separator,
                "taken for " + layout->roles + ", " + fit.text() + ": " + fit.first_wrong};
    }
    return std::nullopt;
  }
  Detection found =
      detected(separator.character == '\t' ? TraceFormat::kTsv : TraceFormat::kCsv, fit,
               (header ? "a header with " : "columns taken for ") + layout->roles + " between " +
                   std::string(separator.name) + ", ");
  found.confidence = header ? Confidence::kHigh : found.confidence;
  found.delimiter = separator.character == '\t' ? '\0' : separator.character;
  return found;
}

Result<Detection> detect_delimited(const Lines& lines, const TraceOptions& options,
                                   Unread& unread) {
  std::vector<Separator> separators(kSeparators.begin(), kSeparators.end());
  if (options.delimiter != 0) {
    const auto known = std::ranges::find(kSeparators, options.delimiter, &Separator::character);
    separators = {known != kSeparators.end()
                      ? *known
                      : Separator{options.delimiter, "what --delimiter says"}};
  }
  for (const Separator& separator : separators) {
    if (auto found = try_separator(separator, lines, options, unread)) {
      return *found;
    }
  }
  return Detection{};
}

// --- the rest -----------------------------------------------------------------------------------

// One word a line: keys, if some come again; else it is any list. If half of the lines have a
// separator inside they are not words.
Result<Detection> detect_keys(const Lines& lines) {
  Fit fit;
  std::size_t separated = 0;
  for (const std::string_view line : lines) {
    ++fit.lines;
    fit.fit += line.find_first_of(" \t") == std::string_view::npos ? 1U : 0U;
    separated += line.find_first_of(",;|") != std::string_view::npos ? 1U : 0U;
  }
  if (!fit.good() || 2 * separated >= lines.size()) {
    constexpr std::size_t kShown = 60;
    return unknown_lines("no format of lines fits \"" +
                         std::string(lines.front().substr(0, kShown)) + "\"");
  }
  constexpr std::size_t kAgainMin = 20;  // one in so many
  const std::size_t again =
      lines.size() - std::unordered_set<std::string_view>(lines.begin(), lines.end()).size();
  if (again * kAgainMin < lines.size()) {
    return unknown_lines(
        "it has one word per line, and hardly one repeats: if these are keys, use --format csv");
  }
  return Detection{.format = TraceFormat::kCsv,
                   .confidence = Confidence::kLow,
                   .reason = "one word per line, used as the key, and some repeat"};
}

std::optional<Detection> detect_words(const Lines& lines) {
  const auto wiki = make_wikibench_parser();
  const auto has_url = static_cast<std::size_t>(std::ranges::count_if(
      lines, [](std::string_view line) { return line.find("://") != std::string_view::npos; }));
  if (const Fit fit = try_parser(*wiki, lines); fit.good() && enough(has_url, lines.size())) {
    return detected(TraceFormat::kWikibench, fit);
  }
  // With more columns, the third may be anything.
  constexpr std::size_t kColumnsMax = 4;
  std::vector<std::size_t> words;
  for (std::string_view line : lines) {
    words.push_back(0);
    while (!take_word(line).empty()) ++words.back();
  }
  std::ranges::sort(words);
  const Fit fit = try_parser(*make_lrb_parser(), lines);
  if (fit.good() && words[words.size() / 2] <= kColumnsMax) {
    return detected(TraceFormat::kLrb, fit);
  }
  return std::nullopt;
}

}  // namespace

Result<Detection> detect_lines(const Head& head, const TraceOptions& options) {
  if (head.bytes.find('\n') == std::string_view::npos &&
      head.bytes.find('\r') != std::string_view::npos) {
    return unknown_lines("its lines end in CR; convert them with `tr '\\r' '\\n'`");
  }
  const Lines lines = first_lines(head);
  if (lines.empty()) {
    return unknown_lines(head.whole ? "it has only empty lines and comments"
                                    : "its first 64 KiB are one line, or only comments");
  }
  const auto objects = static_cast<std::size_t>(
      std::ranges::count_if(lines, [](std::string_view line) { return line.starts_with('{'); }));
  if (enough(objects, lines.size())) {
    return detect_json(lines, options);
  }
  if (const Fit fit = try_parser(*make_combined_parser(), lines); fit.good()) {
    return detected(TraceFormat::kCombined, fit);
  }
  if (const Fit fit = try_parser(*make_squid_parser(), lines); fit.good()) {
    return detected(TraceFormat::kSquid, fit);
  }
  if (auto published = detect_published(lines, options)) {
    return *published;
  }
  Unread unread;
  const auto delimited = detect_delimited(lines, options, unread);
  if (!delimited || delimited->format != TraceFormat::kAuto) {
    return delimited;
  }
  if (auto words = detect_words(lines)) {
    return *words;
  }
  if (unread.columns != 0) {
    return unknown_lines("its lines have " + std::to_string(unread.columns) + " columns with " +
                         std::string(unread.separator.name) + " between, but " + unread.why);
  }
  return detect_keys(first_lines(head, SIZE_MAX));
}

}  // namespace encore::sim
