// The last part of a fetch: what comes on its connection, the response's body, and the ends.
#include <algorithm>
#include <optional>
#include <utility>

#include "base/check.h"
#include "proxy/http/range.h"
#include "proxy/http/reuse.h"
#include "proxy/origin/admission.h"
#include "proxy/origin/changes.h"
#include "proxy/origin/cross_origin.h"
#include "proxy/origin/entry.h"
#include "proxy/origin/fetch.h"
#include "proxy/origin/freshening.h"
#include "proxy/origin/parts.h"
#include "proxy/request/request_ids.h"
#include "proxy/transfer/not_stored.h"

namespace encore::server {

using AttemptFailure = OriginLink::AttemptFailure;

namespace {

// Returns the failure that the link knows nothing of: an attempt that failed before is counted
// there.
std::optional<ServerFailure> failure_of_answer(Outcome outcome, bool in_body) {
  if (outcome == Outcome::kOriginInvalid) return ServerFailure::kInvalid;
  const bool is_cut = outcome == Outcome::kOriginAborted || outcome == Outcome::kOriginTimeout;
  if (in_body && is_cut) return ServerFailure::kBroken;
  return std::nullopt;
}

// Appends what of the trailers goes on. False where they are refused. They are for all who read:
// what is for the one who asked alone is for nobody there.
bool take_trailers(std::string_view trailers, const RequestContext& request,
                   const ReceivedResponse& received, std::string& forwarded) {
  if (trailers.empty()) return true;
  const auto keeps_from_others = [&](const http::Field& field) {
    return http::is_stripped(field, request.head_options()) ||
           http::equals_lower(field.name, kRequestIdName) ||
           (request.is_cross_origin && is_of_its_host(field.name)) ||
           std::ranges::any_of(received.directives.stripped_fields, [&](const std::string& name) {
             return http::equals_lower(field.name, name);
           });
  };
  return forwardable_trailers(trailers, request.runtime->head_limits, keeps_from_others, forwarded);
}

}  // namespace

std::size_t Fetch::on_data(net::Stream&, std::span<const std::byte> bytes) {
  return on_stream_bytes({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

std::size_t Fetch::on_stream_bytes(std::string_view text) {
  const PanicNote note(state_.activity());
  if (state_ == State::kRest) {
    // The response was whole, so that these bytes answer nothing: the connection is out of step.
    fail({.status = 502, .outcome = Outcome::kOriginInvalid});
    return text.size();
  }
  answered_ = true;
  std::size_t used = 0;
  const ServerTally counted = link_.tally();  // counts for the server that this came from
  // It may have gone on to another connection, to ask again: what is left is nothing to that.
  const std::uint64_t connection = link_.number();
  const auto goes_on = [&] {
    return state_ != State::kEnded && state_ != State::kRest && link_.number() == connection;
  };
  while (used < text.size() && goes_on() && name_check_ == nullptr) {
    ENCORE_CHECK(state_ != State::kConnecting, "what has a connection does not wait for one");
    const std::string_view rest = text.substr(used);
    const std::size_t taken = state_ == State::kBody ? on_body(rest) : on_head(rest);
    if (taken == 0) break;
    used += taken;
  }
  // The head's views are into these bytes, and storing reads them at the end. Small responses have
  // ended here.
  if (state_ == State::kBody && body_.may_store()) received_->keep();
  services_.stats.bytes_from_origins.add(used);
  counted.add(&ServerCounts::received_bytes, used);
  // The rest is the other protocol's, or stays in the stream until the name is known.
  if (switched_ || name_check_ != nullptr) return used;
  if (!goes_on()) return text.size();
  publish_head();
  if (state_ != State::kBody) return goes_on() ? used : text.size();
  transfer_->publish_body();
  if (state_ == State::kBody && (unread_ || plan_.background)) look_after_readers();
  if (state_ == State::kBody) body_.after_append();
  return goes_on() ? used : text.size();
}

std::span<std::byte> Fetch::read_buffer(net::Stream&) {
  if (state_ != State::kBody) return {};
  return body_.read_buffer();
}

// Returns how many bytes were used; all, unless there is no memory for the rest: then it comes
// again.
std::size_t Fetch::on_body(std::string_view bytes) {
  const ResponseBody::ConsumedBytes taken = body_.on_bytes(bytes);
  switch (taken.status) {
    case ResponseBody::Status::kGoesOn:
      return taken.bytes;
    case ResponseBody::Status::kBadChunk:
      fail({502, Outcome::kOriginInvalid, "bad-chunk"});
      return bytes.size();
    case ResponseBody::Status::kWrongDigest:
      end_body(false);
      return bytes.size();
    case ResponseBody::Status::kDone:
      break;
  }
  if (!take_trailers(body_.trailers(), *request_, *received_, response_->trailers)) {
    fail({502, Outcome::kOriginInvalid, "bad-trailer"});
    return bytes.size();
  }
  // More bytes than announced belong to no response: the connection is not used again.
  const bool has_more = taken.bytes != bytes.size() || link_.stream().has_more();
  end_body(keep_alive_ && !has_more);
  return bytes.size();
}

void Fetch::on_stream_end(std::string_view trailers) {
  const PanicNote note(state_.activity());
  if (state_ != State::kBody) return;
  if (!take_trailers(trailers, *request_, *received_, response_->trailers)) {
    fail({502, Outcome::kOriginInvalid, "bad-trailer"});
    return;
  }
  end_body(keep_alive_);
}

// Readers are notified once for the head and the part of the body that came with it.
void Fetch::publish_head() {
  if (publication_ != Publication::kDue) return;
  publication_ = Publication::kDone;
  Joinable joinable = Joinable::kNo;
  if (body_.is_joinable()) {
    joinable = Joinable::kToRead;
  } else if (response_->is_for_validation && body_.is_storing()) {
    joinable = Joinable::kUntilStored;
  }
  transfer_->publish_response(response_, body_.body(), joinable);
  if (joinable == Joinable::kNo) services_.inflight.remove(*transfer_);
}

// The same for the body's end, with the head where readers do not know of it yet.
void Fetch::publish_end() {
  body_.end_joining();
  if (publication_ == Publication::kDue) {
    publish_head();
    return;
  }
  transfer_->stop_joining();
  transfer_->publish_body();
}

void Fetch::on_storing_stopped() {
  note_not_stored();
  if (response_ != nullptr) end_older(services_, *request_, *received_, *response_);
  readers_changed_.schedule();  // if nobody reads either, it has no purpose any more
}

// Corrects the record alone: the client may have its head already.
void Fetch::note_not_stored() {
  if (response_ == nullptr) return;
  response_->stored = false;
  if (publication_ == Publication::kDue) response_->outcome = unless_stored(response_->outcome);
}

void Fetch::end_body(bool reusable) {
  ENCORE_CHECK(state_ == State::kBody, "a body ends once");
  if (!body_.is_right()) {
    services_.stats.digest_mismatches.add();
    if (transfer_->is_awaitable()) note_waited_in_vain();
    // A reader that knows nothing of it yet gets an error.
    if (publication_ == Publication::kDue) publication_ = Publication::kNotYet;
    fail({502, Outcome::kOriginInvalid, "wrong-digest"});
    return;
  }
  body_.store_if_wanted();
  const bool goes_on = reusable && writer_.outlives_response() && !writer_.is_complete();
  if (goes_on) {
    body_.detach();
    // The end of the connection ends the rest.
    if (link_.stream().is_reading_paused()) link_.stream().resume_reading();
  } else {
    release_connection(reusable);
  }
  const auto stored = body_.complete(plan_.completes);
  const bool replaced = stored == StoreWriter::Result::kReplaced;
  const bool is_stored = replaced || stored == StoreWriter::Result::kStored;
  if (stored && !is_stored) {
    response_->overtaken = stored == StoreWriter::Result::kOvertaken;
    note_not_stored();
    end_older(services_, *request_, *received_, *response_);
  }
  if (is_stored && publication_ == Publication::kDue) response_->stored = true;
  // Nothing is known of a part that takes another's place: the whole tells, when it is requested.
  if (replaced && !plan_.stored && !plan_.completes && received_->head.status != 206) {
    note_overtaken(services_, *request_);
  }
  // Stored before it can no longer be joined: the next request finds one or the other.
  if (is_stored) {
    services_.inflight.remove_stored(*transfer_);
  } else {
    if (transfer_->is_awaitable()) note_waited_in_vain();
    services_.inflight.remove(*transfer_);
  }
  if (goes_on) {
    state_.go(State::kRest);
    since_ = services_.loop.now();
  } else {
    end();
  }
  publish_end();
}

void Fetch::on_eof(net::Stream&) {
  const PanicNote note(state_.activity());
  // An origin that did not read all of the request may have lost a part of its answer by closing.
  if (state_ == State::kBody && body_.ends_with_connection() && !writer_.is_broken()) {
    end_body(false);
    return;
  }
  if (try_again(AttemptFailure::kClosed, "closes the connection")) return;
  fail({502, Outcome::kOriginAborted, "origin-closed"});
}

void Fetch::on_error(net::Stream&, net::CloseReason reason, int) {
  const PanicNote note(state_.activity());
  // The response cannot be passed on any more: the next connection checks the name again.
  if (name_check_ != nullptr) return name_check_->give_up();
  if (try_again(AttemptFailure::kClosed, "resets the connection")) return;
  fail({502, Outcome::kOriginAborted, "origin-" + std::string(to_string(reason))});
}

// Requests that waited for the stored response, to validate it, would wait in vain again.
void Fetch::note_waited_in_vain() {
  remember_sharing(services_, *request_, Inflight::Unshared::kAnswer);
}

void Fetch::on_reader_advanced() {
  if (state_ == State::kBody) body_.on_reader_advanced();
}

// Readers came or went, or one that came late wants it stored; or it has failed.
void Fetch::look_after_readers() {
  const PanicNote note(state_.activity());
  if (state_ == State::kEnded) return;
  if (failure_) {
    fail(*failure_);
    return;
  }
  if (state_ == State::kRest) {
    // Content that has come is sent in any case; more of it comes from its reader alone.
    if (writer_.expects_upload() && !transfer_->has_readers()) end();
    return;
  }
  if (state_ == State::kBody) body_.store_if_wanted();
  // Requests that wait until it is stored wait in vain: they ask for themselves now
  // (docs/decisions/0293).
  if (transfer_->is_awaitable() && !body_.is_storing()) {
    note_waited_in_vain();
    services_.inflight.remove(*transfer_);
    transfer_->stop_joining();
    transfer_->publish_body();
    if (state_ == State::kEnded) return;
  }
  // A range that comes later goes as it is, and costs no whole that is broken off again
  // (docs/decisions/0335).
  const bool is_for_range = state_ == State::kBody && plan_.whole &&
                            received_->framing.kind != http::BodyKind::kLength &&
                            !http::range_value(request_->head).empty();
  if (is_for_range && !body_.is_storing()) keep_ranges_alone(services_, *request_);
  unread_ = false;
  const bool awaited = plan_.background && (state_ != State::kBody || body_.is_storing());
  if (awaited || transfer_->has_readers()) {
    on_reader_advanced();
    return;
  }
  // With its client, the rest of the request's body is gone. A response that is being stored is
  // finished in the background, if it is not too much.
  if (state_ == State::kBody && !writer_.expects_upload() &&
      body_.is_worth_finishing(request_->runtime->config.cache.background_finish_bytes)) {
    unread_ = true;
    on_reader_advanced();
    return;
  }
  if (is_for_range) keep_ranges_alone(services_, *request_);
  // Nobody may join between this look and the end, to wait for what will not come.
  if (transfer_->close_if_unread()) abandon();
}

void Fetch::end_if_quiet() {
  const PanicNote note(state_.activity());
  // Uploads are watched at the client's connection.
  if (state_ == State::kEnded || writer_.expects_upload()) return;
  const bool is_quiet = quiet_.look(link_.moved_bytes());
  transfer_->set_motion(is_quiet ? Transfer::Motion::kQuiet : Transfer::Motion::kMoving);
  if (is_quiet && transfer_->close_if_unread()) abandon();
}

void Fetch::abandon() {
  if (state_ == State::kEnded) return;
  if (state_ == State::kRest) return end();
  // A response that breaks off replaces nothing.
  if (body_.forgo_storing()) note_not_stored();
  services_.inflight.remove(*transfer_);
  transfer_->stop_joining();
  body_.abort();
  end();
}

// Ends it from the loop, not from within the call that found out: who made that call is no place to
// hear the answer.
void Fetch::fail_later(const TransferFailure& failure) {
  writer_.set_broken();
  failure_ = failure;
  readers_changed_.schedule();
}

void Fetch::fail(TransferFailure failure) {
  if (state_ == State::kEnded) return;
  if (state_ == State::kRest) {
    // The response was whole. Its client learns that no more of the request is taken.
    const auto transfer = transfer_;
    end();
    transfer->publish_upload_ready();
    return;
  }
  const bool mid_body = state_ == State::kBody && publication_ != Publication::kNotYet;
  const bool no_memory = failure.outcome == Outcome::kNoMemory;
  if (const auto kind = failure_of_answer(failure.outcome, state_ == State::kBody)) {
    link_.tally().add_failure(*kind);
  }
  if (no_memory) services_.stats.memory_failures.add();
  // A refusal for this client's share is no failure of the origin.
  if (plan_.background && !failure.of_the_client) {
    note_refresh(services_, *request_, Refresh::kFailed);
  }
  // A response that breaks off replaces nothing.
  if (body_.forgo_storing()) note_not_stored();
  services_.inflight.remove(*transfer_);
  if (mid_body) {
    if (no_memory) transfer_->set_out_of_memory();
    body_.abort();
    end();
    publish_end();
    return;
  }
  body_.abort();
  end();
  failure.visit = std::move(visit_);
  // A client that may not have it from its origin may not have it from here. One that has its share
  // of connections may.
  const bool is_forbidden = failure.outcome == Outcome::kDenied && failure.status == 403;
  const bool stale =
      plan_.stored && !is_forbidden &&
      http::may_serve_stale(meta_until(*plan_.stored, plan_.stored_fresh_until),
                            request_->directives, services_.loop.now(),
                            http::OriginFailure::kUnreachable, request_->request_policy->stale);
  if (stale) {
    transfer_->publish_validated({.object = plan_.stored,
                                  .stale = true,
                                  .visit = std::move(failure.visit),
                                  .detail = std::move(failure.detail)});
  } else {
    transfer_->publish_failure(std::move(failure));
  }
}

// From here on it is the keeper's to destroy, in this turn but not within this call.
void Fetch::end() {
  state_.go(State::kEnded);
  name_check_.reset();
  if (services_.worker.logs_requests() && link_.server() != nullptr) {
    visit_.server = link_.server()->url;  // that was asked last, or was to be
  }
  transfer_->set_producer(nullptr);
  release_connection(false);
  link_.end_lease();
  services_.keeper.retire(*this);
}

}  // namespace encore::server
