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

// Transfers of others that a request waits for one after the other, where each turns out to bring
// another variant: the first may have been begun when nothing was known of how they differ, the
// others by whoever learnt it from the one before.
constexpr std::uint32_t kJoinsMax = 3;

// A disk that has not answered by then is slower than most origins.
constexpr Nanoseconds kLoadPatience = std::chrono::seconds(1);

ExpectedVariant variant_of(const store::Object& object) {
  return {.names = std::string(names_of(object)), .key = std::string(variant_key_of(object))};
}

std::shared_ptr<const std::string> shared_key(
    const std::shared_ptr<const RequestContext>& request) {
  return {request, &request->key};
}

bool is_alike(const Transfer& transfer, const Transfer::AskedBy& own) {
  return transfer.asked_by().credentials == own.credentials;
}

bool is_get(const RequestContext& request) { return request.head.method == http::Method::kGet; }

// True if the body of a disk-only object is gone.
bool has_lost_body(const DiskLoads& loads, const RequestContext& request,
                   const store::Object& object) {
  return is_get(request) && is_on_disk_alone(object) &&
         !loads.has_parts(request.hash, *large_body_of(object));
}

}  // namespace

Exchange::Exchange(const ExchangeServices& services, ClientStream& client,
                   std::shared_ptr<const RequestContext> request, CacheView found)
    : TransferReader(services.home),
      services_(services),
      client_(client),
      request_(std::move(request)),
      found_(std::move(found)),
      doing_(doing_for(*request_, "an exchange", kSteps[0].name)),
      asked_by_{.settings = request_->runtime->number,
                .credentials = request_->credentials(),
                .client = request_->client},
      next_turn_(services.loop, [this] { on_transfer(); }),
      upload_(*request_, services.loop.now()),
      coding_(services.coders, *request_),
      variants_(request_->head.fields, request_->vary()) {
  const bool speaks_for_many =
      request_->policy != nullptr && request_->policy->trusts(request_->client);
  if (!speaks_for_many) set_client(&request_->client);
  record_.started = services.loop.now();
  cache_status_.said = request_->says_cache_status();
}

Exchange::~Exchange() {
  leave_load();
  leave_transfer();
}

void Exchange::go(Step next) {
  ENCORE_CHECK(may_follow(step_, next),
               "the steps of a request follow one another as the table says");
  step_ = next;
  doing_.step = kSteps[static_cast<std::size_t>(next)].name;
  if (request_->runtime->follows_requests) [[unlikely]] {
    tell_step(request_->request_id, {"exchange: ", doing_.step});
  }
}

void Exchange::leave_transfer() {
  if (transfer_ == nullptr) return;
  const std::shared_ptr<Transfer> left = std::move(transfer_);
  left->leave(*this);
}

// --- Deciding ---------------------------------------------------------------------------------

void Exchange::start() {
  const PanicNote note(doing_);
  ENCORE_CHECK(is_at(Step::kBegun), "an exchange is started once");
  if (const auto here = answer_locally(*request_)) {
    answer(*here);
    return;
  }
  if (request_->purges) {
    purge();
    return;
  }
  if (is_published(*request_)) {
    respond_published();
    return;
  }
  const RoadTaken taken = choose_road(*request_);
  switch (taken.road) {
    case Road::kOnlyIfCached:
      respond_failure(504, Outcome::kOnlyIfCached, "only-if-cached");
      return;
    case Road::kOrigin:
      cache_status_.forwarded = taken.forwarded;
      ask({});
      return;
    case Road::kCache:
      if (!is_get(*request_) && !found_.object && !found_.disk) {
        found_ = services_.cache.lookup(*request_);
      }
      look_at_found();
      return;
  }
}

void Exchange::answer(const LocalAnswer& answer) {
  if (answer.content != nullptr) {
    respond_by_rule(answer);
    return;
  }
  if (answer.status != 204) {
    respond_failure(answer.status, answer.outcome, answer.detail);
    return;
  }
  record_.outcome = answer.outcome;
  cache_status_.detail = answer.detail;
  ResponsePlan plan;
  plan.status = answer.status;
  http::append_status_line(answer.status, "No Content", plan.head);
  plan.head += http::kAllowField;
  const ResponseSource none;
  append_own_fields(none, moment(), plan.head);
  respond(none, std::move(plan));
}

