// The part of an exchange that asks an origin, or waits for what another has asked for.
#include <memory>
#include <utility>

#include "base/recycled.h"
#include "proxy/exchange/exchange.h"
#include "proxy/exchange/purge_request.h"

namespace encore::server {
namespace {

ExpectedVariant variant_of(const store::Object& object) {
  return {.names = std::string(names_of(object)), .key = std::string(variant_key_of(object))};
}

std::shared_ptr<const std::string> shared_key(
    const std::shared_ptr<const RequestContext>& request) {
  return {request, &request->key};
}

}  // namespace

// One at a time: a request that finds a validation in progress leaves it to that.
void Exchange::validate_in_background() {
  if (!services_.inflight.refresh_backoff().may_begin(request_->hash, services_.loop.now())) return;
  auto transfer = make_recycled<Transfer>(services_.home, request_->hash, shared_key(request_),
                                          subscription_.requester());
  transfer->expect(variant_of(*found_.object));
  // A response to HEAD has nothing for others, nor has one of which each asks for himself.
  const bool is_for_others =
      request_->head.method == http::Method::kGet && request_->request_policy->collapse;
  if (!is_for_others) transfer->stop_joining();
  if (!services_.inflight.enter_if_absent(transfer)) return;
  services_.stats.background_fetches.add();
  services_.origins.start_fetch(
      std::move(transfer), request_,
      {.table = is_for_others ? OriginFetchOptions::Table::kIn : OriginFetchOptions::Table::kNotIn,
       .whom = OriginFetchOptions::For::kNobody,
       .validates = found_});
}

void Exchange::ask(const Ask& ask) {
  steps_.go(Step::kAsk);
  const bool whole = ask.what == OriginRequestForm::kWhole;
  const bool is_found = ask.sharing == Ask::Sharing::kWhereAllowed && may_be_found(*request_);
  const MonotonicTime now = services_.loop.now();
  const bool is_range_alone = !http::range_value(request_->head).empty() &&
                              services_.inflight.are_ranges_alone(request_->hash, now);
  const bool leads = is_found && subscription_.may_follow() && !is_range_alone &&
                     may_lead(services_.inflight.unshared(
                                  request_->hash, subscription_.requester().credentials, now),
                              static_cast<bool>(ask.validates));
  auto fresh =
      make_recycled<Transfer>(services_.home, request_->hash,
                              is_found ? shared_key(request_) : nullptr, subscription_.requester());
  if (ask.validates) fresh->expect(variant_of(*ask.validates));
  steps_.go(Step::kWait);
  if (leads) {
    if (!subscription_.has_joined_enough()) {
      const std::shared_ptr<Transfer> entered = whole ? fresh : nullptr;
      // The lookup has shown whether anything is stored.
      const bool checks_recent_stores = may_look_again_ && !found_.object && !found_.any_resident;
      JoinOutcome joined = subscription_.join(entered, variants_, checks_recent_stores, now);
      if (joined == JoinOutcome::kStoredMeanwhile) {
        may_look_again_ = false;
        if (services_.cache.has_any(*request_)) return ask_again();
        joined = subscription_.join(entered, variants_, false, now);
      }
      if (joined != JoinOutcome::kNo) {
        // The loop checks what the transfer has already, not the call that asked for it.
        if (subscription_.transfer()->phase() != TransferPhase::kWaiting) next_turn_.schedule();
        return;
      }
    } else if (whole) {
      services_.inflight.enter(fresh);
    }
  }
  subscription_.lead(fresh);
  OriginFetchOptions of_origin;
  of_origin.what = ask.what;
  if (leads && whole) of_origin.table = OriginFetchOptions::Table::kIn;
  if (!upload_.is_done()) of_origin.content = OriginFetchOptions::Content::kComes;
  if (ask.validates) {
    of_origin.validates = found_;
  } else if (whole && found_.object && http::range_value(request_->head).empty()) {
    of_origin.part = found_.object;
  }
  services_.origins.start_fetch(std::move(fresh), request_, std::move(of_origin));
}

// The transfer of another was no use to us: checks stored objects again, and asks the origin.
// `take` is what the other's response says of its own.
void Exchange::ask_again(ShareDecision take) {
  subscription_.learn(take);
  subscription_.forget();
  response_.reset();
  range_wait_ = {};
  from_disk_ = false;
  cache_status_.forwarded = http::Forwarded::kNo;
  found_ = services_.cache.lookup(*request_);
  look_at_found();
}

// The request goes to its origin unchanged, whatever is stored or in progress.
void Exchange::ask_alone(http::Forwarded why) {
  subscription_.forget();
  subscription_.follow_nobody();
  response_.reset();
  content_.clear();
  found_ = {};
  steps_.go(Step::kAbsent);
  cache_status_.forwarded = why;
  ask({});
}

// The result of a purge is reported as a failure is: an answer of our own, by its status.
void Exchange::purge() {
  auto wish = read_purge_request(*request_);
  if (!wish) {
    // The reason, and what there is to say about it.
    const std::string_view said = wish.error().message;
    const std::string_view reason = said.substr(0, said.find(": "));
    const std::string_view more = said.substr(reason.size());
    fail({.status = 400,
          .outcome = Outcome::kBadRequest,
          .detail = reason,
          .why = more.empty() ? more : more.substr(std::string_view(": ").size())});
    return;
  }
  steps_.go(Step::kAsk);
  steps_.go(Step::kWait);
  subscription_.lead(std::make_shared<Transfer>(services_.home, request_->hash, nullptr));
  if (services_.purger != nullptr) {
    services_.purger->purge(subscription_.transfer(), std::move(*wish));
    return;
  }
  subscription_.leave();
  fail({.status = 503, .outcome = Outcome::kInternal, .detail = "no-purges"});
}

}  // namespace encore::server
