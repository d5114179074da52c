// Requests as the exchange gets them, from their text.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "proxy/http/parser.h"
#include "proxy/request/request_context.h"
#include "proxy/request/request_view_builder.h"
#include "tests/catch.h"

namespace encore::server {

inline std::shared_ptr<const Runtime> some_runtime(const config::Config& config = {}) {
  auto runtime = Runtime::create(config, {}, "test");
  REQUIRE(runtime.has_value());
  return *runtime;
}

// `text` is a request in absolute form, without the empty line, its lines ended by LF.
inline std::shared_ptr<const RequestContext> some_request(
    std::string_view text, std::shared_ptr<const Runtime> runtime = some_runtime()) {
  std::string head;
  for (const char c : text) {
    if (c == '\n') head += '\r';
    head += c;
  }
  head += "\r\n";
  http::RequestHead parsed;
  http::ParseProgress progress;
  http::ParseError error;
  REQUIRE(http::parse_request(head, runtime->head_limits, progress, parsed, error) ==
          http::ParseStatus::kComplete);
  const filter::Seed seed{1, 2};
  ThreadActivity activity;
  RequestViewBuilder views(runtime, seed, activity);
  RequestView view;
  const net::Address client = net::Address::parse_ip("127.0.0.1", 4000).value();
  const ViewFault fault = views.make(parsed, {config::Mode::kForward}, client, view);
  REQUIRE(fault.status == 0);
  return RequestContext::make(runtime, view, head, client);
}

}  // namespace encore::server