void Exchange::look_at_found() {
  if (found_.disk) {
    go(Step::kLoad);
    load_began_ = services_.loop.now();
    services_.loads.wait(*this, *request_, found_);
    return;
  }
  if (found_.object && !may_be_asked_for(*request_, *found_.object)) found_ = {};
  if (!found_.object) {
    go(Step::kAbsent);
    ask_for_absent();
    return;
  }
  go(Step::kStored);
  if (ask_permission()) return;
  if (meta_of(*found_.object).http.is(http::StoredMeta::kPartial)) {
    decide_part();
  } else {
    decide_stored();
  }
}

void Exchange::on_loaded(store::ObjectRef object) {
  const PanicNote note(doing_);
  ENCORE_CHECK(is_at(Step::kLoad), "who waits for a record is told of it");
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

void Exchange::leave_load() {
  if (is_at(Step::kLoad)) services_.loads.leave(*this, *request_, found_);
}

void Exchange::decide_stored() {
  const http::StoredMeta meta = meta_until(*found_.object, found_.fresh_until);
  const auto decision =
      http::decide_reuse(meta, request_->directives, services_.loop.now(), request_->reuse());
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
      respond_failure(504, Outcome::kOnlyIfCached, "only-if-cached");
      return;
    case http::Reuse::kMustValidate:
      cache_status_.forwarded = forwarded_for(decision.cause);
      ask({.what = AskedFor::kWhole,
           .validates = found_.object,
           .sharing = Ask::Sharing::kWhereAllowed});
      return;
  }
}

// Answers the request from the stored part, or asks the origin.
void Exchange::decide_part() {
  const store::Object& object = *found_.object;
  const http::StoredMeta meta = meta_until(object, found_.fresh_until);
  http::ResponseHead stored;
  http::read_stored_head(stored_head_of(object), stored);
  const auto content = http::partial_content(stored);
  const PartDecision decision =
      decide_stored_part({.meta = meta,
                          .validators = http::stored_validators(meta, stored_head_of(object)),
                          .content = content},
                         *request_, services_.loop.now(), services_.loop.wall_now());
  if (decision.use == PartUse::kAsk) {
    cache_status_.forwarded = decision.forwarded;
    go(Step::kAbsent);
    ask_for_absent();
    return;
  }
  const bool fresh = decision.use == PartUse::kFresh;
  const ResponseSource source = source_of(found_.object, fresh ? Outcome::kHit : Outcome::kStale);
  respond(source, plan_stored_part(source, moment(), *content, decision.range));
}

void Exchange::ask_for_absent() {
  if (request_->directives.only_if_cached) {
    cache_status_.forwarded = http::Forwarded::kNo;
    respond_failure(504, Outcome::kOnlyIfCached, "only-if-cached");
    return;
  }
  if (cache_status_.forwarded == http::Forwarded::kNo) {
    cache_status_.forwarded =
        found_.any_resident ? http::Forwarded::kVaryMiss : http::Forwarded::kUriMiss;
  }
  const MonotonicTime now = services_.loop.now();
  MissFacts facts;
  facts.uncacheable = services_.inflight.are_ranges_alone(request_->hash, now) ||
                      services_.inflight.unshared(request_->hash, asked_by_.credentials, now) ==
                          Inflight::Unshared::kUncacheable;
  facts.admitted = depends_on_admission(*request_, facts.uncacheable) &&
                   services_.kernel->would_admit({request_->hash, request_->key}, now, 0,
                                                 request_->treatment->admission);
  ask({.what = asked_for(*request_, facts), .sharing = Ask::Sharing::kWhereAllowed});
}

// --- Asking -----------------------------------------------------------------------------------

