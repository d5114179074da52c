// A worker's intake on one thread, with a cache in memory and no socket: requests come as text, on
// one connection after the other.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "cache/payload_owner.h"
#include "proxy/http/parser.h"
#include "proxy/intake/intake.h"
#include "proxy/store/memory_store.h"
#include "tests/catch.h"
#include "tests/transfer/made_object.h"

namespace encore::server {

inline net::Address address_of(const char* ip) { return net::Address::parse_ip(ip, 4711).value(); }

class IntakeWorld final : private cache::PayloadOwner, private ConnectionsAllowed {
 public:
  explicit IntakeWorld(const std::function<void(config::Config&)>& change = {},
                       config::Mode mode = config::Mode::kReverse)
      : loop(std::move(*net::Loop::create())),
        store_(std::move(*store::make_memory_store({.limit_bytes = 64U << 20U}))),
        listener{.mode = mode, .index = 0, .name = "front"} {
    config.listen = {{}};
    config.listen[0].mode = mode;
    config.forward.allow_clients = {"0.0.0.0/0"};
    config.origin = {{}};
    if (change) change(config);
    reload();
    cache::KernelOptions options;
    options.capacity_bytes = 16U << 20U;
    options.admission.policy = cache::AdmissionPolicy::kAlways;
    kernel_ = std::move(*cache::Kernel::create(options, {.owner = this}, {}));
    connect();
  }
  ~IntakeWorld() {
    found = {};
    kernel_.reset();
  }
  IntakeWorld(const IntakeWorld&) = delete;
  IntakeWorld& operator=(const IntakeWorld&) = delete;

  void reload() {
    auto made = Runtime::create(config, {}, "test", runtime.get());
    REQUIRE(made.has_value());
    runtime = *made;
  }
  void connect(const char* peer = "192.0.2.1") {
    identity = std::make_unique<ClientIdentity>(address_of(peer), [this] { ++resumed; });
    seat = {};
  }
  // `lines`: request line and fields, each with LF.
  template <typename Expected>
  Expected& take(std::string_view lines) {
    text = {};
    for (const char c : lines) {
      if (c == '\n') text += '\r';
      text += c;
    }
    text += "\r\n";
    again<Expected>();
    return std::get<Expected>(outcome);
  }
  // The same request is brought again.
  template <typename Expected>
  Expected& again() {
    http::ParseError error;
    head = {};
    REQUIRE(http::parse_request(text, runtime->head_limits, head, error) ==
            http::ParseStatus::kComplete);
    view = {};
    found = {};
    seat.leave();
    outcome = intake.take({.head = head,
                           .text = text,
                           .listener = listener,
                           .identity = *identity,
                           .seat = seat,
                           .is_tls = is_tls},
                          view, found);
    REQUIRE(std::holds_alternative<Expected>(outcome));
    return std::get<Expected>(outcome);
  }
  std::string refused(std::string_view lines) {
    const Refusal& refusal = take<Intake::Refuse>(lines).refusal;
    return std::to_string(refusal.status) + " " + std::string(refusal.detail);
  }
  // The response to what was asked for last, fresh for an hour.
  void put(std::string_view fields = {}) {
    http::StoredMeta meta;
    meta.fresh_until = loop->now() + std::chrono::hours(1);
    meta.lifetime_seconds = 3600;
    store::ObjectRef object =
        make_object(*store_, {.key = view.key, .fields = fields, .http = meta});
    const_cast<ObjectMeta&>(meta_of(*object)).plain = ObjectMeta::kPlain;
    REQUIRE(kernel_->commit({view.hash, view.key},
                            {.charge_bytes = object->charge(),
                             .fresh_until = meta.fresh_until,
                             .payload = object.payload()},
                            0, loop->now()) == cache::CommitOutcome::kStored);
    (void)object.detach();
  }

  std::unique_ptr<net::Loop> loop;
  config::Config config;
  std::shared_ptr<const Runtime> runtime;
  std::unique_ptr<ClientIdentity> identity;
  ClientCounter transfers;
  ClientCounter::Seat seat;
  bool is_tls = false;
  int resumed = 0;
  WorkerStats stats;
  PasswordChecks passwords;

 private:
  void release(std::span<const cache::Payload> payloads) override { store_->release(payloads); }
  std::uint32_t connections_allowed() const override { return 100; }

  std::unique_ptr<store::Store> store_;
  std::unique_ptr<cache::Kernel> kernel_;
  LamportClock latest_;
  Inflight inflight_;
  CodingMemory coding_memory_;
  ThreadActivity activity_;
  const filter::Seed seed_{1, 2};
  RequestLog log_{*loop, stats, nullptr, runtime};
  CacheLookup cache_{*loop, kernel_, latest_, runtime};
  Coders coders_{{.loop = *loop,
                  .store = store_,
                  .kernel = kernel_,
                  .stats = stats,
                  .memory = coding_memory_}};

 public:
  Intake intake{{.loop = *loop,
                 .runtime = runtime,
                 .identity_seed = seed_,
                 .activity = activity_,
                 .stats = stats,
                 .log = log_,
                 .cache = cache_,
                 .coders = coders_,
                 .inflight = inflight_,
                 .passwords = passwords,
                 .transfers = transfers,
                 .allowed = *this}};
  ListenerContext listener;
  // The last request's.
  std::string text;
  http::RequestHead head;
  RequestView view;
  CacheView found;
  Intake::Outcome outcome = Intake::Wait{};
};

}  // namespace encore::server
