// Checks of the texts of a config.
#include <algorithm>

#include "base/text.h"
#include "config/keys.h"
#include "config/network.h"

namespace encore::config {
namespace {

constexpr std::string_view kTokenMarks = "!#$%&'*+-.^_`|~";  // RFC 9110 5.6.2

bool is_alnum(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

bool only(std::string_view text, std::string_view marks) {
  return std::ranges::all_of(
      text, [marks](char c) { return is_alnum(c) || marks.find(c) != std::string_view::npos; });
}

bool has_control(std::string_view text) {
  return std::ranges::any_of(text, [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte < 0x20 || byte == 0x7f;
  });
}

bool is_name(std::string_view text) {
  return !text.empty() && text.size() <= 253 && only(text, "-._") && is_alnum(text.front());
}

bool are_digits(std::string_view text) {
  return text.find_first_not_of("0123456789") == std::string_view::npos;
}

// "host:80", "[::1]:80"; "*:80" is hardly meant for the addresses that end so.
bool has_port(std::string_view host) {
  const auto colon = host.rfind(':');
  if (colon == std::string_view::npos || !are_digits(host.substr(colon + 1))) return false;
  return host.find(':') == colon || host.substr(0, colon).ends_with(']');
}

// An IPv6 address, in brackets or without, of which stars may stand for parts.
bool is_v6_glob(std::string_view text) {
  const bool is_whole = text.find('*') == std::string_view::npos;
  if (is_whole && text.starts_with('[') != text.ends_with(']')) return false;
  if (text.starts_with('[')) text.remove_prefix(1);
  if (text.ends_with(']')) text.remove_suffix(1);
  if (is_whole) return text.find(':') != std::string_view::npos && parse_cidr(text).has_value();
  return text.find_first_not_of("0123456789abcdefABCDEF:.*") == std::string_view::npos;
}

}  // namespace

std::string in_quotes(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte < 0x20 || byte == 0x7f) {
      static constexpr std::string_view kDigits = "0123456789abcdef";
      out += "\\u00";
      out += kDigits[byte >> 4U];
      out += kDigits[byte & 0xfU];
    } else {
      out += c;
    }
  }
  return out + '"';
}

Result<std::string> check_host_pattern(std::string_view text) {
  std::string_view name = text;
  if (name.starts_with("*.")) name.remove_prefix(2);
  // An IPv6 address is written in brackets, as in a Host field.
  const bool v6 = text.size() > 2 && text.front() == '[' && text.back() == ']' &&
                  parse_cidr(text.substr(1, text.size() - 2)).has_value() &&
                  text.find('/') == std::string_view::npos;
  if (text != "*" && !v6 && !is_name(name)) return fail("is not a host");
  return lower_ascii(text);
}

Result<std::string> check_host_name(std::string_view text) {
  if (!text.empty() && !is_name(text)) return fail("is not a host name");
  return lower_ascii(text);
}

Result<std::string> check_intercepted_host(std::string_view text) {
  auto host = check_host_pattern(text);
  if (!host) return host;
  // A host that ends with a number is an address, or would be taken for one.
  const std::string_view last = std::string_view(*host).substr(host->rfind('.') + 1);
  const bool is_number = last.find_first_not_of("0123456789") == std::string_view::npos;
  if (host->front() == '[' || is_number) return fail("is an address; only names can be decrypted");
  return host;
}

Result<std::string> check_path_prefix(std::string_view text) {
  if (!text.starts_with('/')) return fail("does not start with \"/\"");
  if (text.find_first_of("?# ") != std::string_view::npos || has_control(text)) {
    return fail("contains characters that a path cannot have");
  }
  return std::string(text);
}

Result<std::string> check_target_or_empty(std::string_view text) {
  if (text.empty()) return std::string();
  if (!text.starts_with('/')) return fail("does not start with \"/\"");
  if (text.find_first_of("# ") != std::string_view::npos || has_control(text)) {
    return fail("contains characters that a path cannot have");
  }
  return std::string(text);
}

