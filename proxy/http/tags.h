// Tags by which stored responses are purged. Pure, thread-safe.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "proxy/http/message.h"

namespace encore::http {

// The tags of a response in fields of these names, in order, each with a line feed; case is kept.
// Cache-Tag and X-Cache-Tags are separated by commas, the others (Surrogate-Key) by white space.
std::string tags_in(const Fields& fields, const std::vector<std::string>& names);
// Whether such a text has the tag.
bool has_tag(std::string_view tags, std::string_view tag);

}  // namespace encore::http
