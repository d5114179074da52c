// The part of an exchange that answers from a transfer: its own, or another's that it has joined.
#include <utility>

#include "proxy/exchange/exchange.h"
#include "proxy/transfer/not_stored.h"

namespace encore::server {
namespace {

// Fills in Cache-Status for the client whose request was sent. The detail of a storable response is
// the result of admission.
void tell_of(const SharedResponse& response, const config::Cache& settings,
             http::CacheStatus& status) {
  // In place of what admission came to: a rule says that it is to be followed.
  status.detail = to_string(response.unfollowed);
  if (response.reason == http::StoreReason::kOk) {
    if (!settings.cache_status_admission) return;
    status.stored = response.stored;
  }
  if (response.unfollowed != RedirectRefusal::kNone) return;
  if (response.outcome == Outcome::kMethod) return;
  const bool refused =
      response.outcome == Outcome::kUncacheable || response.outcome == Outcome::kBypass;
  if (response.has_large_head && response.outcome == Outcome::kTooLarge) {
    status.detail = kLargeHead;
    return;
  }
  const bool could_be = refused && response.reason == http::StoreReason::kOk;
  status.detail = could_be  ? kNotStored
                  : refused ? http::to_string(response.reason)
                            : to_string(response.outcome);
}

// True if a shared cache may store and reuse the response, or the one that it confirms.
bool may_be_shared(const RequestContext& request, const SharedResponse& response) {
  if (response.reason == http::StoreReason::kOk) return true;
  return response.meta.status == 304 && request.is_cacheable() &&
         !request.head.fields.has(http::FieldId::kAuthorization);
}

}  // namespace

void Exchange::respond_shared() {
  const MonotonicTime now = services_.loop.now();
  const std::shared_ptr<Transfer>& transfer = subscription_.transfer();
  const bool has_joined = subscription_.has_joined();
  if (has_joined && !range_wait_.has_begun()) {
    const ShareDecision take =
        subscription_.waits_for_store()
            ? ShareDecision::kOnceStored
            : may_take(transfer->response(), subscription_.asker(variants_, now));
    if (take == ShareDecision::kOnceStored && transfer->is_awaitable()) {
      subscription_.wait_for_store();
      return;
    }
    if (take != ShareDecision::kYes) {
      ask_again(take);
      return;
    }
    if (subscription_.has_joined_late()) subscription_.count_late_join(*services_.kernel, now);
  }
  response_ = transfer->response_pointer();
  const std::string_view head = response_->head;
  ResponseSource source;
  source.head = head.substr(0, response_->common_bytes);
  if (has_joined) {
    cache_status_.collapsed = true;
    source.has_age = true;
  } else {
    tell_of(*response_, request_->runtime->config.cache, cache_status_);
    source.more_fields = head.substr(response_->common_bytes);
  }
  source.meta = &response_->meta;
  source.length = response_->length;
  source.body = transfer->body();
  source.whole = response_->whole;
  source.trailers = &response_->trailers;
  source.may_wait = range_wait_.may_wait();
  source.is_shared = may_be_shared(*request_, *response_);
  ResponsePlan plan = coding_.plan(source, nullptr,
                                   moment_of(*request_, cache_status_, services_.loop), next_turn_);
  if (plan.content == ResponsePlan::Content::kLater) {
    wait_for_range(plan.needed);
    return;
  }
  record_.outcome = has_joined ? Outcome::kCollapsed : response_->outcome;
  record_.visit = &response_->visit;
  record_.content_type = response_->content_type;
  if (!has_joined) record_.detail = cache_status_.detail;
  respond(source, std::move(plan));
}

// The bytes of the client's ranges have not come yet.
void Exchange::wait_for_range(const http::RangeNeed& needed) {
  const RangeWait::Next next = range_wait_.look(needed, {.transfer = *subscription_.transfer(),
                                                         .reader = *this,
                                                         .content = content_.reader(),
                                                         .config = request_->runtime->config,
                                                         .now = services_.loop.now()});
  switch (next) {
    case RangeWait::Next::kWait:
      return;
    case RangeWait::Next::kWhole:
      respond_shared();
      return;
    case RangeWait::Next::kPart:
      // The next one does not wait as long for nothing.
      services_.inflight.keep_ranges_alone(
          request_->hash,
          services_.loop.now() + request_->runtime->config.cache.uncacheable_memory);
      cache_status_.detail = {};
      cache_status_.stored.reset();
      cache_status_.collapsed = false;
      ask_alone(cache_status_.forwarded);
      return;
    case RangeWait::Next::kBroken: {
      const bool no_memory = subscription_.transfer()->is_out_of_memory();
      subscription_.leave();
      fail({.status = no_memory ? 503 : 502,
            .outcome = no_memory ? Outcome::kNoMemory : Outcome::kOriginAborted,
            .detail = no_memory ? "out-of-memory" : "incomplete"});
      return;
    }
  }
}

void Exchange::on_failure() {
  TransferFailure failure = subscription_.transfer()->failure();
  if (subscription_.has_joined() && failure.of_the_client) {
    ask_again(ShareDecision::kAskAlone);
    return;
  }
  subscription_.leave();
  visit_ = std::move(failure.visit);
  record_.visit = &visit_;
  fail({.status = failure.status,
        .outcome = failure.outcome,
        .detail = failure.detail,
        .why = failure.why});
}

}  // namespace encore::server
