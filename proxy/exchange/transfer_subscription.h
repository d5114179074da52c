// TransferSubscription: the transfer that an exchange waits for or sends from, its own or another's
// that it has joined, and whose responses it waits for. Confined to its worker.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "base/time.h"
#include "cache/kernel.h"
#include "proxy/exchange/sharing.h"
#include "proxy/http/variant_keys.h"
#include "proxy/request/request_context.h"
#include "proxy/transfer/inflight.h"
#include "proxy/transfer/transfer.h"
#include "proxy/transfer/transfer_reader.h"

namespace encore::server {

class TransferSubscription {
 public:
  // All are borrowed and outlive it. `reader` is the exchange.
  TransferSubscription(Inflight& inflight, const RequestContext& request, TransferReader& reader);
  TransferSubscription(const TransferSubscription&) = delete;
  TransferSubscription& operator=(const TransferSubscription&) = delete;
  ~TransferSubscription() { leave(); }

  // Null: there is none.
  const std::shared_ptr<Transfer>& transfer() const { return transfer_; }
  const Transfer::Requester& requester() const { return requester_; }
  // Another request is what the origin was asked for.
  bool has_joined() const { return role_ != Role::kNone && role_ != Role::kAsked; }
  // This one is.
  bool is_asker() const { return role_ == Role::kAsked; }
  // It joined a transfer that had its head.
  bool has_joined_late() const { return role_ == Role::kJoinedLate; }
  // It waits until another's response is stored.
  bool waits_for_store() const { return role_ == Role::kWaits; }
  // The transfer was begun with the same credentials. REQUIRES: transfer().
  bool is_alike() const { return transfer_->requester().credentials == requester_.credentials; }

  // True if it may lead others, or follow one, as far as it has learnt.
  bool may_follow() const { return waits_for_ != WaitsFor::kNobody; }
  // Too many transfers turned out to bring another variant: it joins no more of them.
  bool has_joined_enough() const;
  // Joins a transfer, or enters `fresh` as one that others may join; null: it is not entered.
  // `checks_recent_stores`: a response that was stored meanwhile is to be looked at first.
  JoinOutcome join(const std::shared_ptr<Transfer>& fresh, http::VariantKeys& variants,
                   bool checks_recent_stores, MonotonicTime now);
  // The origin is asked by this one.
  void lead(std::shared_ptr<Transfer> transfer);
  // The rest of a response that it has begun to send comes by this one.
  void go_on_with(std::shared_ptr<Transfer> transfer);
  // It goes on to wait, until the response is stored.
  void wait_for_store();
  // Counts a waiter that joined behind the head as a request of its own.
  void count_late_join(cache::Kernel& kernel, MonotonicTime now);

  // Facts to judge another's response by.
  WaitingRequest asker(http::VariantKeys& variants, MonotonicTime now) const {
    return {request_, variants, now, is_alike()};
  }
  // True if the one that was to bring the answer for this request, too, says nothing for too long.
  bool has_waited_long_enough(MonotonicTime now) const;
  // Leaves it behind that, for others to ask in its stead. Returns how to go on.
  ShareDecision give_up();

  // The transfer of another was of no use, for this reason: from here on it waits for fewer.
  void learn(ShareDecision take);
  void follow_nobody() { waits_for_ = WaitsFor::kNobody; }
  void leave();
  // Leaves, and is nothing to any transfer.
  void forget() {
    leave();
    role_ = Role::kNone;
  }

 private:
  // Its part in the transfer.
  enum class Role : std::uint8_t {
    kNone,
    kAsked,       // it is what the origin was asked for
    kJoined,      // another's, which has no head yet
    kJoinedLate,  // another's, which had one
    kWaits,       // another's, until it is stored
  };
  // For whose responses it waits, if any.
  enum class WaitsFor : std::uint8_t { kAll, kAlike, kNobody };

  Inflight& inflight_;
  const RequestContext& request_;
  TransferReader& reader_;
  const Transfer::Requester requester_;
  std::shared_ptr<Transfer> transfer_;
  Role role_ = Role::kNone;
  WaitsFor waits_for_ = WaitsFor::kAll;
  std::uint32_t joins_ = 0;  // transfers of others that it waited for
  MonotonicTime joined_at_{};
};

}  // namespace encore::server
