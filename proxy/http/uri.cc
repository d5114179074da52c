#include "proxy/http/uri.h"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <limits>
#include <utility>

#include "base/check.h"
#include "proxy/http/raw_bytes.h"
#include "proxy/http/scan.h"

namespace encore::http {
namespace {

consteval std::array<bool, 256> make_host_table() {
  std::array<bool, 256> table{};
  for (std::size_t c = 0; c < table.size(); ++c) {
    table[c] = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
               c == '-' || c == '.' || c == '_';
  }
  return table;
}
constexpr std::array<bool, 256> kHostTable = make_host_table();

bool is_host_char(char c) noexcept { return kHostTable[static_cast<unsigned char>(c)]; }

bool is_ipv6(std::string_view text) noexcept {
  std::array<char, INET6_ADDRSTRLEN> copy{};
  if (text.size() >= copy.size()) return false;
  std::ranges::copy(text, copy.begin());
  in6_addr address{};
  return ::inet_pton(AF_INET6, copy.data(), &address) == 1;
}

bool parse_port(std::string_view text, std::uint16_t& port) noexcept {
  std::uint32_t value = 0;
  if (text.size() > 5 || text.empty()) return false;
  for (const char c : text) {
    if (!is_digit(c)) return false;
    value = value * 10 + static_cast<std::uint32_t>(c - '0');
  }
  if (value == 0 || value > std::numeric_limits<std::uint16_t>::max()) return false;
  port = static_cast<std::uint16_t>(value);
  return true;
}

// Splits "/path?query".
void split_path(std::string_view text, Target& target) noexcept {
  const std::size_t mark = text.find('?');
  target.path = text.substr(0, mark);
  target.has_query = mark != std::string_view::npos;
  target.query = target.has_query ? text.substr(mark + 1) : std::string_view{};
}

// Reads "scheme://authority", and gives back what follows.
TargetStatus read_origin(std::string_view& text, Target& target) noexcept {
  const std::size_t colon = text.find("://");
  if (colon == std::string_view::npos || colon == 0) return TargetStatus::kBadTarget;
  const std::string_view scheme = text.substr(0, colon);
  if (equals_lower(scheme, "http")) {
    target.scheme = Scheme::kHttp;
  } else if (equals_lower(scheme, "https")) {
    target.scheme = Scheme::kHttps;
  } else {
    const bool valid = std::ranges::all_of(scheme, [](char c) {
      return is_digit(c) || (to_lower(c) >= 'a' && to_lower(c) <= 'z') || c == '+' || c == '-' ||
             c == '.';
    });
    return valid ? TargetStatus::kUnsupportedScheme : TargetStatus::kBadTarget;
  }
  text.remove_prefix(colon + 3);
  const std::size_t end = std::min(text.find_first_of("/?"), text.size());
  const std::string_view authority = text.substr(0, end);
  text.remove_prefix(end);
  if (authority.find('@') != std::string_view::npos) return TargetStatus::kUserinfo;
  return parse_authority(authority, target.authority) ? TargetStatus::kOk
                                                      : TargetStatus::kBadTarget;
}

TargetStatus read_target(const RequestHead& head, Target& target) noexcept {
  std::string_view text = head.target;
  if (head.method == Method::kConnect) {
    target.form = TargetForm::kAuthority;
    if (text.find('@') != std::string_view::npos) return TargetStatus::kUserinfo;
    const bool good = parse_authority(text, target.authority) && target.authority.port != 0;
    return good ? TargetStatus::kOk : TargetStatus::kBadTarget;
  }
  if (text == "*") {
    target.form = TargetForm::kAsterisk;
    return head.method == Method::kOptions ? TargetStatus::kOk : TargetStatus::kBadTarget;
  }
  if (text.starts_with('/')) {
    target.form = TargetForm::kOrigin;
    split_path(text, target);
    return TargetStatus::kOk;
  }
  target.form = TargetForm::kAbsolute;
  const TargetStatus status = read_origin(text, target);
  if (status == TargetStatus::kOk) split_path(text, target);
  return status;
}

bool is_unreserved(char c) noexcept {
  return is_digit(c) || (to_lower(c) >= 'a' && to_lower(c) <= 'z') || c == '-' || c == '.' ||
         c == '_' || c == '~';
}

int hex_value(char c) noexcept {
  if (is_digit(c)) return c - '0';
  const char lower = to_lower(c);
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

char to_upper(char c) noexcept { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c; }

// True if an escape begins at `at`.
bool is_escape(std::string_view text, std::size_t at) noexcept {
  return at + 2 < text.size() && hex_value(text[at + 1]) >= 0 && hex_value(text[at + 2]) >= 0;
}

// Copies one segment, escapes normalised (RFC 3986 6.2.2.1 and 6.2.2.2). From a '%' on that begins
// none, all stays: decoding behind it could make one of the two ("%%37" is not "%7").
char* copy_segment(std::string_view segment, char* out) noexcept {
  for (std::size_t i = 0; i < segment.size(); ++i) {
    if (segment[i] != '%') {
      *out++ = segment[i];
      continue;
    }
    if (!is_escape(segment, i)) return std::ranges::copy(segment.substr(i), out).out;
    const char high = segment[++i];
    const char low = segment[++i];
    const char decoded = static_cast<char>(hex_value(high) * 16 + hex_value(low));
    if (is_unreserved(decoded)) {
      *out++ = decoded;
    } else {
      *out++ = '%';
      *out++ = to_upper(high);
      *out++ = to_upper(low);
    }
  }
  return out;
}

// Removes the last segment of [root, out) with its slash.
char* pop_segment(char* root, char* out) noexcept {
  while (out != root) {
    if (*--out == '/') break;
  }
  return out;
}

// RFC 3986 5.2.4 on the normalised segments.
char* write_path_slowly(std::string_view path, char* root) noexcept {
  char* out = root;
  while (!path.empty()) {
    path.remove_prefix(1);  // the slash in front of the segment
    const std::size_t size = std::min(path.find('/'), path.size());
    char* slash = out;
    *out++ = '/';
    out = copy_segment(path.substr(0, size), out);
    path.remove_prefix(size);
    const std::string_view segment(slash + 1, static_cast<std::size_t>(out - slash - 1));
    if (segment != "." && segment != "..") continue;
    out = segment == "." ? slash : pop_segment(root, slash);
    if (path.empty()) *out++ = '/';
  }
  return out;
}

// True if the path has neither escapes nor anything that could be a dot segment.
bool is_plain_path(std::string_view path) noexcept {
  const char* begin = path.data();
  const char* end = begin + path.size();
  const char* p = scan::find<scan::AmbiguousPathByte>(begin, begin, end);
  while (p != end && *p == '.' && p != begin && p[-1] != '/') {
    p = scan::find<scan::AmbiguousPathByte>(begin, p + 1, end);
  }
  return p == end;
}

char* put(char* out, std::string_view text) noexcept {
  if (!text.empty()) std::memcpy(out, text.data(), text.size());
  return out + text.size();
}

// The path in its normal form (RFC 3986 6.2.2), which is never longer; "/" for an empty one.
char* put_path(char* out, std::string_view path) noexcept {
  if (path.empty()) return put(out, "/");
  return is_plain_path(path) ? put(out, path) : write_path_slowly(path, out);
}

// The capitals of eight ASCII characters in lower case.
std::uint64_t lower_word(std::uint64_t word) noexcept {
  constexpr std::uint64_t kEach = 0x0101010101010101U;
  // The top bit of each byte tells whether it is from 'A' on, and whether it is beyond 'Z'.
  const std::uint64_t capitals = (word + (0x80 - 'A') * kEach) & ~(word + (0x7f - 'Z') * kEach);
  return word | (capitals & (0x80 * kEach)) >> 2U;
}

// REQUIRES: ASCII. In words, of which the last two overlap.
char* put_lower(char* out, std::string_view text) noexcept {
  constexpr std::size_t kWord = sizeof(std::uint64_t);
  if (text.size() < kWord) return std::ranges::transform(text, out, to_lower).out;
  const auto put_word = [&](std::size_t at) {
    std::uint64_t word;
    std::memcpy(&word, text.data() + at, kWord);
    word = lower_word(word);
    std::memcpy(out + at, &word, kWord);
  };
  for (std::size_t at = 0; at + kWord < text.size(); at += kWord) put_word(at);
  put_word(text.size() - kWord);
  return out + text.size();
}

char* put_authority(char* out, const Target& target) noexcept {
  if (target.authority.ipv6) *out++ = '[';
  out = put_lower(out, target.authority.host);
  if (target.authority.ipv6) *out++ = ']';
  if (target.port() != default_port(target.scheme)) {
    *out++ = ':';
    out = std::to_chars(out, out + 5, target.port()).ptr;
  }
  return out;
}

bool is_dropped(std::string_view parameter, const KeyOptions& options) noexcept {
  const std::string_view name = parameter.substr(0, parameter.find('='));
  const auto names_it = [name](std::string_view pattern) {
    if (!pattern.ends_with('*')) return name == pattern;
    return name.starts_with(pattern.substr(0, pattern.size() - 1));
  };
  if (options.keep_query && std::ranges::none_of(*options.keep_query, names_it)) return true;
  return std::ranges::any_of(options.drop_query, names_it);
}

// The query with parameters left out and sorted. Nothing is written where none is left.
char* put_changed_query(char* out, std::string_view query, const KeyOptions& options) {
  std::vector<std::string_view> parameters;
  while (true) {
    const std::size_t size = query.find('&');
    const std::string_view parameter = query.substr(0, size);
    if (!is_dropped(parameter, options)) parameters.push_back(parameter);
    if (size == std::string_view::npos) break;
    query.remove_prefix(size + 1);
  }
  if (options.sort_query) std::ranges::stable_sort(parameters);
  char separator = '?';
  for (const std::string_view parameter : parameters) {
    *out++ = separator;
    out = put(out, parameter);
    separator = '&';
  }
  return out;
}

char* put_query(char* out, const Target& target, const KeyOptions& options) {
  if (!target.has_query) return out;
  if (options.sort_query || !options.drop_query.empty() || options.keep_query) {
    return put_changed_query(out, target.query, options);
  }
  return put(put(out, "?"), target.query);
}

}  // namespace

std::string_view to_string(TargetStatus status) noexcept {
  static constexpr std::array<std::string_view, 7> kNames = {
      "ok",           "bad-target", "bad-host",          "several-hosts",
      "missing-host", "userinfo",   "unsupported-scheme"};
  return kNames[static_cast<std::size_t>(status)];
}

bool parse_authority(std::string_view text, Authority& authority) noexcept {
  authority = {};
  if (text.starts_with('[')) {
    const std::size_t close = text.find(']');
    if (close == std::string_view::npos) return false;
    authority.host = text.substr(1, close - 1);
    authority.ipv6 = true;
    if (!is_ipv6(authority.host)) return false;
    text.remove_prefix(close + 1);
  } else {
    const std::size_t size = std::min(text.find(':'), text.size());
    authority.host = text.substr(0, size);
    if (size == 0 || size > kHostBytesMax || !std::ranges::all_of(authority.host, is_host_char)) {
      return false;
    }
    text.remove_prefix(size);
  }
  if (text.empty() || text == ":") return true;
  return text.front() == ':' && parse_port(text.substr(1), authority.port);
}

TargetStatus resolve_target(const RequestHead& head, Scheme scheme, Target& target) noexcept {
  target = {};
  target.scheme = scheme;
  if (const TargetStatus status = read_target(head, target); status != TargetStatus::kOk) {
    return status;
  }
  const Field* line = nullptr;
  for (const Field& field : head.fields) {
    if (field.id != FieldId::kHost) continue;
    if (line != nullptr) return TargetStatus::kSeveralHosts;
    line = &field;
  }
  if (line == nullptr) {
    return head.version != Version::kHttp10 ? TargetStatus::kMissingHost : TargetStatus::kOk;
  }
  const std::string_view host = line->value;
  if (host.empty()) {
    // Only a target without authority may come with an empty Host (RFC 9112 3.2); an absolute-form
    // replaces it anyway.
    return target.form == TargetForm::kOrigin ? TargetStatus::kMissingHost : TargetStatus::kOk;
  }
  Authority authority;
  if (!parse_authority(host, authority)) return TargetStatus::kBadHost;
  if (target.form == TargetForm::kOrigin || target.form == TargetForm::kAsterisk) {
    target.authority = authority;
  }
  return TargetStatus::kOk;
}

bool resolve_reference(std::string_view reference, const Target& base, std::string& storage,
                       Target& target) {
  reference = reference.substr(0, reference.find('#'));
  const bool visible = std::ranges::all_of(
      reference, [](char c) { return is_beyond_ascii(c) || (c > 0x20 && c < 0x7f); });
  if (!visible) return false;
  if (std::ranges::any_of(reference, is_beyond_ascii)) {
    storage.clear();
    append_encoded(reference, storage);
    reference = storage;
  }
  target = base;
  target.form = TargetForm::kAbsolute;
  const std::size_t colon = reference.find(':');
  if (colon < reference.find_first_of("/?")) {
    if (read_origin(reference, target) != TargetStatus::kOk) return false;
    split_path(reference, target);
    return target.path.empty() || target.path.starts_with('/');
  }
  if (reference.starts_with("//")) {
    reference.remove_prefix(2);
    const std::size_t end = std::min(reference.find_first_of("/?"), reference.size());
    if (!parse_authority(reference.substr(0, end), target.authority)) return false;
    split_path(reference.substr(end), target);
    return true;
  }
  if (reference.empty()) return true;
  if (reference.starts_with('/')) {
    split_path(reference, target);
    return true;
  }
  if (reference.starts_with('?')) {
    target.has_query = true;
    target.query = reference.substr(1);
    return true;
  }
  // RFC 3986 5.2.3: in place of the base's last segment.
  const std::string_view folder = base.path.substr(0, base.path.rfind('/') + 1);
  std::string merged;
  merged += folder.empty() ? std::string_view("/") : folder;
  merged += reference;
  storage = std::move(merged);
  split_path(storage, target);
  return true;
}

bool same_origin(const Target& a, const Target& b) noexcept {
  return a.scheme == b.scheme && a.port() == b.port() && a.authority.ipv6 == b.authority.ipv6 &&
         equals_ignoring_case(a.authority.host, b.authority.host);
}

void set_scheme(Target& target, Scheme scheme) noexcept {
  if (target.scheme == scheme) return;
  if (target.authority.port == default_port(target.scheme)) target.authority.port = 0;
  target.scheme = scheme;
}

std::size_t key_bytes_max(const Target& target) noexcept {
  // "https://", brackets, ":65535", "/", "?"
  return 8 + 2 + 6 + 1 + 1 + target.authority.host.size() + target.path.size() +
         target.query.size();
}

KeyText write_key(const Target& target, const KeyOptions& options, std::span<char> out) {
  ENCORE_CHECK(out.size() >= key_bytes_max(target), "room for the key");
  const auto bytes_to = [&](const char* p) { return static_cast<std::size_t>(p - out.data()); };
  KeyText key;
  char* p = put(put(out.data(), to_string(target.scheme)), "://");
  key.authority = bytes_to(p);
  p = put_authority(p, target);
  key.path = bytes_to(p);
  p = put_path(p, target.path);
  p = put_query(p, target, options);
  key.bytes = bytes_to(p);
  return key;
}

std::string_view host_of(std::string_view uri, const KeyText& parts) noexcept {
  const std::string_view host = uri.substr(parts.authority, parts.path - parts.authority);
  // The port stands behind the last ':', which an address in brackets has inside.
  return host.starts_with('[') ? host.substr(0, host.find(']') + 1)
                               : host.substr(0, host.find(':'));
}

std::string_view origin_form(const Target& target, Method method,
                             std::string_view key_path) noexcept {
  const bool nothing = target.path.empty() && !target.has_query;
  const bool server =
      target.form == TargetForm::kAsterisk || (nothing && method == Method::kOptions);
  return server ? "*" : key_path;
}

std::size_t write_host(const Target& target, std::span<char> out) noexcept {
  return static_cast<std::size_t>(put_authority(out.data(), target) - out.data());
}

}  // namespace encore::http
