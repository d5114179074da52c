// Tags by which stored responses are purged: Surrogate-Key (separated by spaces) and Cache-Tag
// (by commas). Pure, thread-safe.
#pragma once

#include <string_view>

#include "proxy/http/message.h"

namespace encore::http {

// Calls f(std::string_view tag) for every tag of a response, in order; case is kept.
template <typename F>
void for_each_tag(const Fields& fields, F&& f) {
  fields.for_each_member(FieldId::kCacheTag, f);
  fields.for_each(FieldId::kSurrogateKey, [&](const Field& field) {
    std::string_view rest = trim_ows(field.value);
    while (!rest.empty()) {
      const std::string_view tag = rest.substr(0, rest.find_first_of(" \t"));
      rest = trim_ows(rest.substr(tag.size()));
      f(tag);
    }
  });
}

}  // namespace encore::http
