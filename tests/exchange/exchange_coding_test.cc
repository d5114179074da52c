// A coding is counted as its client gets it: with content or not at all.
#include <array>
#include <memory>
#include <string>

#include "base/units.h"
#include "proxy/exchange/coders.h"
#include "proxy/store/memory_store.h"
#include "proxy/transfer/response.h"
#include "tests/catch.h"
#include "tests/exchange/exchange_fixture.h"

namespace encore::server {
namespace {

store::ObjectRef make_text(store::Store& store, std::string_view key, std::string& content) {
  const std::string head =
      "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nLast-Modified: Sun, 06 Nov 1994 08:49:37 "
      "GMT\r\n"
      "Content-Length: " +
      std::to_string(content.size()) + "\r\n";
  ObjectMeta meta;
  meta.http.status = 200;
  meta.http.head_bytes = static_cast<std::uint32_t>(head.size());
  meta.http.lifetime_seconds = 60;
  meta.http.age_zero = monotonic_now();
  meta.http.fresh_until = meta.http.age_zero + std::chrono::seconds(60);
  meta.primary_bytes = static_cast<std::uint32_t>(key.size());
  const std::array<iovec, 1> body = {{{content.data(), content.size()}}};
  return std::move(*store.make_small(
      {.key = key, .meta = std::as_bytes(std::span(&meta, 1)), .head = head}, body));
}

TEST_CASE("a coding is counted with the content that it is of", "[exchange][coding]") {
  struct Row {
    std::string method;
    std::string fields;
    std::uint64_t count;
    bool coded;
  };
  const Row row =
      GENERATE(values<Row>({{"GET", "Accept-Encoding: gzip\n", 1, true},
                            {"HEAD", "Accept-Encoding: gzip\n", 0, true},
                            {"GET", "", 0, false},
                            {"GET", "Accept-Encoding: gzip\nRange: bytes=0-9\n", 0, false}}));
  CAPTURE(row.method, row.fields);
  config::Config config;
  config.compression.codings = {"gzip"};
  const std::string text =
      row.method + " http://a.example/x HTTP/1.1\nHost: a.example\n" + row.fields;
  const std::unique_ptr<store::Store> store =
      std::move(*store::make_memory_store({.limit_bytes = 64 * kMiB}));
  std::string content(5000, 'a');
  const auto key = some_request(text, some_runtime(config));
  const store::ObjectRef object = make_text(*store, key->key, content);
  const CacheView found{.object = object,
                        .disk = {},
                        .any_resident = true,
                        .fresh_until = monotonic_now() + std::chrono::seconds(60)};
  ExchangeFixture f(text, config, found);
  cache::KernelOptions options;
  options.capacity_bytes = 16 * kMiB;
  options.admission.policy = cache::AdmissionPolicy::kAlways;
  f.kernel = std::move(*cache::Kernel::create(options, {}, {}));
  CodingMemory memory;
  Coders coders(
      {.loop = *f.loop, .store = store, .kernel = f.kernel, .stats = f.stats, .memory = memory});
  f.services.coders = &coders;
  f.exchange = std::make_unique<Exchange>(f.services, f.stream, f.request, found);
  f.exchange->start();
  CHECK(f.stream.response.head.contains("Content-Encoding: gzip\r\n") == row.coded);
  CHECK(f.stats.compressed_gzip.get() == row.count);
  f.exchange.reset();
}

}  // namespace
}  // namespace encore::server
