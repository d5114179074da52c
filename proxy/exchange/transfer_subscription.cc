#include "proxy/exchange/transfer_subscription.h"

namespace encore::server {
namespace {

// Transfers of others that a request waits for one after the other, where each turns out to bring
// another variant: the first may have been begun when nothing was known of how they differ. Each of
// the others is begun by a request that learnt it from the one before.
constexpr std::uint32_t kJoinsMax = 3;

}  // namespace

TransferSubscription::TransferSubscription(Inflight& inflight, const RequestContext& request,
                                           TransferReader& reader)
    : inflight_(inflight),
      request_(request),
      reader_(reader),
      requester_{.settings = request.runtime->number,
                 .credentials = request.credentials(),
                 .client = request.client} {}

bool TransferSubscription::has_joined_enough() const { return joins_ == kJoinsMax; }

JoinOutcome TransferSubscription::join(const std::shared_ptr<Transfer>& fresh,
                                       http::VariantKeys& variants, bool checks_recent_stores,
                                       MonotonicTime now) {
  // If lately a response was for one client alone, it does not wait for those of other clients
  // to show the same.
  Inflight::JoinCandidates among = Inflight::JoinCandidates::kAll;
  if (waits_for_ == WaitsFor::kAlike) {
    among = Inflight::JoinCandidates::kAlike;
  } else if (inflight_.was_unshared_recently(request_.hash, now)) {
    among = Inflight::JoinCandidates::kAlikeBeforeHead;
  }
  auto claim = inflight_.join_or_enter(
      {.hash = request_.hash,
       .key = request_.key,
       .variants = variants,
       .reader = reader_,
       .settings = request_.runtime->number,
       .credentials = requester_.credentials,
       .client = &requester_.client,
       .among = among,
       .scope = may_join(request_) ? JoinScope::kAny : JoinScope::kBeingStored,
       .checks_recent_stores = checks_recent_stores},
      fresh);
  if (claim.joined == JoinOutcome::kNo || claim.joined == JoinOutcome::kStoredMeanwhile) {
    return claim.joined;
  }
  transfer_ = std::move(claim.transfer);
  role_ = Role::kJoined;
  if (claim.joined == JoinOutcome::kBehindHead) role_ = Role::kJoinedLate;
  if (claim.joined == JoinOutcome::kUntilStored) role_ = Role::kWaits;
  ++joins_;
  joined_at_ = now;
  return claim.joined;
}

void TransferSubscription::lead(std::shared_ptr<Transfer> transfer) {
  transfer_ = std::move(transfer);
  role_ = Role::kAsked;
  transfer_->add_first_reader(reader_);
}

void TransferSubscription::go_on_with(std::shared_ptr<Transfer> transfer) {
  leave();
  transfer_ = std::move(transfer);
  transfer_->add_first_reader(reader_);
}

void TransferSubscription::wait_for_store() {
  if (role_ != Role::kWaits) transfer_->mark_waiting(reader_);
  role_ = Role::kWaits;
}

void TransferSubscription::count_late_join(cache::Kernel& kernel, MonotonicTime now) {
  const SharedResponse& response = transfer_->response();
  if (response.reason != http::StoreReason::kOk) return;
  const auto reason = kernel.admit({request_.hash, request_.key},
                                   {.variant = response.variant,
                                    .requests = 1,
                                    .size_bytes = response.size_for_admission(),
                                    .rule = response.admission},
                                   now);
  if (cache::is_stored(reason)) transfer_->want_store();
}

bool TransferSubscription::has_waited_long_enough(MonotonicTime now) const {
  const Nanoseconds limit = request_.runtime->config.timeouts.collapse;
  return has_joined() && limit.count() != 0 && now - joined_at_ >= limit && transfer_ != nullptr &&
         (role_ == Role::kWaits || transfer_->phase() == TransferPhase::kWaiting);
}

// The first to leave asks for all that wait; a request that waited in vain again, or has seen a
// head, asks alone. A request that waited for other credentials has not waited for its own yet.
ShareDecision TransferSubscription::give_up() {
  if (role_ != Role::kWaits) transfer_->give_up_head();
  const bool alike = is_alike();
  if (role_ == Role::kWaits || (joins_ > 1 && alike)) return ShareDecision::kAskAlone;
  return alike ? ShareDecision::kAskAgain : ShareDecision::kAskApart;
}

void TransferSubscription::learn(ShareDecision take) {
  const bool is_in_vain = take == ShareDecision::kOnceStored;
  if (take == ShareDecision::kAskAlone || (is_in_vain && is_alike())) {
    waits_for_ = WaitsFor::kNobody;
  } else if (take == ShareDecision::kAskApart || is_in_vain) {
    waits_for_ = WaitsFor::kAlike;
  }
}

void TransferSubscription::leave() {
  if (transfer_ == nullptr) return;
  const std::shared_ptr<Transfer> left = std::move(transfer_);
  left->leave(reader_);
}

}  // namespace encore::server
