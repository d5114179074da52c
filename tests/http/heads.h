// Short ways to make heads in tests. The heads borrow the text, so a test keeps it alive. With
// ENCORE_HEADS_OVER_HTTP2 they are as HTTP/2 brings them (heads_http2.h).
#pragma once

#include <string>

#include "proxy/http/parser.h"
#include "tests/catch.h"
#ifdef ENCORE_HEADS_OVER_HTTP2
#include "tests/http/heads_http2.h"
#endif

namespace encore::http {

// A request head from its bytes, which must be well-formed.
inline RequestHead request_head(std::string_view bytes) {
#ifdef ENCORE_HEADS_OVER_HTTP2
  bytes = over_http2::keep(over_http2::request(bytes), bytes);
#endif
  RequestHead head;
  ParseError error;
  INFO(bytes);
  REQUIRE(parse_request(bytes, Limits{}, head, error) == ParseStatus::kComplete);
  return head;
}

inline ResponseHead response_head(std::string_view bytes) {
#ifdef ENCORE_HEADS_OVER_HTTP2
  bytes = over_http2::keep(over_http2::response(bytes), bytes);
#endif
  ResponseHead head;
  ParseError error;
  INFO(bytes);
  REQUIRE(parse_response(bytes, Limits{}, head, error) == ParseStatus::kComplete);
  return head;
}

// Fields from lines separated by '\n' in the table's text.
class FieldText {
 public:
  explicit FieldText(std::string_view lines) {
    for (const char c : lines) text_ += c == '\n' ? std::string("\r\n") : std::string(1, c);
    if (!text_.empty() && !text_.ends_with("\r\n")) text_ += "\r\n";
#ifdef ENCORE_HEADS_OVER_HTTP2
    text_ = over_http2::keep(over_http2::fields(text_), text_);
#endif
    ParseError error;
    INFO(text_);
    REQUIRE(parse_fields(text_, Limits{}, fields_, error));
  }
  FieldText(const FieldText&) = delete;
  FieldText& operator=(const FieldText&) = delete;
  const Fields& fields() const { return fields_; }

 private:
  std::string text_;
  Fields fields_;
};

}  // namespace encore::http
