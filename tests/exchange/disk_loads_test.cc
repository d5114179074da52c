// Records of a real disk, written by the real kernel's decision, and read for requests.
#include "proxy/exchange/disk_loads.h"

#include <chrono>
#include <fstream>
#include <string>
#include <vector>

#include "tests/catch.h"
#include "tests/exchange/on_disk.h"
#include "tests/exchange/some_request.h"

namespace encore::server {
namespace {

using std::chrono::hours;

std::string get_path(std::string_view path, std::string_view fields = {}) {
  return "GET http://a.example" + std::string(path) + " HTTP/1.1\nHost: a.example\n" +
         std::string(fields);
}

class Reader final : public LoadReader {
 public:
  void on_loaded(store::ObjectRef object) override {
    ++calls;
    found = std::move(object);
    if (then) then();
  }
  int calls = 0;
  store::ObjectRef found;
  std::function<void()> then;
};

TEST_CASE("what lies on disk is found and read", "[exchange][disk]") {
  OnDisk on;
  const auto request = on.request(get_path("/a"));
  on.put(*request);
  CHECK_FALSE(on.find(*on.request(get_path("/b"))).disk);
  const CacheView view = on.find(*request);
  CHECK_FALSE(view.object);
  REQUIRE(view.disk);
  CHECK(view.any_resident);
  CHECK(view.fresh_until > on.loop->now());
  Reader reader;
  on.loads->wait(reader, *request, view);
  CHECK(reader.calls == 0);  // not within the call
  on.run();
  REQUIRE(reader.calls == 1);
  REQUIRE(reader.found);
  CHECK(primary_key_of(*reader.found) == request->key);
  http::VariantKeys own(request->head.fields, request->vary());
  CHECK(on.lookup.answers(*reader.found, *request, own));
}

TEST_CASE("whether anything is on disk is asked without being looked for", "[exchange][disk]") {
  OnDisk on;
  const auto request = on.request(get_path("/a"));
  CHECK_FALSE(on.lookup.has_any(*request));
  on.put(*request);
  CHECK(on.lookup.has_any(*request));
  CHECK_FALSE(on.lookup.has_any(*on.request(get_path("/b"))));
}

TEST_CASE("of the variants on disk the request's own is found", "[exchange][disk]") {
  OnDisk on;
  const auto german = on.request(get_path("/a", "Accept-Language: de\n"));
  const auto french = on.request(get_path("/a", "Accept-Language: fr\n"));
  on.put(*german, "accept-language");
  on.put(*french, "accept-language");
  for (const auto& request : {german, french}) {
    const CacheView view = on.find(*request);
    REQUIRE(view.disk);
    Reader reader;
    on.loads->wait(reader, *request, view);
    on.run();
    REQUIRE(reader.found);
    http::VariantKeys own(request->head.fields, request->vary());
    CHECK(on.lookup.answers(*reader.found, *request, own));
    const auto& other = request == german ? french : german;
    http::VariantKeys others(other->head.fields, other->vary());
    CHECK_FALSE(on.lookup.answers(*reader.found, *other, others));
  }
  const CacheView none = on.find(*on.request(get_path("/a", "Accept-Language: it\n")));
  CHECK_FALSE(none.disk);
  CHECK(none.any_resident);
}

TEST_CASE("a record of another key with the same hash answers nobody", "[exchange][disk]") {
  OnDisk on;
  const auto request = on.request(get_path("/a"));
  on.put(*request, {}, request->key + "x");
  for (int i = 0; i < 3; ++i) {
    const CacheView view = on.find(*request);
    REQUIRE(view.disk);
    Reader reader;
    on.loads->wait(reader, *request, view);
    on.run();
    REQUIRE(reader.found);
    http::VariantKeys own(request->head.fields, request->vary());
    CHECK_FALSE(on.lookup.answers(*reader.found, *request, own));
    CHECK(on.in_memory() == 0);
  }
}

TEST_CASE("what is asked for on disk again goes into memory", "[exchange][disk]") {
  OnDisk on;
  const auto request = on.request(get_path("/a"));
  on.put(*request);
  for (const std::uint64_t expected : {0U, 1U}) {
    const CacheView view = on.find(*request);
    REQUIRE(view.disk);
    CHECK(view.disk->promote == (expected == 1));
    Reader reader;
    on.loads->wait(reader, *request, view);
    on.run();
    REQUIRE(reader.found);
    CHECK(on.in_memory() == expected);
  }
  CHECK(on.find(*request).object);
  on.forget_memory();
  CHECK(on.find(*request).disk);
}

TEST_CASE("what no memory is asked to keep is kept for those who read it", "[exchange][disk]") {
  OnDisk on;
  const auto request = on.request(get_path("/a"));
  on.put_large(*request);
  for (const bool is_kept : {false, true}) {
    Reader reader;
    on.loads->wait(reader, *request, on.find(*request));
    on.run();
    REQUIRE(reader.found);
    CHECK(on.store->stats().pinned_bytes == (is_kept ? 0 : reader.found->charge()));
    CHECK((reader.found->body()->held_for(0) >= OnDisk::kLargeBytes) == !is_kept);
  }
  CHECK(on.store->stats().pinned_bytes == 0);
  CHECK(on.store->stats().objects == 1);
  on.forget_memory();
  CHECK(on.store->stats().objects == 0);
}

TEST_CASE("one read is for all who wait, but for those who leave", "[exchange][disk]") {
  OnDisk on;
  const auto request = on.request(get_path("/a"));
  on.put(*request);
  const CacheView view = on.find(*request);
  const auto reads = [&] { return on.disks->statistics().disks.at(0).reads; };
  const std::uint64_t before = reads();
  std::vector<Reader> readers(4);
  for (Reader& reader : readers) on.loads->wait(reader, *request, view);
  CHECK(reads() - before == 1);
  on.loads->leave(readers[1], *request, view);
  readers[0].then = [&] { on.loads->leave(readers[2], *request, view); };
  on.run();
  CHECK(readers[0].found);
  CHECK(readers[1].calls == 0);
  CHECK(readers[2].calls == 0);
  CHECK(readers[3].found.get() == readers[0].found.get());
}

TEST_CASE("what was invalidated while it was read is not used", "[exchange][disk]") {
  OnDisk on;
  const auto request = on.request(get_path("/a"));
  on.put(*request);
  (void)on.find(*request);
  const CacheView view = on.find(*request);
  REQUIRE(view.disk->promote);
  Reader reader;
  on.loads->wait(reader, *request, view);
  if (GENERATE(false, true)) {
    on.inflight.invalidate(request->hash, request->key);
  } else {
    on.inflight.invalidate_all();
  }
  Reader late;
  on.loads->wait(late, *request, view);
  on.run();
  CHECK(reader.calls == 1);
  CHECK_FALSE(reader.found);
  CHECK_FALSE(late.found);
  CHECK(on.in_memory() == 0);
}

TEST_CASE("what has gone from the index while it was read is for its readers alone",
          "[exchange][disk]") {
  OnDisk on;
  const auto request = on.request(get_path("/a"));
  on.put(*request);
  (void)on.find(*request);
  const CacheView view = on.find(*request);
  REQUIRE(view.disk->promote);
  Reader reader;
  on.loads->wait(reader, *request, view);
  (void)on.kernel->lost({request->hash, request->key}, view.disk->place, on.loop->now());
  on.run();
  REQUIRE(reader.found);
  CHECK(on.in_memory() == 0);
  CHECK(on.store->stats().pinned_bytes == reader.found->charge());
  reader.found = {};
  CHECK(on.store->stats().objects == 0);
}

TEST_CASE("what cannot be read is lost, and its readers told", "[exchange][disk]") {
  OnDisk on;
  const auto request = on.request(get_path("/a"));
  on.put(*request);
  const CacheView view = on.find(*request);
  {
    std::fstream file(on.directory / "disk", std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(0, std::ios::end);
    const auto size = static_cast<std::size_t>(file.tellg());
    constexpr std::size_t kSuperblocks = 128U << 10U;
    file.seekp(kSuperblocks);
    const std::string zeros(size - kSuperblocks, '\0');
    file.write(zeros.data(), static_cast<std::streamsize>(zeros.size()));
  }
  Reader reader;
  on.loads->wait(reader, *request, view);
  on.run();
  CHECK(reader.calls == 1);
  CHECK_FALSE(reader.found);
  CHECK_FALSE(on.find(*request).disk);
}

TEST_CASE("a disk that answers when its worker has ended calls nobody", "[exchange][disk]") {
  OnDisk on;
  const auto request = on.request(get_path("/a"));
  on.put(*request);
  const CacheView view = on.find(*request);
  Reader reader;
  on.loads->wait(reader, *request, view);
  on.loads->leave(reader, *request, view);
  on.loads.reset();
  on.run();
  CHECK(reader.calls == 0);
}

}  // namespace
}  // namespace encore::server
