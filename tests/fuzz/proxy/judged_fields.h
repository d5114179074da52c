// Which fields of an answer are whose, and what ours say. For the oracle. Pure.
#pragma once

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "tests/fuzz/proxy/message.h"
#include "tests/fuzz/proxy/world.h"

namespace encore::proxyfuzz {

// Fields that belong to one connection, or that every proxy writes anew.
inline bool is_connections(std::string_view name) {
  static constexpr std::array<std::string_view, 6> kNames = {
      "Connection", "Keep-Alive", "Transfer-Encoding", "X-Hop", "Trailer", "Proxy-Connection"};
  return std::ranges::any_of(kNames,
                             [&](std::string_view other) { return same_name(name, other); });
}

inline bool is_of_proxy(std::string_view name) {
  static constexpr std::array<std::string_view, 6> kNames = {
      "Via", "Cache-Status", "Age", "Date", "Content-Length", "Content-Range"};
  return is_connections(name) || std::ranges::any_of(kNames, [&](std::string_view other) {
           return same_name(name, other);
         });
}

// RFC 9111 3.2: a 304 does not change what describes the body as it was stored.
inline bool is_of_body(std::string_view name) {
  static constexpr std::array<std::string_view, 5> kNames = {
      "Content-Encoding", "ETag", "Content-Length", "Content-Range", "Trailer"};
  return std::ranges::any_of(kNames,
                             [&](std::string_view other) { return same_name(name, other); });
}

inline bool is_of_tags(std::string_view name) {
  return same_name(name, "Surrogate-Key") || same_name(name, "Cache-Tag");
}

inline std::string quoted(const Field& field) {
  return "\"" + field.name + ": " + field.value + "\"";
}

inline bool is_listed(const std::vector<std::string>& names, std::string_view name) {
  return std::ranges::any_of(names, [&](const std::string& one) { return same_name(one, name); });
}

// As they were sent: what means the same may still be another variant.
inline std::string_view encodings_of(const Request& request) {
  const Field* const field = find(request.fields, "Accept-Encoding");
  return field == nullptr ? std::string_view() : std::string_view(field->value);
}

inline std::string_view our_status(const Fields& fields) {
  for (const Field& field : fields) {
    if (!same_name(field.name, "Cache-Status")) continue;
    const std::size_t at = field.value.find("encore");
    if (at != std::string::npos) return std::string_view(field.value).substr(at + 6);
  }
  return {};
}

}  // namespace encore::proxyfuzz
