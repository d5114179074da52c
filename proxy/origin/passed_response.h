// A response as it is handed on: what the readers of a transfer share of it, made of what came.
// Confined to the worker whose services are given.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "proxy/http/storing.h"
#include "proxy/net/address.h"
#include "proxy/origin/received_response.h"
#include "proxy/origin/services.h"
#include "proxy/request/request_context.h"
#include "proxy/transfer/response.h"

namespace encore::server {

// Decision if and why it may be stored, with what is found only while the response is made.
struct PassedResponse {
  std::shared_ptr<SharedResponse> response;
  http::StoreDecision decision;
};
// `whole`: the request was sent without the client's Range and conditions. Fields that others may
// not have are among the stripped fields of `received` from then on.
PassedResponse make_passed_response(const OriginServices& services, const RequestContext& request,
                                    ReceivedResponse& received, bool whole);

// An interim response as the client gets it, with the empty line.
std::string interim_text(const RequestContext& request, const http::ResponseHead& head);

// A 101 likewise, which goes over to `protocol`.
std::string switching_text(const RequestContext& request, const http::ResponseHead& head,
                           std::string_view protocol);

}  // namespace encore::server
