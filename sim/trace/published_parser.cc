// The forms in which large traces were published, most of them without a header: Twitter, Tencent,
// Alibaba, MSR Cambridge, SPC, IBM, Wikimedia, Meta. The shape of the columns identifies a form.
//
// An object of a block trace is an offset of a volume; reads and writes both count, for a write
// brings its block into the cache as well. For key-value and object stores the operation is the
// method: reads are GET. Why the shape identifies a form: docs/decisions/0342.
#include <algorithm>
#include <array>
#include <chrono>
#include <string>
#include <vector>

#include "sim/trace/line_parser.h"

namespace encore::sim {
namespace {

// One letter a column. `shape`: t time, i whole number, n the same with a sign, k any text but an
// empty one, o operation of a key-value cache, w read or write, b 0 or 1, m ticks of 100 ns since
// 1601, g type of an image, f number with a fraction, r operation of an object store, d date of 14
// digits, p kind of a terminal; * at the end: more may follow. `roles`: T time, K part of the key,
// A the same and an offset, S size (summed), V size of the value (summed), O operation, L ttl, C
// count, . nothing.
struct Form {
  TraceFormat format;
  std::string_view shape;
  std::string_view roles;
  bool named = true;  // a column has words that nothing else has
};
constexpr std::array kForms = {
    Form{TraceFormat::kTwitter, "tkiikoi", "TKSV.OL"},
    Form{TraceFormat::kMsr, "mkiwiii", "TKK.AS."},
    Form{TraceFormat::kAlibabaBlock, "iwiit", "K.AST"},
    Form{TraceFormat::kSpc, "iiiwt*", "KAS.T"},
    Form{TraceFormat::kIbmCos, "trki*", "TOKS"},
    Form{TraceFormat::kIbmCos, "trk", "TOK"},
    Form{TraceFormat::kWikiCdn, "tkgif", "TK.S."},
    Form{TraceFormat::kMetaKv, "koiii", "KOVC."},
    Form{TraceFormat::kMetaKv, "tkioiiii*", "TK.OCV.L"},
    Form{TraceFormat::kTencentPhoto, "dkkkibpi", "TKKKS..."},
    Form{TraceFormat::kMetaCdn, "tkkiiinnnk*", "TK.S....L.", false},
    Form{TraceFormat::kTencentBlock, "tiibi", "TAS.K", false},
    Form{TraceFormat::kWikiCdn, "tkif", "TKS.", false},
};

template <typename Words>
bool is_one_of(const Words& words, std::string_view text) {
  return std::ranges::find(words, text) != words.end();
}

constexpr std::array<std::string_view, 12> kOperations = {"get",     "gets", "set",    "add",
                                                          "replace", "cas",  "append", "prepend",
                                                          "delete",  "incr", "decr",   "get_lease"};
constexpr std::array<std::string_view, 6> kReadWrite = {"r", "w", "read", "write", "rs", "ws"};
constexpr std::array<std::string_view, 12> kImages = {"jpeg",   "png",  "gif",  "svg+xml",
                                                      "x-icon", "tiff", "webp", "vnd.djvu",
                                                      "x-xcf",  "-",    "jpg",  "bmp"};
constexpr std::array<std::string_view, 2> kTerminals = {"phone", "pc"};

std::string lower(std::string_view text) {
  std::string low(text);
  std::ranges::transform(low, low.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return low;
}

bool is_digits(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

bool fits(char shape, std::string_view text) {
  std::int64_t time = 0;
  double number = 0;
  switch (shape) {
    case 't':
      return read_time(text, time);
    case 'i':
      return is_digits(text);
    case 'n':
      return is_digits(text.starts_with('-') ? text.substr(1) : text);
    case 'o':
      return is_one_of(kOperations, lower(text));
    case 'w':
      return is_one_of(kReadWrite, lower(text));
    case 'b':
      return text == "0" || text == "1";
    case 'm':
      // Up to the last nanosecond that 64 bits hold.
      return is_digits(text) && text.size() == 18 && text <= "208678000000000000";
    case 'g':
      return is_one_of(kImages, lower(text));
    case 'f':
      return text.find('.') != std::string_view::npos && read_number(text, number);
    case 'r':
      return text.starts_with("REST.");
    case 'd':
      return is_digits(text) && text.size() == 14 && text.starts_with("20");
    case 'p':
      return is_one_of(kTerminals, lower(text));
    default:
      return !text.empty();
  }
}

using Cells = std::vector<std::string_view>;

constexpr std::uint64_t kSector = 512;

void split(std::string_view line, char separator, Cells& cells) {
  cells.clear();
  while (line.data() != nullptr) {
    std::string_view cell = separator == ' ' ? take_word(line) : take_field(line, separator);
    while (cell.starts_with(' ')) cell.remove_prefix(1);
    while (cell.ends_with(' ')) cell.remove_suffix(1);
    cells.push_back(cell);
  }
  // Blanks at the end of a line are no column.
  while (separator == ' ' && !cells.empty() && cells.back().empty()) cells.pop_back();
}

bool fits(const Form& form, const Cells& cells) {
  std::string_view shape = form.shape;
  const bool is_open = shape.ends_with('*');
  shape.remove_suffix(is_open ? 1 : 0);
  if (cells.size() < shape.size() || (cells.size() > shape.size() && !is_open)) {
    return false;
  }
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (!fits(shape[i], cells[i])) return false;
  }
  return true;
}

// Ticks of 100 ns since 1601, or YYYYMMDDhhmmss: nanoseconds since 1970.
std::int64_t time_of_ticks(std::string_view text) {
  constexpr std::int64_t kTo1970 = 116'444'736'000'000'000;
  std::int64_t ticks = 0;
  read_number(text, ticks);
  return (ticks - std::min(ticks, kTo1970)) * 100;
}
std::int64_t time_of_date(std::string_view text) {
  const auto part = [&](std::size_t at, std::size_t size) {
    unsigned number = 0;
    read_number(text.substr(at, size), number);
    return number;
  };
  const std::chrono::year_month_day date{std::chrono::year{static_cast<int>(part(0, 4))},
                                         std::chrono::month{part(4, 2)},
                                         std::chrono::day{part(6, 2)}};
  const std::int64_t days = std::chrono::sys_days{date}.time_since_epoch().count();
  return (((days * 24 + part(8, 2)) * 60 + part(10, 2)) * 60 + part(12, 2)) * 1'000'000'000;
}

class PublishedParser final : public LineParser {
 public:
  PublishedParser(TraceFormat format, char separator, std::uint64_t size_unit)
      : format_(format), separator_(separator), size_unit_(size_unit) {}

  const char* parse(std::string_view line, LineFields& fields) override {
    split(line, separator_, cells_);
    const auto form = std::ranges::find_if(
        kForms, [&](const Form& one) { return one.format == format_ && fits(one, cells_); });
    if (form == kForms.end()) {
      return "other columns than its format has";
    }
    key_.clear();
    volume_.clear();
    bool has_value = true;
    for (std::size_t i = 0; i < form->roles.size(); ++i) {
      if (const char* wrong = take(*form, i, fields, has_value)) return wrong;
    }
    fields.key = key_;
    fields.volume = volume_;
    if (!method_.empty()) {
      fields.method = method_;
      note_operation(fields, has_value);
      // A read says nothing of how long its object lives.
      if (!fields.is_write && fields.ttl_seconds == 0) fields.ttl_seconds = kNoTtl;
    }
    return nullptr;
  }

 private:
  static void append(std::string& key, std::string_view part) {
    key += key.empty() ? "" : ":";
    key += part;
  }
  // SPC counts offsets in sectors, and sizes in bytes.
  std::uint64_t offset_unit() const { return format_ == TraceFormat::kSpc ? kSector : size_unit_; }

  const char* take(const Form& form, std::size_t at, LineFields& fields, bool& has_value) {
    const std::string_view text = cells_[at];
    std::uint64_t number = 0;
    switch (form.roles[at]) {
      case 'T':
        if (form.shape[at] == 'm') {
          fields.time_ns = time_of_ticks(text);
        } else if (form.shape[at] == 'd') {
          fields.time_ns = time_of_date(text);
        } else {
          read_time(text, fields.time_ns);
        }
        return nullptr;
      case 'A':
        if (!read_number(text, number) || number > UINT64_MAX / offset_unit()) {
          return "an offset beyond 2^64";
        }
        fields.offset_bytes = number * offset_unit();
        append(key_, text);
        return nullptr;
      case 'K':
        append(key_, text);
        append(volume_, text);
        return nullptr;
      case 'S':
      case 'V':
        if (!read_number(text, number) || number > kSizeMax) return "a size above a petabyte";
        fields.has_size = true;
        fields.size_bytes += number * size_unit_;
        has_value = has_value && (form.roles[at] == 'S' || number != 0);
        return nullptr;
      case 'O':
        method_ = method_of(text);
        return nullptr;
      case 'L':
        return text.starts_with('-') || read_number(text, fields.ttl_seconds)
                   ? nullptr
                   : "no number in the ttl's column";
      case 'C':
        return read_number(text, fields.count) && fields.count <= kRequestsMax
                   ? nullptr
                   : "no number up to a million in the count's column";
      default:
        return nullptr;
    }
  }

  static constexpr std::uint64_t kRequestsMax = 1'000'000;
  TraceFormat format_;
  char separator_;
  std::uint64_t size_unit_;
  Cells cells_;
  std::string key_;
  std::string volume_;
  std::string method_;
};

// Tencent's blocks have their sizes in sectors. If each of the first is a multiple of 512 they are
// bytes already.
std::uint64_t unit_of(TraceFormat format, std::string_view ahead, char separator) {
  if (format != TraceFormat::kTencentBlock) {
    return 1;
  }
  Cells cells;
  while (!ahead.empty()) {
    const bool ends = ahead.find('\n') != std::string_view::npos;
    split(take_field(ahead, '\n'), separator, cells);
    std::uint64_t size = 0;
    if (ends && cells.size() > 2 && read_number(cells[2], size) && size % kSector != 0) {
      return kSector;
    }
  }
  return 1;
}

}  // namespace

bool is_published(TraceFormat format) {
  return std::ranges::find(kForms, format, &Form::format) != kForms.end();
}

bool is_of_blocks(TraceFormat format) {
  return format == TraceFormat::kVscsi || std::ranges::any_of(kForms, [&](const Form& form) {
           return form.format == format && form.roles.find('A') != std::string_view::npos;
         });
}

bool has_number(std::string_view line, char separator) {
  while (!line.empty()) {
    double number = 0;
    if (read_number(separator == ' ' ? take_word(line) : take_field(line, separator), number)) {
      return true;
    }
  }
  return false;
}

std::string method_of(std::string_view operation) {
  std::string method(operation);
  std::ranges::transform(method, method.begin(), [](char c) {
    return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  });
  constexpr std::string_view kRest = "REST.";
  if (method.starts_with(kRest)) {
    method = method.substr(kRest.size(), method.find('.', kRest.size()) - kRest.size());
  }
  return method == "GETS" || method.starts_with("GET_") ? "GET" : method;
}

void note_operation(LineFields& fields, bool has_value) {
  fields.is_write = fields.method == "SET" || fields.method == "ADD" || fields.method == "CAS" ||
                    fields.method == "REPLACE";
  fields.awaits_size = fields.method == "GET" && fields.has_size && !has_value;
}

PublishedFit published_form(std::span<const std::string_view> lines, char separator) {
  PublishedFit best;
  const bool header = lines.size() > 1 && !has_number(lines.front(), separator);
  std::vector<std::pair<TraceFormat, std::size_t>> counts;
  Cells cells;
  std::array<std::size_t, kForms.size()> fit{};
  for (const std::string_view line : lines.subspan(header ? 1 : 0)) {
    split(line, separator, cells);
    for (std::size_t i = 0; i < kForms.size(); ++i) {
      fit[i] += fits(kForms[i], cells) ? 1U : 0U;
    }
  }
  for (std::size_t i = 0; i < kForms.size(); ++i) {
    std::size_t sum = 0;  // all shapes of the format
    for (std::size_t j = 0; j < kForms.size(); ++j) {
      sum += kForms[j].format == kForms[i].format ? fit[j] : 0;
    }
    if (fit[i] != 0 && sum > best.fit) {
      best = {.format = kForms[i].format, .fit = sum, .named = kForms[i].named, .header = header};
    }
  }
  return best;
}

Result<std::unique_ptr<LineParser>> make_published_parser(Input& input, TraceFormat format,
                                                          char separator) {
  constexpr std::size_t kAhead = 64 * 1024;
  auto ahead = input.peek(kAhead);
  if (!ahead) {
    return std::unexpected(ahead.error());
  }
  if (separator == 0) {
    separator = format == TraceFormat::kIbmCos ? ' ' : format == TraceFormat::kWikiCdn ? '\t' : ',';
  }
  const std::uint64_t unit = unit_of(format, *ahead, separator);
  if (!has_number(ahead->substr(0, ahead->find('\n')), separator) && !ahead->starts_with('#')) {
    std::string_view header;
    if (auto taken = input.next_line(header); !taken) {
      return std::unexpected(taken.error());
    }
  }
  return std::make_unique<PublishedParser>(format, separator, unit);
}

}  // namespace encore::sim
