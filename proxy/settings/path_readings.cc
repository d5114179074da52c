#include "proxy/settings/path_readings.h"

#include <array>
#include <charconv>
#include <cstdint>
#include <optional>
#include <utility>

#include "proxy/http/uri.h"

namespace encore::server {
namespace {

constexpr bool is_control(char32_t c) { return c < 0x20 || c == 0x7f; }

// The byte that an escape at the beginning of `text` stands for; nothing: there is no escape.
struct Escape {
  char32_t value = 0;
  std::size_t size = 0;
};
std::optional<Escape> escape_at(std::string_view text) {
  if (!text.starts_with('%')) return std::nullopt;
  const auto read = [text](std::size_t at, std::size_t digits) -> std::optional<Escape> {
    if (text.size() < at + digits) return std::nullopt;
    std::uint32_t value = 0;
    const char* const begin = text.data() + at;
    if (std::from_chars(begin, begin + digits, value, 16).ptr != begin + digits) {
      return std::nullopt;
    }
    return Escape{.value = value, .size = at + digits};
  };
  if (text.substr(1).starts_with('u') || text.substr(1).starts_with('U')) return read(2, 4);
  return read(1, 2);
}

// The ASCII that a lax reader takes a character for: itself, or of its full-width form.
std::optional<char> ascii_of(char32_t character) {
  constexpr char32_t kWideFirst = 0xff01;  // for "!"
  constexpr char32_t kWideLast = 0xff5e;   // for "~"
  if (character < 0x80) return static_cast<char>(character);
  if (character < kWideFirst || character > kWideLast) return std::nullopt;
  return static_cast<char>(character - kWideFirst + '!');
}

// Calls put(byte) for each byte of UTF-8, or for the ASCII that stands in more bytes than it needs,
// or in its full-width form.
template <typename Put>
void each_plain_byte(std::string_view bytes, Put&& put) {
  while (!bytes.empty()) {
    const auto lead = static_cast<unsigned char>(bytes.front());
    const std::size_t size = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc0 ? 2 : 1;
    char32_t value = size == 1 ? lead : lead & (0x7fU >> size);
    std::size_t used = 1;
    for (; used < size && used < bytes.size(); ++used) {
      const auto next = static_cast<unsigned char>(bytes[used]);
      if ((next & 0xc0U) != 0x80) break;
      value = value << 6U | (next & 0x3fU);
    }
    const auto ascii = size > 1 && used == size ? ascii_of(value) : std::nullopt;
    put(ascii.value_or(bytes.front()));
    bytes.remove_prefix(ascii ? size : 1);
  }
}

void put_escaped(unsigned char byte, std::string& out) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  out += '%';
  out += kDigits[byte >> 4U];
  out += kDigits[byte & 0xfU];
}

// True for a byte that a path has only as an escape, or that would end the path.
bool stays_escaped(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte <= 0x20 || byte >= 0x7f || c == '?' || c == '#';
}

// The bytes of a row of escapes at the beginning of `text`, which loses them.
std::string take_escapes(std::string_view& text) {
  std::string bytes;
  for (auto escape = escape_at(text); escape; escape = escape_at(text)) {
    text.remove_prefix(escape->size);
    if (escape->value < 0x100) {
      bytes += static_cast<char>(escape->value);
    } else {
      bytes += ascii_of(escape->value).value_or('_');  // '_' for any other one
    }
  }
  return bytes;
}

// Each escape of visible ASCII once, in whichever way it stands there: "%252F" is "%2F".
std::string unescaped(std::string_view path) {
  std::string text;
  text.reserve(path.size());
  while (!path.empty()) {
    const std::size_t run = std::min(path.find('%'), path.size());
    text += path.substr(0, run);
    path.remove_prefix(run);
    const std::string bytes = take_escapes(path);
    each_plain_byte(bytes, [&text](char c) {
      if (stays_escaped(c)) {
        put_escaped(static_cast<unsigned char>(c), text);
      } else {
        text += c;
      }
    });
    if (bytes.empty() && !path.empty()) {  // a "%" that begins no escape
      text += '%';
      path.remove_prefix(1);
    }
  }
  return text;
}

std::string with_single_slashes(std::string_view path) {
  std::string text;
  text.reserve(path.size());
  for (const char c : path) {
    const bool is_slash = c == '/' || c == '\\';
    if (is_slash && text.ends_with('/')) continue;
    text += is_slash ? '/' : c;
  }
  return text;
}

// Calls change(segment) for each; what it returns stands in its place.
template <typename Change>
std::string each_segment(std::string_view path, Change&& change) {
  std::string text;
  text.reserve(path.size());
  while (true) {
    const std::size_t size = std::min(path.find('/'), path.size());
    text += change(path.substr(0, size));
    if (size == path.size()) return text;
    text += '/';
    path.remove_prefix(size + 1);
  }
}

std::string without_parameters(std::string_view path) {
  return each_segment(path, [](std::string_view segment) {
    return segment.substr(0, std::min(segment.find(';'), segment.size()));
  });
}

// As some file systems drop them. Dot segments stay.
std::string without_ends(std::string_view path) {
  return each_segment(path, [](std::string_view segment) {
    while (segment.ends_with("%20")) segment.remove_suffix(3);
    if (segment == "." || segment == "..") return segment;
    while (segment.ends_with('.') || segment.ends_with("%20")) {
      segment.remove_suffix(segment.ends_with('.') ? 1 : 3);
    }
    return segment;
  });
}

// Copies the path up to the first byte or escape for which `ends`, without those that `drops`
// names.
template <typename Ends, typename Drops>
std::string copied(std::string_view path, Ends&& ends, Drops&& drops) {
  std::string text;
  text.reserve(path.size());
  while (!path.empty()) {
    const auto escape = escape_at(path);
    const char32_t value = escape ? escape->value : static_cast<unsigned char>(path.front());
    const std::string_view unit = path.substr(0, escape ? escape->size : 1);
    path.remove_prefix(unit.size());
    if (ends(value)) break;
    if (!drops(value)) text += unit;
  }
  return text;
}

std::string without_controls(std::string_view path) {
  return copied(path, [](char32_t) { return false; }, is_control);
}

std::string cut(std::string_view path) {
  return copied(
      path, [](char32_t c) { return c == 0 || c == '?' || c == '#'; },
      [](char32_t) { return false; });
}

// RFC 3986 5.2.4. `found`: there were some.
std::string without_dots(std::string with, bool& found) {
  if (!with.contains("/.")) return with;
  std::string_view path = with;
  std::string text;
  text.reserve(path.size());
  while (!path.empty()) {
    const std::size_t end = std::min(path.find('/', 1), path.size());
    const std::string_view segment = path.substr(0, end);  // with the slash in front of it
    path.remove_prefix(end);
    const bool is_up = segment == "/..";
    if (!is_up && segment != "/.") {
      text += segment;
      continue;
    }
    found = true;
    if (is_up) text.resize(std::min(text.rfind('/'), text.size()));
    if (path.empty()) text += '/';
  }
  return text;
}

bool has_percent(std::string_view path) { return path.contains('%'); }
bool has_semicolon(std::string_view path) { return path.contains(';'); }
bool has_slashes(std::string_view path) { return path.contains("//") || path.contains('\\'); }
bool has_ends(std::string_view path) {
  return path.ends_with('.') || path.contains("./") || path.contains("%20");
}

// A change of form, and which paths it may change: to tell is cheaper than to copy one.
struct Change {
  std::string (*make)(std::string_view);
  bool (*may_change)(std::string_view);
};
constexpr std::array kChanges = {Change{&unescaped, &has_percent},
                                 Change{&with_single_slashes, &has_slashes},
                                 Change{&without_parameters, &has_semicolon},
                                 Change{&without_ends, &has_ends},
                                 Change{&without_controls, &has_percent},
                                 Change{&cut, &has_percent}};

// True if some change may make another text of it.
bool is_plain(std::string_view path) {
  for (std::size_t i = 0; i < path.size(); ++i) {
    const char c = path[i];
    const bool ends = i + 1 == path.size() || path[i + 1] == '/';
    const bool is_row = c == '/' && ends && i + 1 != path.size();
    if (c == '%' || c == ';' || c == '\\' || is_row || (c == '.' && ends)) {
      return false;
    }
  }
  return true;
}

// True if a segment as it was sent is one of dots by its escapes.
bool is_escaped_dots(std::string_view segment) {
  if (!segment.contains('%')) return false;
  const std::string plain = unescaped(segment);
  return plain == "." || plain == "..";
}

// The normal form for who takes dots that are written as escapes for names: the escape stays one.
std::string normal_with_names(std::string_view as_sent) {
  const std::string text = each_segment(as_sent, [](std::string_view segment) {
    std::string out;
    const bool is_name = is_escaped_dots(segment);
    for (const char c : segment) {
      if (is_name && c == '%') {
        out += "%25";
      } else {
        out += c;
      }
    }
    return out;
  });
  http::Target target;
  target.authority.host = "x";
  target.path = text;
  std::string key(http::key_bytes_max(target), '\0');
  const http::KeyText parts = http::write_key(target, {}, key);
  return key.substr(parts.path, parts.bytes - parts.path);
}

}  // namespace

