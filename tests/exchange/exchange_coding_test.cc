// A coding is counted as its client gets it: with content or not at all.
#include <memory>
#include <string>

#include "base/units.h"
#include "proxy/exchange/coders.h"
#include "proxy/store/memory_store.h"
#include "tests/catch.h"
#include "tests/exchange/exchange_fixture.h"
#include "tests/transfer/made_object.h"

namespace encore::server {
namespace {

http::StoredMeta fresh_for_a_minute() {
  http::StoredMeta meta;
  meta.status = 200;
  meta.lifetime_seconds = 60;
  meta.age_zero = monotonic_now();
  meta.fresh_until = meta.age_zero + std::chrono::seconds(60);
  return meta;
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
  const std::string content(5000, 'a');
  const auto key = some_request(text, some_runtime(config));
  const store::ObjectRef object = make_object(*store, {.key = key->key,
                                                       .fields = "Content-Type: text/plain\r\n",
                                                       .http = fresh_for_a_minute(),
                                                       .body = content});
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
