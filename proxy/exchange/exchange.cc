#include "proxy/exchange/exchange.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/recycled.h"
#include "proxy/exchange/published.h"
#include "proxy/http/head_text.h"
#include "proxy/http/hop_by_hop.h"
#include "proxy/http/range.h"
#include "proxy/http/reply_text.h"
#include "proxy/http/reuse.h"
#include "proxy/http/sent_fields.h"
#include "proxy/http/stored_head.h"
#include "proxy/observe/request_steps.h"
#include "proxy/transfer/not_stored.h"

namespace encore::server {
namespace {

bool asks_by_get(const RequestContext& request) {
  return request.head.method == http::Method::kGet;
}

// True if the body of a disk-only object is gone.
bool has_lost_body(const DiskLoads& loads, const RequestContext& request,
                   const store::Object& object) {
  return asks_by_get(request) && is_on_disk_alone(object) &&
         !loads.has_parts(request.hash, *large_body_of(object));
}

// How a request took part in a response that has ended.
struct Part {
  bool has_asked = false;  // the origin, for it
  bool is_alone = false;   // it went on by itself
};

// Records the result of a response in the cache, also if it is hidden from clients.
void settle_outcome(const SharedResponse& response, const Part& part, RequestRecord& record) {
  const Outcome unstored = unless_stored(record.outcome);
  if (unstored != record.outcome && response.stored == false) record.outcome = unstored;
  if (response.reason == http::StoreReason::kOk && record.outcome == Outcome::kUncacheable &&
      !part.is_alone) {
    record.detail = part.has_asked && response.overtaken ? kOvertaken : kNotStored;
  }
  if (response.has_large_head && record.outcome == Outcome::kTooLarge) record.detail = kLargeHead;
}

}  // namespace

Exchange::Exchange(const ExchangeServices& services, ClientStream& client,
                   std::shared_ptr<const RequestContext> request, CacheView found)
    : TransferReader(services.home),
      services_(services),
      client_(client),
      request_(std::move(request)),
      found_(std::move(found)),
      steps_(*request_),
      load_(services.loads, *this, *request_),
      permission_(services.rechecks),
      subscription_(services.inflight, *request_, *this),
      next_turn_(services.loop, [this] { on_transfer(); }),
      upload_(*request_, services.loop.now()),
      coding_(services.coders, *request_),
      content_(services.loads, coding_, *this),
      variants_(request_->head.fields, request_->vary()) {
  const bool speaks_for_many =
      request_->policy != nullptr && request_->policy->trusts(request_->client);
  if (!speaks_for_many) set_client(&request_->client);
  record_.started = services.loop.now();
  cache_status_.said = request_->says_cache_status();
}

Exchange::~Exchange() {
  load_.leave();
  subscription_.leave();
}

// --- Deciding ---------------------------------------------------------------------------------

void Exchange::start() {
  const PanicNote note(steps_.activity());
  ENCORE_CHECK(steps_.is_at(Step::kBegun), "an exchange is started once");
  if (const auto here = answer_locally(*request_)) {
    answer(*here);
    return;
  }
  if (request_->purges) {
    purge();
    return;
  }
  if (is_published(*request_)) {
    respond_own(published_answer(services_.published, *request_, services_.loop.wall_now(),
                                 services_.loop.http_date(), cache_status_));
    return;
  }
  const PathDecision taken = choose_path(*request_);
  switch (taken.path) {
    case RequestPath::kOnlyIfCached:
      fail({.status = 504, .outcome = Outcome::kOnlyIfCached, .detail = "only-if-cached"});
      return;
    case RequestPath::kOrigin:
      cache_status_.forwarded = taken.forwarded;
      ask({});
      return;
    case RequestPath::kCache:
      if (!asks_by_get(*request_) && !found_.object && !found_.disk) {
        found_ = services_.cache.lookup(*request_);
      }
      look_at_found();
      return;
  }
}

void Exchange::answer(const LocalResponse& answer) {
  if (answer.content != nullptr) {
    respond_own(rule_answer(answer, *request_, services_.loop.http_date(), cache_status_));
    return;
  }
  if (answer.status != 204) {
    fail({.status = answer.status, .outcome = answer.outcome, .detail = answer.detail});
    return;
  }
  record_.outcome = answer.outcome;
  cache_status_.detail = answer.detail;
  ResponsePlan plan;
  plan.status = answer.status;
  http::append_status_line(answer.status, "No Content", plan.head);
  plan.head += http::kAllowField;
  const ResponseSource none;
  append_own_fields(none, moment_of(*request_, cache_status_, services_.loop), plan.head);
  respond(none, std::move(plan));
}

void Exchange::look_at_found() {
  if (found_.disk) {
    steps_.go(Step::kLoad);
    load_.begin(found_, services_.loop.now());
    return;
  }
  if (found_.object && !may_be_rechecked(*request_, *found_.object)) found_ = {};
  if (!found_.object) {
    steps_.go(Step::kAbsent);
    ask_for_absent();
    return;
  }
  steps_.go(Step::kStored);
  if (!ask_permission()) decide_stored();
}

void Exchange::on_loaded(store::ObjectRef object) {
  const PanicNote note(steps_.activity());
  ENCORE_CHECK(steps_.is_at(Step::kLoad), "who waits for a record is told of it");
  load_.end();
  services_.cache.catch_up();
  if (object && services_.cache.answers(*object, *request_, variants_)) {
    found_.disk.reset();
    found_.object = std::move(object);
    from_disk_ = true;
  } else {
    found_ = {};
    may_look_again_ = false;
  }
  look_at_found();
}

void Exchange::decide_stored() {
  const http::StoredMeta meta = meta_until(*found_.object, found_.fresh_until);
  const MonotonicTime now = services_.loop.now();
  if (meta.is(http::StoredMeta::kPartial)) {
    const FoundPart part =
        judge_part(*found_.object, meta, *request_, now, services_.loop.wall_now());
    if (part.decision.use != PartUse::kAsk) {
      const bool fresh = part.decision.use == PartUse::kFresh;
      respond_stored(found_.object, fresh ? Outcome::kHit : Outcome::kStale, &part);
      return;
    }
    cache_status_.forwarded = part.decision.forwarded;
    steps_.go(Step::kAbsent);
    ask_for_absent();
    return;
  }
  const auto decision = http::decide_reuse(meta, request_->directives, now, request_->reuse());
  switch (decision.action) {
    case http::Reuse::kFresh:
      respond_stored(found_.object, Outcome::kHit);
      return;
    case http::Reuse::kStaleAllowed:
      respond_stored(found_.object, Outcome::kStale);
      return;
    case http::Reuse::kStaleWhileRevalidate:
      validate_in_background();
      respond_stored(found_.object, Outcome::kStale);
      return;
    case http::Reuse::kGatewayTimeout:
      fail({.status = 504, .outcome = Outcome::kOnlyIfCached, .detail = "only-if-cached"});
      return;
    case http::Reuse::kMustValidate:
      cache_status_.forwarded = forwarded_for(decision.cause);
      ask({.what = OriginRequestForm::kWhole,
           .validates = found_.object,
           .sharing = Ask::Sharing::kWhereAllowed});
      return;
  }
}

// By a HEAD with the client's own fields.
bool Exchange::ask_permission() {
  if (!permission_.is_needed(*request_, services_.loop.now())) return false;
  if (request_->directives.only_if_cached) {
    fail({.status = 504, .outcome = Outcome::kOnlyIfCached, .detail = "only-if-cached"});
    return true;
  }
  steps_.go(Step::kAsk);
  auto transfer =
      make_recycled<Transfer>(services_.home, request_->hash, nullptr, subscription_.requester());
  steps_.go(Step::kWait);
  permission_.ask();
  subscription_.lead(transfer);
  services_.stats.rechecks.add();
  services_.origins.start_fetch(std::move(transfer), RequestContext::permission_for(request_), {});
  return true;
}

void Exchange::ask_for_absent() {
  if (request_->directives.only_if_cached) {
    cache_status_.forwarded = http::Forwarded::kNo;
    fail({.status = 504, .outcome = Outcome::kOnlyIfCached, .detail = "only-if-cached"});
    return;
  }
  if (cache_status_.forwarded == http::Forwarded::kNo) {
    cache_status_.forwarded =
        found_.any_resident ? http::Forwarded::kVaryMiss : http::Forwarded::kUriMiss;
  }
  const MonotonicTime now = services_.loop.now();
  MissFacts facts;
  facts.uncacheable =
      services_.inflight.are_ranges_alone(request_->hash, now) ||
      services_.inflight.unshared(request_->hash, subscription_.requester().credentials, now) ==
          Inflight::Unshared::kUncacheable;
  facts.admitted = depends_on_admission(*request_, facts.uncacheable) &&
                   services_.kernel->would_admit({request_->hash, request_->key}, now, 0,
                                                 request_->request_policy->admission);
  ask({.what = origin_request_form(*request_, facts), .sharing = Ask::Sharing::kWhereAllowed});
}

// --- Taking what came -------------------------------------------------------------------------

void Exchange::on_transfer() {
  const PanicNote note(steps_.activity());
  if (steps_.is_at(Step::kEnded)) return;
  if (is_cut() && !detachment_.is_alone()) {
    detachment_.leave();
    return;
  }
  if (steps_.is_at(Step::kRespond)) {
    if (!rest_.has_begun()) {
      pump();
    } else if (!rest_.goes_on(subscription_.transfer().get(), upload_, services_.loop.now())) {
      finish(ClientStream::End::kDone);
    }
    return;
  }
  Transfer* const transfer = subscription_.transfer().get();
  if (transfer == nullptr) return;
  const TransferPhase phase = transfer->phase();
  services_.cache.catch_up();
  if (permission_.is_asked() && phase == TransferPhase::kSharing) {
    if (permission_.take(request_, transfer->response(), services_.loop.now())) return ask_again();
    // The client alone gets what the origin says to the request itself.
    return ask_alone(http::Forwarded::kRequest);
  }
  switch (phase) {
    case TransferPhase::kWaiting:
      return;
    case TransferPhase::kSharing:
      respond_shared();
      return;
    case TransferPhase::kValidated:
      respond_validated();
      return;
    case TransferPhase::kFailed:
      on_failure();
      return;
    case TransferPhase::kSwitched: {
      // The record is made by who has the connection from here on.
      steps_.go(Step::kEnded);
      SwitchedConnection switched = transfer->take_switched();
      if (request_->rule != nullptr) {
        switched.head.resize(switched.head.size() - 2);  // its empty line comes behind
        request_->rule->response_edits().apply(switched.head);
        switched.head += "\r\n";
      }
      subscription_.leave();
      client_.switch_protocol(std::move(switched));
      return;
    }
  }
}

// The stored response was confirmed, or may be served although it could not be.
void Exchange::respond_validated() {
  const Validated& validated = subscription_.transfer()->validated();
  const bool has_joined = subscription_.has_joined();
  if (has_joined) {
    const ShareDecision take =
        may_take(validated, found_, subscription_.asker(variants_, services_.loop.now()));
    if (take != ShareDecision::kYes) {
      ask_again(take);
      return;
    }
  }
  // Nothing is said yet, so what has given way on disk while the origin was asked is asked for
  // anew.
  if (has_lost_body(services_.loads, *request_, *validated.object)) {
    ask_again();
    return;
  }
  const bool stale = validated.stale;
  cache_status_.forward_status = stale ? 0 : 304;
  if (stale && validated.status != 0) {
    cache_status_.forward_status = static_cast<unsigned>(validated.status);
  }
  cache_status_.collapsed = has_joined;
  if (!has_joined) private_lines_ = validated.private_lines;
  visit_ = validated.visit;
  record_.visit = &visit_;
  failure_detail_ = validated.detail;
  record_.detail = failure_detail_;
  const store::ObjectRef object = validated.object;
  unstored_ = validated.unstored;
  subscription_.leave();
  respond_stored(object, stale ? Outcome::kStale : Outcome::kRevalidated);
}

// --- The end ----------------------------------------------------------------------------------

void Exchange::on_gone(const ClientGone& why) {
  const PanicNote note(steps_.activity());
  if (record_.outcome == Outcome::kInternal || steps_.is_at(Step::kRespond)) {
    record_.outcome = why.outcome;
    record_.detail = why.detail;
  }
  if (why.unsent == ClientGone::Unsent::kLost) lost_bytes_ = client_.unsent_bytes();
  finish(std::nullopt);
}

void Exchange::cut() {
  const PanicNote note(steps_.activity());
  services_.stats.slow_readers_cut.add();
  record_.outcome = Outcome::kSlowReader;
  record_.detail = {};
  finish(ClientStream::End::kReset);
}

bool Exchange::is_origin_active() const {
  return steps_.is_at(Step::kWait) && upload_.is_done() && !subscription_.waits_for_store() &&
         subscription_.transfer() != nullptr && !subscription_.transfer()->is_quiet();
}

void Exchange::check_timeouts(MonotonicTime now) {
  const PanicNote note(steps_.activity());
  if (load_.has_timed_out(now)) {
    load_.leave();
    found_ = {};
    may_look_again_ = false;
    look_at_found();
    return;
  }
  if (rest_.has_begun() && steps_.is_at(Step::kRespond)) {
    if (content_demand() != ContentDemand::kNow) {
      upload_.look_aside();
    } else if (upload_.look(now) != Upload::Pace::kGood) {
      refuse_content(408, "request-timeout");
    }
    return;
  }
  if (!steps_.is_at(Step::kWait)) return;
  if (range_wait_.has_timed_out(request_->runtime->config.timeouts.collapse, now)) {
    respond_shared();
    return;
  }
  if (!upload_.is_done() && content_demand() == ContentDemand::kNow) {
    const Upload::Pace pace = upload_.look(now);
    if (pace != Upload::Pace::kGood) {
      subscription_.leave();
      fail({.status = 408,
            .outcome = Outcome::kBadRequest,
            .detail = pace == Upload::Pace::kSilent ? "request-timeout" : "request-too-slow"});
      return;
    }
  } else {
    upload_.look_aside();
  }
  if (subscription_.has_waited_long_enough(now)) ask_again(subscription_.give_up());
}

// The last but the call of client_.end(): nobody else's time is taken.
void Exchange::finish(std::optional<ClientStream::End> how) {
  if (how == ClientStream::End::kReset) lost_bytes_ = client_.unsent_bytes();
  if (how != ClientStream::End::kDone) {
    record_.connection = ClientConnectionEnd::kCut;
  } else if (client_.is_kept() && upload_.is_done()) {
    record_.connection = ClientConnectionEnd::kKept;
  }
  if (response_ != nullptr) {
    settle_outcome(*response_, {subscription_.is_asker(), detachment_.is_alone()}, record_);
  }
  load_.leave();
  steps_.go(Step::kEnded);
  record_.sent_bytes = client_.sent_bytes() - lost_bytes_;
  record_.body_bytes = content_.bytes();
  record_.body_bytes -= std::min(record_.body_bytes, lost_bytes_);
  // Content of our own is counted before it is sent, and its client may have left since.
  record_.body_bytes = std::min(record_.body_bytes, record_.sent_bytes);
  record_.taken_bytes = upload_.bytes();
  record_.response_fields = response_fields_;
  record_request(*request_, record_);
  services_.log.record(record_, {*request_, response_.get(), content_.reader().held()});
  subscription_.leave();
  if (how) client_.end(*how);
}

}  // namespace encore::server
