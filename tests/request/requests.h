// Requests as a listener makes them of their text.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "proxy/http/parser.h"
#include "proxy/request/request_view_builder.h"
#include "tests/catch.h"

namespace encore::server {

class Requests {
 public:
  explicit Requests(const config::Config& config) {
    auto made = Runtime::create(config, {}, "test");
    REQUIRE(made.has_value());
    runtime = *made;
    views_.emplace(runtime, seed_, activity);
  }
  // `lines`: request line and fields, each with LF.
  ViewFault make(config::Mode mode, std::string_view lines, const char* from = "127.0.0.1",
                 const InterceptedConnect* inside = nullptr) {
    text.clear();
    for (const char c : lines) {
      if (c == '\n') text += '\r';
      text += c;
    }
    text += "\r\n";
    http::ParseError error;
    REQUIRE(http::parse_request(text, {}, head_, error) == http::ParseStatus::kComplete);
    view = {};
    view.inside = inside;
    client = net::Address::parse_ip(from, 4711).value();
    const ListenerContext listener{mode};
    return views_->make(head_, listener, client, view);
  }
  void end() { views_.reset(); }

  std::shared_ptr<const Runtime> runtime;
  ThreadActivity activity;
  // Text of the last one.
  std::string text;
  net::Address client;
  RequestView view;

 private:
  filter::Seed seed_{1, 2};
  std::optional<RequestViewBuilder> views_;
  http::RequestHead head_;
};

}  // namespace encore::server
