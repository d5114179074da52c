// Transfers with readers on threads of their own, that check each byte of what they are given.
#pragma once

#include <algorithm>
#include <array>
#include <functional>
#include <latch>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "proxy/http/parser.h"
#include "proxy/store/memory_store.h"
#include "proxy/transfer/transfer.h"
#include "tests/catch.h"

namespace encore::server {

inline std::shared_ptr<const std::string> key_of(std::string text) {
  return std::make_shared<const std::string>(std::move(text));
}

inline char byte_at(std::uint64_t offset) { return static_cast<char>('a' + offset * 7 % 26); }

// Threads with a loop and a home each, and a store for the bodies.
struct Fixture {
  explicit Fixture(std::size_t count) {
    auto made = store::make_memory_store({.limit_bytes = 256U << 20U});
    REQUIRE(made.has_value());
    store = std::move(*made);
    for (std::size_t i = 0; i < count; ++i) {
      auto loop = net::Loop::create();
      REQUIRE(loop.has_value());
      loops.push_back(std::move(*loop));
      homes.push_back(std::make_unique<TransferHome>(*loops.back()));
    }
    for (std::size_t i = 0; i < count; ++i) {
      threads.emplace_back([&loop = *loops[i], &home = *homes[i]] {
        const TransferHome::Turn turn(home);
        loop.run();
      });
    }
  }
  ~Fixture() {
    for (auto& loop : loops) loop->stop();
    for (auto& thread : threads) thread.join();
  }
  Fixture(const Fixture&) = delete;
  Fixture& operator=(const Fixture&) = delete;

  // Runs on the home's loop and waits for it.
  void on(TransferHome& home, const std::function<void()>& call) {
    std::latch done(1);
    home.post([&] {
      call();
      done.count_down();
    });
    done.wait();
  }
  store::BodyRef make_body() {
    auto body = store->make_body({});
    REQUIRE(body.has_value());
    return std::move(*body);
  }

  std::unique_ptr<store::Store> store;
  std::vector<std::unique_ptr<net::Loop>> loops;
  std::vector<std::unique_ptr<TransferHome>> homes;
  std::vector<std::thread> threads;
};

// One that others may find, made at home.
inline std::shared_ptr<Transfer> listed(Fixture& f, TransferHome& home) {
  const auto transfer = std::make_shared<Transfer>(home, filter::Hash128{}, key_of("key"));
  f.on(home, [&] { transfer->set_listed(); });
  return transfer;
}

inline const http::Fields kNoFields;
inline const http::VaryOptions kVary;

// Joins for a request without fields.
inline JoinOutcome join(Transfer& transfer, TransferReader& reader,
                        JoinScope scope = JoinScope::kAny) {
  const http::VariantKeys own(kNoFields, kVary);
  std::string names;
  return transfer.join(reader, own, scope, names);
}

inline std::shared_ptr<const SharedResponse> some_response(std::string text) {
  auto response = std::make_shared<SharedResponse>();
  response->head = std::move(text);
  response->shareable = true;
  return response;
}

// Reads the body as it comes and checks each byte. Lives on its worker.
class Reader final : public TransferReader {
 public:
  Reader(TransferHome& worker, std::shared_ptr<Transfer> transfer, std::latch& ended)
      : TransferReader(worker), transfer_(std::move(transfer)), ended_(ended) {}
  ~Reader() override { leave(); }

  void on_transfer() override {
    if (transfer_ == nullptr || transfer_->phase() == TransferPhase::kWaiting) return;
    if (transfer_->phase() != TransferPhase::kSharing) {
      if (transfer_->phase() == TransferPhase::kFailed) failure = transfer_->failure().detail;
      leave();
      return;
    }
    if (!cursor_) {
      head = transfer_->response().head;
      cursor_ = transfer_->body()->open(0);
      if (!cursor_) {
        not_kept = true;
        leave();
        return;
      }
      transfer_->mark_opened(*this);
    }
    // The state first: what came before the end is then seen.
    const store::BodyState state = cursor_->state();
    std::array<iovec, 8> parts;
    while (true) {
      const auto peeked = cursor_->peek(parts, 100'000);
      if (peeked.bytes == 0) break;
      for (std::size_t i = 0; i < peeked.parts; ++i) check(parts[i]);
      cursor_->advance(peeked.bytes);
      transfer_->advance(*this, cursor_->position());
    }
    if (state == store::BodyState::kGrowing) return;
    complete = state == store::BodyState::kComplete;
    leave();
  }
  void on_interim(std::string_view) override {}

  void leave() {
    if (transfer_ == nullptr) return;
    std::exchange(transfer_, nullptr)->leave(*this);
    ended_.count_down();
  }

  std::uint64_t bytes = 0;
  bool wrong = false;
  bool complete = false;
  bool not_kept = false;
  std::string head;
  std::string failure;

 private:
  void check(const iovec& part) {
    const auto* text = static_cast<const char*>(part.iov_base);
    for (std::size_t i = 0; i < part.iov_len; ++i) wrong = wrong || text[i] != byte_at(bytes + i);
    bytes += part.iov_len;
  }

  std::shared_ptr<Transfer> transfer_;
  std::latch& ended_;
  std::optional<store::Body::Cursor> cursor_;
};

inline void append(store::Body& body, std::size_t bytes) {
  std::string text(bytes, '\0');
  for (std::size_t i = 0; i < bytes; ++i) text[i] = byte_at(body.size() + i);
  REQUIRE(body.append(std::as_bytes(std::span(text))) == bytes);
}

}  // namespace encore::server