Result<std::string> check_authority_or_empty(std::string_view text) {
  const bool valid = text.empty() || (text.find('/') == std::string_view::npos &&
                                      parse_server_url("http://" + std::string(text)));
  if (!valid) return fail("is not a host with or without a port");
  return std::string(text);
}

Result<std::string> check_folder_or_empty(std::string_view text) {
  if (text.empty()) return std::string();
  if (text.ends_with('/')) return fail("ends with \"/\"");
  return check_path_prefix(text);
}

Result<std::string> check_published(std::string_view text) {
  if (text != kPublishChanged && text != kPublishResident) return fail("is not published");
  return std::string(text);
}

Result<std::string> check_field_name(std::string_view text) {
  if (text.empty() || text.size() > 128 || !only(text, kTokenMarks)) {
    return fail("is not the name of a field");
  }
  return std::string(text);
}

Result<std::string> check_token(std::string_view text) {
  if (text.empty() || text.size() > 64 || !only(text, "-._")) return fail("is not a pseudonym");
  return std::string(text);
}

Result<std::string> check_host_glob(std::string_view text) {
  if (text.find('/') != std::string_view::npos) return fail("has more than a host");
  if (has_port(text)) return fail("has a port");
  if (text.empty() || text.size() > 253 || !only(text, "-._*[]:")) return fail("is not a host");
  const bool is_address = text.find_first_of("[]:") != std::string_view::npos;
  if (is_address && !is_v6_glob(text)) return fail("is not a host");
  return lower_ascii(text);
}

Result<std::string> check_path_glob(std::string_view text) {
  if (!text.starts_with('/') && !text.starts_with('*')) {
    return fail("does not start with \"/\" or \"*\"");
  }
  if (text.find_first_of("?# ") != std::string_view::npos || has_control(text)) {
    return fail("contains characters that a path cannot have");
  }
  return std::string(text);
}

Result<std::string> check_method(std::string_view text) {
  if (text.empty() || text.size() > 64 || !only(text, kTokenMarks)) return fail("is not a method");
  // Nobody sends these: browsers write them in capitals whatever a page says. "patch" they send.
  constexpr std::string_view kSmall[] = {"get", "head", "post", "put", "delete", "options"};
  if (std::ranges::find(kSmall, lower_ascii(text)) != std::end(kSmall) &&
      std::ranges::any_of(text, [](char c) { return c >= 'a' && c <= 'z'; })) {
    return fail("is not in capitals");
  }
  return std::string(text);
}

Result<std::string> check_lower_field_or_empty(std::string_view text) {
  if (text.empty()) return std::string();
  auto name = check_field_name(text);
  if (name) *name = lower_ascii(*name);
  return name;
}

Result<std::string> check_realm(std::string_view text) {
  if (text.empty() || text.size() > 128 || has_control(text) ||
      text.find_first_of("\"\\") != std::string_view::npos) {
    return fail("is not a realm");
  }
  return std::string(text);
}

Result<std::string> check_query_name(std::string_view text) {
  std::string_view name = text;
  if (name.ends_with('*')) name.remove_suffix(1);
  if (name.empty() || name.find_first_of("*&=#? ") != std::string_view::npos || has_control(name)) {
    return fail("is not the name of a parameter");
  }
  return std::string(text);
}

Result<std::string> check_lower_query_name(std::string_view text) {
  if (text.empty() || text.find_first_of("*&=#? ") != std::string_view::npos || has_control(text)) {
    return fail("is not the name of a parameter");
  }
  return lower_ascii(text);
}

Result<std::string> check_seed(std::string_view text) {
  if (!SeedText::parse(text)) return fail("is not a seed");
  return std::string(text);
}

Result<std::string> check_file_name(std::string_view text) {
  if (has_control(text) || text.size() > 4096) return fail("is not a file name");
  return std::string(text);
}

Result<std::string> check_disk_name(std::string_view text) {
  if (text.empty()) return fail("is not a file name");
  return check_file_name(text);
}

}  // namespace encore::config
