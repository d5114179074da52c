// Redirections and static answers that a rule gives. Pure, thread-safe.
#pragma once

#include <string>
#include <string_view>

#include "proxy/request/request_context.h"

namespace encore::server {

struct RuleReply {
  std::string head;  // without Cache-Status and the empty line
  std::string body;
};
// REQUIRES: a request with a URI; `answer` is no refusal.
RuleReply make_rule_reply(const RuleAnswer& answer, const RequestContext& request,
                          std::string_view http_date);

}  // namespace encore::server