PathReadings other_readings(std::string_view path, std::string_view as_sent) {
  PathReadings readings;
  std::vector<std::string> all = {std::string(path)};
  const auto add = [&](std::string reading) {
    if (std::ranges::find(all, reading) != all.end()) return;
    all.push_back(std::move(reading));
  };
  if (has_readings_as_sent(as_sent)) {
    readings.reveals_dots = true;
    add(normal_with_names(as_sent));
  } else if (is_plain(path)) {
    return readings;
  }
  for (std::size_t i = 0; i < all.size() && readings.is_complete; ++i) {
    for (const Change& change : kChanges) {
      if (!change.may_change(all[i])) continue;
      readings.copied_bytes += all[i].size();
      if (readings.copied_bytes > PathReadings::kCopiedBytesMax) break;
      add(without_dots(change.make(all[i]), readings.reveals_dots));
    }
    readings.is_complete =
        all.size() <= PathReadings::kMax && readings.copied_bytes <= PathReadings::kCopiedBytesMax;
  }
  all.erase(all.begin());
  readings.others = std::move(all);
  return readings;
}

bool has_readings_as_sent(std::string_view as_sent) {
  // In the usual case there is no escape at all.
  if (!as_sent.contains('%')) return false;
  while (!as_sent.empty()) {
    const std::size_t size = std::min(as_sent.find('/'), as_sent.size());
    if (is_escaped_dots(as_sent.substr(0, size))) return true;
    as_sent.remove_prefix(std::min(size + 1, as_sent.size()));
  }
  return false;
}

std::string normal_glob(std::string_view glob) {
  std::string text;
  for (std::size_t i = 0; i < glob.size(); ++i) {
    const auto byte = static_cast<unsigned char>(glob[i]);
    const auto escape = escape_at(glob.substr(i));
    if (escape && escape->size == 3 && escape->value < 0x100) {
      put_escaped(static_cast<unsigned char>(escape->value), text);
      i += 2;
    } else if (byte <= 0x20 || byte >= 0x7f) {
      put_escaped(byte, text);
    } else {
      text += glob[i];
    }
  }
  return text;
}

std::vector<std::string> normal_globs(const std::vector<std::string>& globs) {
  std::vector<std::string> normal;
  for (const std::string& glob : globs) normal.push_back(normal_glob(glob));
  return normal;
}

bool names_its_form(std::string_view glob) {
  return glob.find_first_of("%;\\") != std::string_view::npos || glob.contains("//");
}

}  // namespace encore::server
