// Refused purges: counts them, and logs the first of each kind at each listener. A purge that did
// nothing is noticed by nobody else: applications send it and do not read the answer.
#pragma once

#include <string_view>

#include "proxy/http/message.h"
#include "proxy/net/address.h"
#include "proxy/observe/stats.h"
#include "proxy/request/request_view_builder.h"
#include "proxy/settings/runtime.h"

namespace encore::server {

// The request was refused with this detail of ViewFault. Does nothing if it was no purge.
void note_refused_purge(const Runtime& runtime, WorkerStats& stats, const ListenerContext& listener,
                        const http::RequestHead& head, const net::Address& client,
                        std::string_view detail);

}  // namespace encore::server
