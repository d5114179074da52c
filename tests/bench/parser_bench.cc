// The cost of reading a request: our parser compared with Boost.Beast's on the same heads, and all
// parts of proxy/http that a plain hit needs: head, framing, target, key, freshness.
//
//   parser_bench [--benchmark_filter=REGEX]
#include <benchmark/benchmark.h>

#include <array>
#include <cstdlib>
#include <string>
#include <string_view>

#include "proxy/http/cache_status.h"
#include "proxy/http/framing.h"
#include "proxy/http/hop_by_hop.h"
#include "proxy/http/parser.h"
#include "proxy/http/stored_meta.h"
#include "proxy/http/uri.h"
#include "tests/fuzz/beast_oracle.h"

namespace {

using namespace encore::http;

// A request of wrk.
constexpr std::string_view kShort =
    "GET /s/1024/keys/12345 HTTP/1.1\r\nHost: 127.0.0.1:3128\r\n\r\n";

// A request of a browser.
constexpr std::string_view kBrowser =
    "GET /static/js/application-3f9a1c0d.js?v=20261121 HTTP/1.1\r\n"
    "Host: www.example.org\r\n"
    "Connection: keep-alive\r\n"
    "sec-ch-ua-platform: \"Linux\"\r\n"
    "User-Agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) "
    "Chrome/130.0.0.0 Safari/537.36\r\n"
    "sec-ch-ua: \"Chromium\";v=\"130\", \"Not?A_Brand\";v=\"99\"\r\n"
    "sec-ch-ua-mobile: ?0\r\n"
    "Accept: */*\r\n"
    "Sec-Fetch-Site: same-origin\r\n"
    "Sec-Fetch-Mode: no-cors\r\n"
    "Sec-Fetch-Dest: script\r\n"
    "Referer: https://www.example.org/a/page/with/a/path.html\r\n"
    "Accept-Encoding: gzip, deflate, br, zstd\r\n"
    "Accept-Language: en-GB,en;q=0.9,de;q=0.8\r\n"
    "Cookie: session=0123456789abcdef0123456789abcdef; theme=dark; consent=yes\r\n\r\n";

// As an absolute-form to a forward proxy.
constexpr std::string_view kAbsolute =
    "GET http://www.example.org/s/1024/keys/12345 HTTP/1.1\r\nHost: www.example.org\r\n"
    "User-Agent: curl/7.88.1\r\nAccept: */*\r\nProxy-Connection: Keep-Alive\r\n\r\n";

std::string_view head_of(const benchmark::State& state) {
  constexpr std::array kHeads = {kShort, kBrowser, kAbsolute};
  return kHeads.at(static_cast<std::size_t>(state.range(0)));
}

void parse_ours(benchmark::State& state) {
  const std::string text(head_of(state));
  RequestHead head;
  ParseError error;
  for (auto _ : state) {
    if (parse_request(text, Limits{}, head, error) != ParseStatus::kComplete) std::abort();
    benchmark::DoNotOptimize(head.fields.size());
  }
}

void parse_beast(benchmark::State& state) {
  const std::string text(head_of(state));
  for (auto _ : state) {
    const std::size_t fields = encore::oracle::count_request_fields(text);
    if (fields == 0) std::abort();
    benchmark::DoNotOptimize(fields);
  }
}

void plain_hit(benchmark::State& state) {
  const std::string text(head_of(state));
  const encore::MonotonicTime now(std::chrono::hours(1));
  StoredMeta meta;
  meta.age_zero = now - std::chrono::seconds(5);
  meta.fresh_until = now + std::chrono::seconds(55);
  meta.lifetime_seconds = 60;
  RequestHead head;
  ParseError error;
  const KeyOptions options;
  std::array<char, 4096> key{};
  std::array<char, 256> status{};
  for (auto _ : state) {
    if (parse_request(text, Limits{}, head, error) != ParseStatus::kComplete) std::abort();
    if (request_framing(head).kind != BodyKind::kNone) std::abort();
    Target target;
    if (resolve_target(head, Scheme::kHttp, target) != TargetStatus::kOk) std::abort();
    std::size_t bytes = write_key(target, options, key).bytes;
    if (head.fields.has_any(kRequestExtras) || !is_fresh(meta, now)) std::abort();
    const bool persists = keep_alive(head);
    const CacheStatus hit{.hit = true, .ttl = remaining_ttl(meta, now)};
    bytes += write_cache_status("encore", hit, status.data());
    benchmark::DoNotOptimize(bytes);
    benchmark::DoNotOptimize(persists);
    benchmark::DoNotOptimize(current_age(meta, now));
  }
}

// 0: wrk, 1: a browser, 2: absolute-form.
BENCHMARK(parse_ours)->Arg(0)->Arg(1)->Arg(2);
BENCHMARK(parse_beast)->Arg(0)->Arg(1)->Arg(2);
BENCHMARK(plain_hit)->Arg(0)->Arg(1)->Arg(2);

}  // namespace

BENCHMARK_MAIN();
