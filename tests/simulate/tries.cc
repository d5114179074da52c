// Compiled without access control (CMakeLists.txt), as held.cc is.
#include "tests/simulate/tries.h"

#include <algorithm>

#include "proxy/origin/fetch.h"
#include "proxy/process/worker.h"
#include "proxy/request/request_context.h"

namespace encore::simulate {
namespace {

// The port of a round's origin, which is always there.
constexpr std::uint16_t kOriginPort = 8000;
constexpr int kLooks = 60;

bool has_tried(const server::Fetch& fetch) {
  return std::ranges::any_of(fetch.link_.tried_, [](const server::OriginServer* server) {
    return server->port == kOriginPort;
  });
}

}  // namespace

bool Tries::is_innocent(const proxyfuzz::Request& request) const {
  return request.dropped_kept != 0 && request.dropped_kept == request.asked_origin &&
         world_.last_trouble < request.started && world_.spoiled == 0;
}

void Tries::note(const proxyfuzz::Request& request) {
  if (is_innocent(request)) watched_.push_back({world_.request(request.tag), kLooks});
}

void Tries::look(server::Proxy& proxy,
                 const std::function<void(const std::string& what)>& on_fault) {
  std::erase_if(watched_, [this](Watched& each) {
    return each.request == nullptr || --each.looks_left < 0 || !is_innocent(*each.request);
  });
  for (const Watched& each : watched_) {
    const std::string tag = std::to_string(each.request->tag);
    for (const auto& worker : proxy.workers()) {
      for (const auto& fetch : worker->fetches()) {
        const http::Field* const field = fetch->request_->head.fields.find("traceparent");
        if (field == nullptr || field->value != tag || !has_tried(*fetch)) continue;
        on_fault("a server counts as tried that has closed a kept connection, tag " + tag);
      }
    }
  }
}

}  // namespace encore::simulate
