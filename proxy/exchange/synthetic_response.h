// SyntheticResponse: a response that neither the cache nor an origin has made: a failure, what a
// rule says, a published filter (exchange/published.h). Values. Pure, thread-safe.
#pragma once

#include <string>
#include <string_view>

#include "proxy/exchange/decide.h"
#include "proxy/http/cache_status.h"
#include "proxy/observe/outcome.h"
#include "proxy/request/request_context.h"

namespace encore::server {

struct SyntheticResponse {
  Outcome outcome = Outcome::kInternal;
  int status = 0;
  std::string detail;            // for the record; empty: the outcome says it all
  std::string head;              // as ClientStream::Response has it
  std::string body;              // empty: none goes out
  bool ends_connection = false;  // in protocols with one request at a time
};

// A failure of this request, for its client and for the record.
struct Failure {
  int status = 0;
  Outcome outcome = Outcome::kInternal;
  std::string_view detail = {};
  std::string_view why = {};  // for who reads the answer, behind the detail; empty: that is enough
};
// `status` is the text of Cache-Status for the request, in addition to the detail.
SyntheticResponse failure_answer(const Failure& failure, const RequestContext& request,
                                 std::string_view http_date, http::CacheStatus status);
// A redirection or a static answer. REQUIRES: answer.content.
SyntheticResponse rule_answer(const LocalResponse& answer, const RequestContext& request,
                              std::string_view http_date, http::CacheStatus status);
}  // namespace encore::server
