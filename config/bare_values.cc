#include "config/bare_values.h"

#include <algorithm>
#include <map>

#include "config/texts.h"

namespace encore::config {
namespace {

constexpr std::string_view kBlanks = " \t\r";

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(kBlanks);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlanks) + 1 - begin);
}

std::string_view unquoted(std::string_view text) {
  const bool is_quoted = text.size() >= 2 && text.front() == text.back() &&
                         (text.front() == '"' || text.front() == '\'');
  return is_quoted ? text.substr(1, text.size() - 2) : text;
}

// Behind the string that begins at `at`; npos: it does not end.
std::size_t end_of_string(std::string_view text, std::size_t at) {
  const char quote = text[at];
  const std::string three(3, quote);
  const bool is_long = text.substr(at).starts_with(three);
  const std::string_view close = is_long ? std::string_view(three) : text.substr(at, 1);
  for (std::size_t i = at + close.size(); i < text.size(); ++i) {
    if (quote == '"' && text[i] == '\\') {
      ++i;
    } else if (!is_long && text[i] == '\n') {
      return std::string_view::npos;
    } else if (text.substr(i).starts_with(close)) {
      return i + close.size();
    }
  }
  return std::string_view::npos;
}

std::size_t end_of_line(std::string_view text, std::size_t at) {
  return std::min(text.find('\n', at), text.size());
}

// Returns the end of the value that begins here: the end of its line, or of the brackets that it
// opens.
std::size_t end_of_value(std::string_view text, std::size_t at) {
  int depth = 0;
  while (at < text.size()) {
    const char c = text[at];
    if (c == '\n' && depth <= 0) return at;
    if (c == '#') {
      if (depth <= 0) return at;
      at = end_of_line(text, at);
      continue;
    }
    if (c == '"' || c == '\'') {
      const std::size_t end = end_of_string(text, at);
      at = end == std::string_view::npos ? end_of_line(text, at) : end;
      continue;
    }
    if (c == '[' || c == '{') ++depth;
    if (c == ']' || c == '}') --depth;
    ++at;
  }
  return at;
}

class Quoter {
 public:
  Quoter(std::string_view text, const IsValue& is_value) : text_(text), is_value_(is_value) {}

  std::optional<std::string> all() {
    if (!value("") || at_ != text_.size()) return std::nullopt;
    return std::move(out_);
  }

 private:
  // `ends`: characters that end a bare text, in addition to the end of its line.
  bool value(std::string_view ends) {
    blanks();
    if (at_ == text_.size() || ++depth_ > kDepthMax) return false;
    bool done = false;
    switch (text_[at_]) {
      case '[':
        done = list();
        break;
      case '{':
        done = table();
        break;
      case '"':
      case '\'':
        done = copy_to(end_of_string(text_, at_));
        break;
      default:
        done = bare(ends);
        break;
    }
    --depth_;
    return done;
  }

  bool list() {
    copy(1);
    while (true) {
      blanks();
      if (at_ == text_.size()) return false;
      if (text_[at_] == ']') return copy(1);
      if (!value(",]")) return false;
      blanks();
      if (at_ < text_.size() && text_[at_] == ',') copy(1);
    }
  }

  bool table() {
    copy(1);
    while (true) {
      blanks();
      if (at_ == text_.size()) return false;
      if (text_[at_] == '}') return copy(1);
      const std::size_t equals = text_.find('=', at_);
      if (equals == std::string_view::npos) return false;
      copy(equals + 1 - at_);
      if (!value(",}")) return false;
      blanks();
      if (at_ < text_.size() && text_[at_] == ',') copy(1);
    }
  }

  bool bare(std::string_view ends) {
    const std::string stops = std::string(ends) + "\n#\"";
    const std::size_t end = std::min(text_.find_first_of(stops, at_), text_.size());
    const std::string_view word = trimmed(text_.substr(at_, end - at_));
    if (word.empty()) return false;
    out_ += is_value_(word) ? std::string(word) : in_quotes(word);
    at_ += word.size();
    return true;
  }

  // White space, lines and comments.
  void blanks() {
    while (at_ < text_.size()) {
      if (text_[at_] == '#') {
        copy_to(end_of_line(text_, at_));
      } else if (kBlanks.find(text_[at_]) != std::string_view::npos || text_[at_] == '\n') {
        copy(1);
      } else {
        return;
      }
    }
  }
  bool copy_to(std::size_t end) { return end != std::string_view::npos && copy(end - at_); }
  bool copy(std::size_t bytes) {
    out_ += text_.substr(at_, bytes);
    at_ += bytes;
    return true;
  }

  static constexpr int kDepthMax = 8;

  std::string_view text_;
  const IsValue& is_value_;
  std::string out_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

// Returns the text in the brackets of a header.
std::string_view header_name(std::string_view line) {
  line = trimmed(line.substr(0, line.find('#')));
  const std::size_t begin = line.find_first_not_of('[');
  if (begin == std::string_view::npos) return {};
  line.remove_prefix(begin);
  return unquoted(trimmed(line.substr(0, line.find(']'))));
}

}  // namespace

std::optional<Assignment> assignment_at(std::string_view text, std::size_t place) {
  Assignment found;
  std::map<std::string, std::size_t, std::less<>> elements;
  std::size_t at = 0;
  while (at < text.size() && at <= place) {
    const std::size_t line_end = end_of_line(text, at);
    const std::string_view line = trimmed(text.substr(at, line_end - at));
    if (line.empty() || line.starts_with('#')) {
      at = line_end + 1;
      continue;
    }
    if (line.starts_with('[')) {
      found.section = header_name(line);
      found.element = line.starts_with("[[") ? elements[found.section]++ : 0;
      at = line_end + 1;
      continue;
    }
    const std::size_t equals = text.find('=', at);
    if (equals >= line_end) {  // also: nowhere
      at = line_end + 1;
      continue;
    }
    const std::size_t end = end_of_value(text, equals + 1);
    if (place <= end) {
      const std::string_view value = text.substr(equals + 1, end - equals - 1);
      const std::string_view kept = trimmed(value);
      if (kept.empty()) return std::nullopt;
      found.key = unquoted(trimmed(text.substr(at, equals - at)));
      found.begin = static_cast<std::size_t>(kept.data() - text.data());
      found.end = found.begin + kept.size();
      const std::size_t dot = found.key.find('.');
      if (found.section.empty() && dot != std::string::npos) {
        found.section = found.key.substr(0, dot);
        found.key.erase(0, dot + 1);
      }
      return found;
    }
    at = end_of_line(text, end) + 1;
  }
  return std::nullopt;
}

std::optional<std::string> with_quotes(std::string_view value, const IsValue& is_value) {
  if (auto done = Quoter(value, is_value).all()) return done;
  // A text that begins as a list does and is none, as [::1]:80.
  const bool is_one = value.find_first_of("\"'\n#") == std::string_view::npos;
  if (!is_one || trimmed(value).empty()) return std::nullopt;
  return in_quotes(trimmed(value));
}

}  // namespace encore::config
