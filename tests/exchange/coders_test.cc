// Coded forms that are kept with their object: the kernel and the store count what they take.
#include "proxy/exchange/coders.h"

#include <memory>
#include <span>
#include <string>

#include "base/units.h"
#include "cache/payload_owner.h"
#include "proxy/store/memory_store.h"
#include "tests/catch.h"
#include "tests/exchange/some_request.h"
#include "tests/transfer/made_object.h"

namespace encore::server {
namespace {

using coding::Coding;

constexpr MonotonicTime kSomeTime{std::chrono::hours(1)};

// One object in a kernel's memory.
struct Kept : private cache::PayloadOwner {
  explicit Kept(std::uint64_t capacity_bytes = 16 * kMiB) {
    cache::KernelOptions options;
    options.capacity_bytes = capacity_bytes;
    options.shards = 1;
    options.admission.policy = cache::AdmissionPolicy::kAlways;
    kernel = std::move(*cache::Kernel::create(options, {.owner = this}, {}));
    store::ObjectRef made = make_object(*store, {.key = request->key});
    const auto outcome =
        kernel->commit({request->hash, request->key},
                       {.charge_bytes = made->charge(), .payload = made.payload()}, 0, kSomeTime);
    REQUIRE(outcome == cache::CommitOutcome::kStored);
    object = store::ObjectRef::share(made.payload());
    (void)made.detach();
  }
  ~Kept() {
    object = {};
    kernel.reset();
  }
  Kept(const Kept&) = delete;
  Kept& operator=(const Kept&) = delete;

  std::uint64_t used() const { return kernel->statistics().used_bytes; }

  std::unique_ptr<net::Loop> loop = std::move(*net::Loop::create());
  std::unique_ptr<store::Store> store =
      std::move(*store::make_memory_store({.limit_bytes = 64 * kMiB}));
  std::unique_ptr<cache::Kernel> kernel;
  WorkerStats stats;
  CodingMemory memory;
  Coders coders{
      {.loop = *loop, .store = store, .kernel = kernel, .stats = stats, .memory = memory}};
  std::shared_ptr<const RequestContext> request =
      some_request("GET http://a.example/x HTTP/1.1\nHost: a.example\n");
  store::ObjectRef object;

 private:
  void release(std::span<const cache::Payload> payloads) override { store->release(payloads); }
};

}  // namespace

TEST_CASE("a coded form is charged as long as its object is kept", "[exchange][coding]") {
  Kept it;
  const std::uint64_t before = it.used();
  const std::string body(1000, 'c');
  it.coders.keep(*it.request, *it.object, Coding::kGzip, body);
  const store::Object* const form = it.object->form(coding::number_of(Coding::kGzip));
  REQUIRE(form != nullptr);
  CHECK(it.object->form(coding::number_of(Coding::kBrotli)) == nullptr);
  const std::uint64_t grown = it.used() - before;
  CHECK(grown == form->charge());
  CHECK(it.kernel->statistics().reserved_bytes == 0);

  // Another worker was first: its form stays, and what the second would take goes back.
  it.coders.keep(*it.request, *it.object, Coding::kGzip, std::string(500, 'd'));
  CHECK(it.object->form(coding::number_of(Coding::kGzip)) == form);
  CHECK(it.used() == before + grown);
  CHECK(it.kernel->statistics().reserved_bytes == 0);

  it.coders.keep(*it.request, *it.object, Coding::kBrotli, body);
  CHECK(it.object->form(coding::number_of(Coding::kBrotli)) != nullptr);
  CHECK(it.used() > before + grown);

  // With the object all of it goes.
  CHECK(it.kernel->invalidate({it.request->hash, it.request->key}, kSomeTime) == 1);
  CHECK(it.used() == 0);
}

TEST_CASE("a form of an object that has gone is charged to nobody", "[exchange][coding]") {
  Kept it;
  CHECK(it.kernel->invalidate({it.request->hash, it.request->key}, kSomeTime) == 1);
  it.coders.keep(*it.request, *it.object, Coding::kGzip, std::string(1000, 'c'));
  CHECK(it.used() == 0);
  CHECK(it.kernel->statistics().reserved_bytes == 0);
}

TEST_CASE("a form for which the cache has no room is not kept", "[exchange][coding]") {
  Kept it(kMiB);
  const std::uint64_t before = it.used();
  it.coders.keep(*it.request, *it.object, Coding::kGzip, std::string(2 * kMiB, 'c'));
  CHECK(it.object->form(coding::number_of(Coding::kGzip)) == nullptr);
  CHECK(it.used() <= before);
  CHECK(it.kernel->statistics().reserved_bytes == 0);
}

TEST_CASE("responses and work are counted for each coding", "[exchange][coding]") {
  Kept it;
  it.coders.count_response(Coding::kGzip);
  it.coders.count_work(Coding::kGzip, 10, 4);
  it.coders.count_work(Coding::kBrotli, 100, 30);
  it.coders.count_work(Coding::kZstd, 1000, 200);
  CHECK(it.stats.compressed_gzip.get() == 1);
  CHECK(it.stats.compressed_br.get() == 0);
  CHECK(it.stats.compressed_zstd.get() == 0);
  CHECK(it.stats.compressed_gzip_read.get() == 10);
  CHECK(it.stats.compressed_gzip_made.get() == 4);
  CHECK(it.stats.compressed_br_read.get() == 100);
  CHECK(it.stats.compressed_br_made.get() == 30);
  CHECK(it.stats.compressed_zstd_read.get() == 1000);
  CHECK(it.stats.compressed_zstd_made.get() == 200);
}

}  // namespace encore::server
