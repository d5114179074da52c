// An origin that counts.
//   origin --port=P
//   GET /s/BYTES/anything   a body of BYTES, fresh for a day
//   GET /n/BYTES/anything   a body of BYTES that no cache may store
//   GET /count              how many of the above were asked for since the last /count
// A target in absolute form is understood as well.
#include <charconv>
#include <map>

#include "tests/bench/canned.h"

namespace {

constexpr std::size_t kBodyBytesMax = std::size_t{64} << 20;

class Origin : public encore::bench::Responder {
 public:
  std::string_view respond(std::string_view target) override {
    if (target.starts_with("http://")) {
      std::size_t path = target.find('/', 7);
      target = path == std::string_view::npos ? "/" : target.substr(path);
    }
    if (target == "/count") {
      std::string text = std::to_string(count_);
      count_ = 0;
      counted_ = "HTTP/1.1 200 OK\r\nCache-Control: no-store\r\nContent-Length: " +
                 std::to_string(text.size()) + "\r\n\r\n" + text;
      return counted_;
    }
    ++count_;
    std::size_t bytes = 0;
    bool storable = target.starts_with("/s/");
    if (!storable && !target.starts_with("/n/")) return not_found_;
    auto [end, error] = std::from_chars(target.data() + 3, target.data() + target.size(), bytes);
    if (error != std::errc{} || bytes > kBodyBytesMax) return not_found_;
    std::string& response = responses_[{storable, bytes}];
    if (response.empty()) {
      response = encore::bench::canned_response(
          bytes,
          storable ? "Cache-Control: max-age=86400\r\nETag: \"canned\"\r\n"
                   : "Cache-Control: no-store\r\n",
          0);
    }
    return response;
  }

 private:
  std::map<std::pair<bool, std::size_t>, std::string> responses_;
  std::string counted_;
  std::string not_found_ = "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n";
  std::size_t count_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  Origin origin;
  event_base* base = event_base_new();
  auto port = static_cast<std::uint16_t>(encore::bench::number_argument(argc, argv, "port", 0));
  encore::bench::serve(base, port, &origin);
  encore::bench::run_until_signal(base);
  return 0;
}