void Exchange::validate_in_background() {
  if (!services_.inflight.refresh_pauses().may_begin(request_->hash, services_.loop.now())) return;
  // One at a time: whoever finds a validation under way leaves it to that.
  auto transfer =
      make_recycled<Transfer>(services_.home, request_->hash, shared_key(request_), asked_by_);
  transfer->expect(variant_of(*found_.object));
  // A response to HEAD has nothing for others, nor has one of which each asks for himself.
  const bool is_for_others = is_get(*request_) && request_->treatment->collapse;
  if (!is_for_others) transfer->stop_joining();
  if (!services_.inflight.enter_if_absent(transfer)) return;
  services_.stats.background_fetches.add();
  services_.origins.ask_origin(
      std::move(transfer), request_,
      {.table = is_for_others ? OriginAsk::Table::kIn : OriginAsk::Table::kNotIn,
       .whom = OriginAsk::For::kNobody,
       .validates = found_});
}

// Joins a transfer, or enters `fresh` as one that others may join; or looks at what came into the
// cache since it looked there. Whether nothing is left to be done here.
bool Exchange::join_another(const std::shared_ptr<Transfer>& fresh, AskedFor what) {
  // If lately a response was for one client alone, it does not wait for those of other clients
  // to show the same.
  Inflight::Among among = Inflight::Among::kAll;
  if (waits_for_ == WaitsFor::kAlike) {
    among = Inflight::Among::kAlike;
  } else if (services_.inflight.is_apart(request_->hash, services_.loop.now())) {
    among = Inflight::Among::kAlikeBeforeHead;
  }
  auto claim = services_.inflight.join_or_enter(
      {.hash = request_->hash,
       .key = request_->key,
       .variants = variants_,
       .reader = *this,
       .settings = request_->runtime->number,
       .credentials = asked_by_.credentials,
       .client = &asked_by_.client,
       .among = among,
       .wish = may_join(*request_) ? JoinWish::kAny : JoinWish::kBeingStored,
       // The lookup has shown whether anything is stored.
       .minds_stored = may_look_again_ && !found_.object && !found_.any_resident},
      what == AskedFor::kWhole ? fresh : nullptr);
  if (claim.joined == JoinOutcome::kNo) return false;
  if (claim.joined == JoinOutcome::kStoredMeanwhile) {
    may_look_again_ = false;
    if (!services_.cache.has_any(*request_)) return join_another(fresh, what);
    ask_again();
    return true;
  }
  transfer_ = std::move(claim.transfer);
  role_ = Role::kJoined;
  if (claim.joined == JoinOutcome::kBehindHead) role_ = Role::kJoinedLate;
  if (claim.joined == JoinOutcome::kUntilStored) role_ = Role::kWaits;
  ++joins_;
  joined_at_ = services_.loop.now();
  // What it has already is looked at from the loop, not from within what asked for it.
  if (transfer_->phase() != TransferPhase::kWaiting) next_turn_.schedule();
  return true;
}

void Exchange::ask(const Ask& ask) {
  go(Step::kAsk);
  const bool whole = ask.what == AskedFor::kWhole;
  const bool is_found = ask.sharing == Ask::Sharing::kWhereAllowed && may_be_found(*request_);
  const MonotonicTime now = services_.loop.now();
  const bool is_range_alone = !http::range_value(request_->head).empty() &&
                              services_.inflight.are_ranges_alone(request_->hash, now);
  const bool leads =
      is_found && waits_for_ != WaitsFor::kNobody && !is_range_alone &&
      may_lead(services_.inflight.unshared(request_->hash, asked_by_.credentials, now),
               static_cast<bool>(ask.validates));
  auto fresh = make_recycled<Transfer>(services_.home, request_->hash,
                                       is_found ? shared_key(request_) : nullptr, asked_by_);
  if (ask.validates) fresh->expect(variant_of(*ask.validates));
  go(Step::kWait);
  if (leads) {
    if (joins_ != kJoinsMax) {
      if (join_another(fresh, ask.what)) return;
    } else if (whole) {
      services_.inflight.enter(fresh);
    }
  }
  transfer_ = fresh;
  role_ = Role::kAsked;
  transfer_->add_first_reader(*this);
  OriginAsk of_origin;
  of_origin.what = ask.what;
  if (leads && whole) of_origin.table = OriginAsk::Table::kIn;
  if (!upload_.is_done()) of_origin.content = OriginAsk::Content::kComes;
  if (ask.validates) {
    of_origin.validates = found_;
  } else if (whole && found_.object && http::range_value(request_->head).empty()) {
    of_origin.part = found_.object;
  }
  services_.origins.ask_origin(std::move(fresh), request_, std::move(of_origin));
}

