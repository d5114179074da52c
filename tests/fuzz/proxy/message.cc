#include "tests/fuzz/proxy/message.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <ctime>
#include <utility>

namespace encore::proxyfuzz {
namespace {

constexpr std::int64_t kForever = std::int64_t{1} << 31;

constexpr char lower_of(char c) noexcept {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
}

// By a character's number: this is asked for each of a name.
constexpr auto kTokenChars = [] {
  std::array<bool, 256> all{};
  for (const char c : std::string_view("!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyz"
                                       "ABCDEFGHIJKLMNOPQRSTUVWXYZ")) {
    all[static_cast<unsigned char>(c)] = true;
  }
  return all;
}();

bool is_token_char(char c) noexcept { return kTokenChars[static_cast<unsigned char>(c)]; }

bool is_value_char(char c) noexcept {
  return c == '\t' || (static_cast<unsigned char>(c) >= 0x20 && c != 0x7f);
}

// One field line without its end.
bool read_field(std::string_view line, Fields& fields, std::string& error) {
  const std::size_t colon = line.find(':');
  if (colon == std::string_view::npos || colon == 0 ||
      !std::ranges::all_of(line.substr(0, colon), is_token_char)) {
    error = "a field line without a name: \"" + std::string(line) + "\"";
    return false;
  }
  const std::string_view value = trim(line.substr(colon + 1));
  if (!std::ranges::all_of(value, is_value_char)) {
    error = "a control character in the field \"" + std::string(line.substr(0, colon)) + "\"";
    return false;
  }
  fields.push_back({std::string(line.substr(0, colon)), std::string(value)});
  return true;
}

std::vector<std::string> split(std::string_view text) {
  std::vector<std::string> parts;
  std::string part;
  bool quoted = false;
  for (const char c : text) {
    if (c == '"') quoted = !quoted;
    if (c != ',' || quoted) {
      part += c;
      continue;
    }
    if (const auto trimmed = trim(part); !trimmed.empty()) parts.emplace_back(trimmed);
    part.clear();
  }
  if (const auto trimmed = trim(part); !trimmed.empty()) parts.emplace_back(trimmed);
  return parts;
}

std::string_view unquoted(std::string_view text) {
  if (text.size() >= 2 && text.front() == '"' && text.back() == '"') {
    text = text.substr(1, text.size() - 2);
  }
  return text;
}

void add_directive(std::string_view member, Directives& out) {
  const std::size_t equals = std::min(member.find('='), member.size());
  const std::string name = lower(trim(member.substr(0, equals)));
  const bool has_value = equals < member.size();
  const std::string_view value = has_value ? unquoted(trim(member.substr(equals + 1))) : "";
  if (name == "no-store") out.no_store = true;
  if (name == "public") out.is_public = true;
  if (name == "must-revalidate") out.must_revalidate = true;
  if (name == "proxy-revalidate") out.proxy_revalidate = true;
  if (name == "only-if-cached") out.only_if_cached = true;
  if (name == "max-age") out.max_age = number(value).value_or(0);
  if (name == "s-maxage") out.s_maxage = number(value).value_or(0);
  if (name == "min-fresh") out.min_fresh = number(value);
  if (name == "max-stale") out.max_stale = has_value ? number(value).value_or(0) : kForever;
  if (name == "stale-while-revalidate") out.swr = number(value);
  if (name == "stale-if-error") out.sie = number(value);
  if (name == "private" || name == "no-cache") {
    const bool is_private = name == "private";
    if (!has_value) (is_private ? out.is_private : out.no_cache) = true;
    for (std::string& field : split(lower(value))) {
      (is_private ? out.private_fields : out.no_cache_fields).push_back(std::move(field));
    }
  }
}

}  // namespace

bool same_but_for_case(std::string_view a, std::string_view b) noexcept {
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i] != b[i] && lower_of(a[i]) != lower_of(b[i])) return false;
  }
  return true;
}

std::string lower(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(), lower_of);
  return out;
}

std::string_view trim(std::string_view text) noexcept {
  const std::size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t") + 1 - begin);
}

const Field* find(const Fields& fields, std::string_view name) noexcept {
  const auto found = std::ranges::find_if(
      fields, [name](const Field& field) { return same_name(field.name, name); });
  return found == fields.end() ? nullptr : &*found;
}

std::size_t count(const Fields& fields, std::string_view name) noexcept {
  return static_cast<std::size_t>(std::ranges::count_if(
      fields, [name](const Field& field) { return same_name(field.name, name); }));
}

