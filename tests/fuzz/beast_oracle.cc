#include "tests/fuzz/beast_oracle.h"

#include <boost/asio/buffer.hpp>
#include <boost/beast/http/basic_parser.hpp>

namespace encore::oracle {
namespace {

namespace beast = boost::beast;
namespace http = beast::http;
using beast::error_code;
using beast::string_view;

std::string text(string_view view) { return {view.data(), view.size()}; }

template <bool isRequest>
class Parser final : public http::basic_parser<isRequest> {
 public:
  Head head;
  std::string content;

 private:
  void on_request_impl(http::verb, string_view method, string_view target, int version,
                       error_code&) override {
    head.method = text(method);
    head.target = text(target);
    head.version = version;
  }
  void on_response_impl(int code, string_view reason, int version, error_code&) override {
    head.code = static_cast<unsigned>(code);
    head.reason = text(reason);
    head.version = version;
  }
  void on_field_impl(http::field, string_view name, string_view value, error_code&) override {
    head.fields.emplace_back(text(name), text(value));
  }
  void on_header_impl(error_code&) override {}
  void on_body_init_impl(const boost::optional<std::uint64_t>&, error_code&) override {}
  std::size_t on_body_impl(string_view body, error_code&) override {
    content += text(body);
    return body.size();
  }
  void on_chunk_header_impl(std::uint64_t, string_view, error_code&) override {}
  std::size_t on_chunk_body_impl(std::uint64_t, string_view body, error_code&) override {
    content += text(body);
    return body.size();
  }
  void on_finish_impl(error_code&) override {}
};

// Feeds the parser until it has what it wants, or wants what is not there.
template <typename P>
std::size_t feed(P& parser, std::string_view bytes, bool to_end, Status& status,
                 std::string& error) {
  parser.header_limit(1U << 24);
  parser.body_limit(boost::none);
  std::size_t used = 0;
  while (true) {
    if (to_end ? parser.is_done() : parser.is_header_done()) {
      status = Status::kComplete;
      return used;
    }
    error_code ec;
    const std::size_t taken =
        parser.put(boost::asio::buffer(bytes.data() + used, bytes.size() - used), ec);
    used += taken;
    if (ec && ec != http::error::need_more) {
      status = Status::kBad;
      error = ec.message();
      return used;
    }
    const bool finished = to_end ? parser.is_done() : parser.is_header_done();
    if (!finished && (taken == 0 || ec == http::error::need_more)) {
      status = Status::kIncomplete;
      return used;
    }
  }
}

template <bool isRequest>
Head parse(std::string_view bytes) {
  Parser<isRequest> parser;
  parser.eager(false);
  Status status = Status::kIncomplete;
  std::string error;
  const std::size_t used = feed(parser, bytes, false, status, error);
  Head head = std::move(parser.head);
  head.status = status;
  head.error = std::move(error);
  head.head_size = used;
  if (status != Status::kComplete) return head;
  head.chunked = parser.chunked();
  if (parser.content_length()) head.content_length = *parser.content_length();
  return head;
}

// Counts and keeps nothing, so that what is measured is the parser.
class CountingParser final : public http::basic_parser<true> {
 public:
  std::size_t fields = 0;

 private:
  void on_request_impl(http::verb, string_view, string_view, int, error_code&) override {}
  void on_response_impl(int, string_view, int, error_code&) override {}
  void on_field_impl(http::field, string_view, string_view, error_code&) override { ++fields; }
  void on_header_impl(error_code&) override {}
  void on_body_init_impl(const boost::optional<std::uint64_t>&, error_code&) override {}
  std::size_t on_body_impl(string_view body, error_code&) override { return body.size(); }
  void on_chunk_header_impl(std::uint64_t, string_view, error_code&) override {}
  std::size_t on_chunk_body_impl(std::uint64_t, string_view body, error_code&) override {
    return body.size();
  }
  void on_finish_impl(error_code&) override {}
};

}  // namespace

Head parse_request(std::string_view bytes) { return parse<true>(bytes); }
Head parse_response(std::string_view bytes) { return parse<false>(bytes); }

Body decode_chunked(std::string_view bytes) {
  static constexpr std::string_view kHead = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
  Parser<false> parser;
  parser.eager(true);
  std::string input(kHead);
  input += bytes;
  Body body;
  const std::size_t used = feed(parser, input, true, body.status, body.error);
  body.content = std::move(parser.content);
  body.consumed = used - kHead.size();
  return body;
}

std::size_t count_request_fields(std::string_view bytes) {
  CountingParser parser;
  error_code ec;
  parser.put(boost::asio::buffer(bytes.data(), bytes.size()), ec);
  return parser.is_header_done() ? parser.fields : 0;
}

}  // namespace encore::oracle