// The transfer of another was no use to us: what is stored is looked at again, and the origin
// asked. `take` is what that one's response says of its own.
void Exchange::ask_again(Take take) {
  const bool is_in_vain = take == Take::kOnceStored;
  if (take == Take::kAskAlone || (is_in_vain && is_alike(*transfer_, asked_by_))) {
    waits_for_ = WaitsFor::kNobody;
  } else if (take == Take::kAskApart || is_in_vain) {
    waits_for_ = WaitsFor::kAlike;
  }
  leave_transfer();
  response_.reset();
  role_ = Role::kNone;
  range_wait_ = {};
  from_disk_ = false;
  cache_status_.forwarded = http::Forwarded::kNo;
  found_ = services_.cache.lookup(*request_);
  look_at_found();
}

// The request goes to its origin as it is, whatever is stored or under way.
void Exchange::ask_alone(http::Forwarded why) {
  leave_transfer();
  response_.reset();
  content_ = BodyReader();
  role_ = Role::kNone;
  found_ = {};
  waits_for_ = WaitsFor::kNobody;
  go(Step::kAbsent);
  cache_status_.forwarded = why;
  ask({});
}

// --- Taking what came -------------------------------------------------------------------------

void Exchange::on_transfer() {
  const PanicNote note(doing_);
  if (is_at(Step::kEnded)) return;
  if (is_cut() && !left_behind_.is_alone()) {
    left_behind_.leave();
    return;
  }
  if (is_at(Step::kRespond)) {
    if (!rest_.has_begun()) {
      pump();
    } else if (!rest_.goes_on(transfer_.get(), upload_, services_.loop.now())) {
      finish(ClientStream::End::kDone);
    }
    return;
  }
  if (transfer_ == nullptr) return;
  const TransferPhase phase = transfer_->phase();
  services_.cache.catch_up();
  if (asks_permission_ && phase == TransferPhase::kSharing) {
    on_permission();
    return;
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
      next_turn_.cancel();
      go(Step::kEnded);
      Switched switched = transfer_->take_switched();
      if (request_->rule != nullptr) {
        switched.head.resize(switched.head.size() - 2);  // its empty line comes behind
        request_->rule->response_edits().apply(switched.head);
        switched.head += "\r\n";
      }
      leave_transfer();
      client_.switch_protocol(std::move(switched));
      return;
    }
  }
}