std::vector<std::string> members(const Fields& fields, std::string_view name) {
  std::vector<std::string> all;
  for (const Field& field : fields) {
    if (!same_name(field.name, name)) continue;
    for (std::string& member : split(field.value)) all.push_back(std::move(member));
  }
  return all;
}

std::optional<std::int64_t> number(std::string_view text) noexcept {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || text.empty()) return std::nullopt;
  return value;
}

void append_line(const Field& field, std::string& out) {
  out += field.name;
  out += ": ";
  out += field.value;
  out += "\r\n";
}

std::string http_date(std::int64_t unix_seconds) {
  const auto time = static_cast<std::time_t>(unix_seconds);
  std::tm parts{};
  gmtime_r(&time, &parts);
  std::array<char, 40> text;
  const std::size_t size =
      std::strftime(text.data(), text.size(), "%a, %d %b %Y %H:%M:%S GMT", &parts);
  return {text.data(), size};
}

std::size_t read_head(std::string_view bytes, Head& head, std::string& error) {
  const std::size_t end = bytes.find("\r\n\r\n");
  if (end == std::string_view::npos) {
    if (bytes.size() > 262144) error = "a head that does not end";
    return error.empty() ? 0 : bytes.size();
  }
  head.fields.reserve(24);
  std::string_view rest = bytes.substr(0, end + 2);
  bool first = true;
  while (!rest.empty() && error.empty()) {
    const std::string_view line = rest.substr(0, rest.find("\r\n"));
    rest.remove_prefix(line.size() + 2);
    if (line.contains('\r') || line.contains('\n')) error = "a bare CR or LF";
    if (std::exchange(first, false)) {
      head.start = line;
      if (!std::ranges::all_of(line, is_value_char)) error = "a control character in line 1";
    } else if (error.empty()) {
      (void)read_field(line, head.fields, error);
    }
  }
  return end + 4;
}

bool BodyReader::is_done() const noexcept {
  switch (kind_) {
    case Kind::kNone:
      return true;
    case Kind::kLength:
      return left_ == 0;
    case Kind::kChunked:
    case Kind::kFrames:
      return stage_ == Stage::kDone;
    case Kind::kClose:
      return false;
  }
  return false;
}

// Collects a line; line_done_ says whether it has ended.
bool BodyReader::take_line(std::string_view& bytes, std::string& error) {
  if (std::exchange(line_done_, false)) line_.clear();
  const std::size_t end = bytes.find('\n');
  line_ += bytes.substr(0, end);
  bytes.remove_prefix(end == std::string_view::npos ? bytes.size() : end + 1);
  if (end == std::string_view::npos) return true;
  if (line_.empty() || line_.back() != '\r') {
    error = "a line of the chunked coding without CR";
    return false;
  }
  line_.pop_back();
  line_done_ = true;
  return true;
}

bool BodyReader::next(std::string_view& bytes, std::string_view& content, std::string& error) {
  content = {};
  if (bytes.empty() || is_done()) return true;
  if (kind_ != Kind::kChunked || stage_ == Stage::kData) {
    const bool limited = kind_ == Kind::kLength || kind_ == Kind::kChunked;
    const auto size = limited
                          ? static_cast<std::size_t>(std::min<std::uint64_t>(left_, bytes.size()))
                          : bytes.size();
    content = bytes.substr(0, size);
    bytes.remove_prefix(size);
    if (limited) left_ -= size;
    if (kind_ == Kind::kChunked && left_ == 0) stage_ = Stage::kDataEnd;
    return true;
  }
  if (!take_line(bytes, error)) return false;
  if (!line_done_) return true;
  if (stage_ == Stage::kDataEnd) {
    stage_ = Stage::kSize;
    if (!line_.empty()) error = "bytes behind a chunk: \"" + line_ + "\"";
    return error.empty();
  }
  if (stage_ == Stage::kTrailers) {
    if (!line_.empty()) return read_field(line_, trailers_, error);
    stage_ = Stage::kDone;
    return true;
  }
  const auto [end, failed] = std::from_chars(line_.data(), line_.data() + line_.size(), left_, 16);
  if (failed != std::errc{} || (end != line_.data() + line_.size() && *end != ';')) {
    error = "a chunk size of \"" + line_ + "\"";
    return false;
  }
  stage_ = left_ == 0 ? Stage::kTrailers : Stage::kData;
  return true;
}

Directives directives_of(const Fields& fields) {
  Directives out;
  for (const std::string& member : members(fields, "Cache-Control")) add_directive(member, out);
  return out;
}

}  // namespace encore::proxyfuzz
