// Tags by which stored responses are purged. Pure, thread-safe.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "proxy/http/message.h"

namespace encore::http {

// The tags of a response in fields of these names, in order, each with a line feed; case is kept.
// Cache-Tag, X-Cache-Tags and X-Magento-Tags are separated by commas, xkey and Cache-Tags by commas
// and white space, the others (Surrogate-Key) by white space.
std::string tags_in(const Fields& fields, const std::vector<std::string>& names);
// True if such a text has the tag.
bool has_tag(std::string_view tags, std::string_view tag);

}  // namespace encore::http