// The stored response was confirmed, or may be served although it could not be.
void Exchange::respond_validated() {
  const Validated& validated = transfer_->validated();
  if (has_joined()) {
    const Take take = may_take(validated, found_, asker());
    if (take != Take::kYes) {
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
  cache_status_.collapsed = has_joined();
  if (!has_joined()) private_lines_ = validated.private_lines;
  visit_ = validated.visit;
  record_.visit = &visit_;
  failure_detail_ = validated.detail;
  record_.detail = failure_detail_;
  const store::ObjectRef object = validated.object;
  unstored_ = validated.unstored;
  leave_transfer();
  respond_stored(object, stale ? Outcome::kStale : Outcome::kRevalidated);
}

// --- The end ----------------------------------------------------------------------------------

void Exchange::on_gone(const ClientGone& why) {
  const PanicNote note(doing_);
  if (record_.outcome == Outcome::kInternal || is_at(Step::kRespond)) {
    record_.outcome = why.outcome;
    record_.detail = why.detail;
  }
  record_.connection = ClientConnectionEnd::kCut;
  if (why.unsent == ClientGone::Unsent::kLost) lost_bytes_ = client_.unsent_bytes();
  end();
}

void Exchange::cut() {
  const PanicNote note(doing_);
  services_.stats.slow_readers_cut.add();
  record_.outcome = Outcome::kSlowReader;
  record_.detail = {};
  finish(ClientStream::End::kReset);
}

// Whether the one that was to bring the answer for this request, too, says nothing for too long.
bool Exchange::has_waited_long_enough(MonotonicTime now) const {
  const Nanoseconds limit = request_->runtime->config.timeouts.collapse;
  return has_joined() && is_at(Step::kWait) && limit.count() != 0 && now - joined_at_ >= limit &&
         transfer_ != nullptr &&
         (role_ == Role::kWaits || transfer_->phase() == TransferPhase::kWaiting);
}

bool Exchange::is_origin_active() const {
  return is_at(Step::kWait) && upload_.is_done() && role_ != Role::kWaits && transfer_ != nullptr &&
         !transfer_->is_quiet();
}

void Exchange::check_timeouts(MonotonicTime now) {
  const PanicNote note(doing_);
  if (is_at(Step::kLoad) && now - load_began_ >= kLoadPatience) {
    leave_load();
    found_ = {};
    may_look_again_ = false;
    look_at_found();
    return;
  }
  if (rest_.has_begun() && is_at(Step::kRespond)) {
    if (content_wish() != Wish::kNow) {
      upload_.look_aside();
    } else if (upload_.look(now) != Upload::Pace::kGood) {
      refuse_content(408, "request-timeout");
    }
    return;
  }
  if (!is_at(Step::kWait)) return;
  if (range_wait_.loses_patience(request_->runtime->config.timeouts.collapse, now)) {
    respond_shared();
    return;
  }
  if (!upload_.is_done() && content_wish() == Wish::kNow) {
    const Upload::Pace pace = upload_.look(now);
    if (pace != Upload::Pace::kGood) {
      leave_transfer();
      respond_failure(408, Outcome::kBadRequest,
                      pace == Upload::Pace::kSilent ? "request-timeout" : "request-too-slow");
      return;
    }
  } else {
    upload_.look_aside();
  }
  if (!has_waited_long_enough(now)) return;
  // The first to leave asks for all that wait; who waited in vain again asks alone, and who has
  // seen a head. Who waited for other credentials has not waited for its own yet.
  if (role_ != Role::kWaits) transfer_->give_up_head();
  const bool alike = is_alike(*transfer_, asked_by_);
  const bool is_enough = role_ == Role::kWaits || (joins_ > 1 && alike);
  const Take otherwise = alike ? Take::kAskAgain : Take::kAskApart;
  ask_again(is_enough ? Take::kAskAlone : otherwise);
}

void Exchange::end() {
  const bool was_let_in = unless_stored(record_.outcome) != record_.outcome;
  if (was_let_in && response_ != nullptr && response_->stored == false) {
    record_.outcome = unless_stored(record_.outcome);
  }
  // Also where clients are not told.
  const bool was_storable = response_ != nullptr && response_->reason == http::StoreReason::kOk;
  if (was_storable && record_.outcome == Outcome::kUncacheable && !left_behind_.is_alone()) {
    const bool was_overtaken = role_ == Role::kAsked && response_->overtaken;
    record_.detail = was_overtaken ? kOvertaken : kNotStored;
  }
  const bool is_large = response_ != nullptr && response_->has_large_head;
  if (is_large && record_.outcome == Outcome::kTooLarge) record_.detail = kLargeHead;
  leave_load();
  go(Step::kEnded);
  next_turn_.cancel();
  record_.sent_bytes = client_.sent_bytes() - lost_bytes_;
  record_.body_bytes += content_.body_bytes();
  record_.body_bytes -= std::min(record_.body_bytes, lost_bytes_);
  // Content of our own is counted before it is sent, and its client may have left since.
  record_.body_bytes = std::min(record_.body_bytes, record_.sent_bytes);
  record_.taken_bytes = upload_.bytes();
  record_.response_fields = response_fields_;
  tell_request(*request_, record_);
  services_.log.record(record_, {*request_, response_.get(), content_.held()});
  leave_transfer();
}

void Exchange::finish(ClientStream::End how) {
  if (how == ClientStream::End::kReset) lost_bytes_ = client_.unsent_bytes();
  if (how != ClientStream::End::kDone) {
    record_.connection = ClientConnectionEnd::kCut;
  } else if (client_.is_kept() && upload_.is_done()) {
    record_.connection = ClientConnectionEnd::kKept;
  }
  end();
  client_.end(how);
}

}  // namespace encore::server
