#include "proxy/exchange/client_cache_control.h"

#include <algorithm>
#include <string_view>

#include "proxy/http/cache_control.h"
#include "proxy/http/message.h"

namespace encore::server {
namespace {

http::ResponseDirectives directives_of(std::string_view head) {
  http::Fields fields;
  while (!head.empty()) {
    const std::size_t end = std::min(head.find("\r\n"), head.size());
    const std::string_view line = head.substr(0, end);
    head.remove_prefix(std::min(end + 2, head.size()));
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos) continue;
    const std::string_view name = line.substr(0, colon);
    if (!http::equals_lower(name, "cache-control") && !http::equals_lower(name, "pragma")) continue;
    fields.add(name, http::trim_ows(line.substr(colon + 1)));
  }
  return http::parse_response_directives(fields);
}

}  // namespace

void set_client_cache_control(const Rule& rule, const ResponseSource& source, ResponsePlan& plan) {
  if (!source.is_shared || rule.shared_edits().empty()) return;
  const http::ResponseDirectives own = directives_of(plan.head);
  if (own.is_private || own.no_store || own.no_cache) return;
  // A 304 that says nothing leaves the client's copy with what it came with.
  if (plan.status == 304 && !own.max_age && !own.s_maxage && !own.is_public) return;
  rule.shared_edits().apply(plan.head);
}

}  // namespace encore::server
