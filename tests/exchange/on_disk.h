// A kernel whose memory is empty, and a real disk that has what is put there by its decisions.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cache/payload_owner.h"
#include "proxy/exchange/cache_lookup.h"
#include "proxy/exchange/disk_loads.h"
#include "proxy/store/memory_store.h"
#include "proxy/transfer/saved_object.h"
#include "tests/catch.h"
#include "tests/exchange/some_request.h"
#include "tests/temporary_directory.h"
#include "tests/transfer/made_object.h"

namespace encore::server {

// A kernel whose memory is empty, a disk that has what is put.
class OnDisk : private cache::PayloadOwner {
 public:
  // `segment_bytes`: of the disk, which has 32 of them.
  explicit OnDisk(std::uint64_t segment_bytes = 256U << 10U)
      : loop(std::move(*net::Loop::create())),
        runtime(some_runtime()),
        store(std::move(*store::make_memory_store({.limit_bytes = 64U << 20U}))),
        lookup(*loop, kernel, latest, runtime) {
    disk::DisksOptions disk;
    disk.disks = {
        {.path = directory / "disk", .bytes = 32 * segment_bytes, .segment_bytes = segment_bytes}};
    disk.identity_seed = {1, 2};
    disk.is_inline = true;
    auto opened = disk::Disks::open(disk);
    REQUIRE(opened.has_value());
    disks = std::move(*opened);
    cache::KernelOptions options;
    options.capacity_bytes = 16U << 20U;
    options.admission.policy = cache::AdmissionPolicy::kAlways;
    options.identity_seed = {1, 2};
    options.disks = disks->kernel_disks();
    kernel = std::move(*cache::Kernel::create(options, {.owner = this}, loop->now()));
    disks->start(*kernel);
    make_loads();
  }
  ~OnDisk() {
    (void)disks->stop({});
    loads.reset();
    kernel.reset();
  }
  OnDisk(const OnDisk&) = delete;
  OnDisk& operator=(const OnDisk&) = delete;

  void make_loads() {
    loads = std::make_unique<DiskLoads>(DiskLoads::Parts{.loop = *loop,
                                                         .disks = disks,
                                                         .store = store,
                                                         .kernel = kernel,
                                                         .inflight = inflight,
                                                         .resident = nullptr});
  }

  std::shared_ptr<const RequestContext> request(std::string_view text) const {
    return some_request(text, runtime);
  }

  // On disk, and not in memory. `key`: the one in the record.
  void put(const RequestContext& request, std::string_view names = {}, std::string_view key = {}) {
    std::string own;
    REQUIRE(http::write_variant_key(names, request.head.fields, request.vary(), own));
    http::StoredMeta meta;
    meta.fresh_until = loop->now() + std::chrono::hours(1);
    put(request, names, own,
        make_object(*store, {.key = key.empty() ? std::string_view(request.key) : key,
                             .names = names,
                             .variant_key = own,
                             .http = meta}));
  }
  // One with a body of its own.
  void put_large(const RequestContext& request) {
    ObjectMeta meta;
    meta.http.fresh_until = loop->now() + std::chrono::hours(1);
    meta.primary_bytes = static_cast<std::uint32_t>(request.key.size());
    auto writer = store->reserve({.key = request.key, .length = kLargeBytes, .body = {}});
    REQUIRE(writer.has_value());
    store::Body& body = *(*writer)->body();
    const std::vector<std::byte> bytes(kLargeBytes);
    REQUIRE(body.append(bytes) == bytes.size());
    body.complete();
    auto object = (*writer)->commit(
        {.key = request.key, .meta = std::as_bytes(std::span(&meta, 1)), .head = {}});
    REQUIRE(object.has_value());
    put(request, {}, {}, *object);
  }
  void put(const RequestContext& request, std::string_view names, std::string_view own,
           const store::ObjectRef& object) {
    const http::StoredMeta& meta = meta_of(*object).http;
    const cache::Key entry{request.hash, request.key};
    const auto number = kernel->intern(names, loop->now());
    REQUIRE(number.has_value());
    cache::DiskDecision decision;
    store::ObjectRef kept = object;
    const auto outcome = kernel->commit(entry,
                                        {.variant = variant_of(names, own),
                                         .charge_bytes = object->charge(),
                                         .fresh_until = meta.fresh_until,
                                         .keep_until = meta.fresh_until,
                                         .payload = object.payload(),
                                         .disk_bytes = *record_bytes_of(*object),
                                         .disk_names = *number},
                                        0, loop->now(), &decision);
    REQUIRE(outcome == cache::CommitOutcome::kStored);
    (void)kept.detach();
    REQUIRE(decision.outcome == cache::DiskOutcome::kPlaced);
    disks->decided(entry, decision,
                   make_record_source(object, request.hash, {meta.fresh_until, meta.fresh_until},
                                      {loop->now(), loop->wall_now()}));
    disks->tick();
    forget_memory();
  }
  void forget_memory() {
    (void)kernel->make_room({.bytes = 1U << 30U, .victims_max = 1000}, loop->now());
    REQUIRE(in_memory() == 0);
  }
  std::uint64_t in_memory() const { return kernel->statistics().objects; }
  CacheView find(const RequestContext& request) { return lookup.lookup(request); }
  void run() {
    loop->post([] {});
    loop->turn();
  }

  static constexpr std::size_t kLargeBytes = 200'000;
  const TemporaryDirectory directory;
  std::unique_ptr<net::Loop> loop;
  std::shared_ptr<const Runtime> runtime;
  std::unique_ptr<store::Store> store;
  std::unique_ptr<disk::Disks> disks;
  std::unique_ptr<cache::Kernel> kernel;
  std::unique_ptr<Inflight> inflight_room = std::make_unique<Inflight>();
  Inflight& inflight = *inflight_room;
  LamportClock latest;
  CacheLookup lookup;
  std::unique_ptr<DiskLoads> loads;

 private:
  void release(std::span<const cache::Payload> payloads) override { store->release(payloads); }
};

}  // namespace encore::server
