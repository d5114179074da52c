// The second half of an exchange: putting its response together and on the wire.
#include <fmt/format.h>
#include <sys/random.h>

#include <algorithm>
#include <array>

#include "base/check.h"
#include "proxy/http/hop_by_hop.h"
#include "proxy/http/interim.h"
#include "proxy/http/range.h"
#include "proxy/server/exchange.h"
#include "proxy/server/fetch.h"
#include "proxy/server/recycled.h"
#include "proxy/server/reply_text.h"
#include "proxy/server/response.h"

namespace encore::server {

using After = ClientConnection::After;

namespace {

constexpr http::RangeLimits kRangeLimits;
// Over which the pace of a request's body is measured where a pause in it may take any time.
constexpr Nanoseconds kPaceStretch = std::chrono::minutes(1);

// 128 random bits: nobody can put it into a body beforehand, and it tells nothing of ours.
std::string make_boundary() {
  std::array<std::uint64_t, 2> bits{};
  const ssize_t got = ::getrandom(bits.data(), sizeof(bits), 0);
  // Of up to 256 bytes it is never interrupted.
  ENCORE_CHECK(got == static_cast<ssize_t>(sizeof(bits)), "the system has random bytes");
  return fmt::format("encore-{:016x}{:016x}", bits[0], bits[1]);
}

}  // namespace

http::Validators Exchange::validators_of(const Source& source) const {
  return http::stored_validators(*source.meta, source.head);
}

void Exchange::add_tail(const Source& source, bool chunked, std::string& head) {
  if (request_->runtime->config.cache.cache_status_key && !request_->key.empty()) {
    key_text_ = request_->key.substr(kRealmBytes);
    cache_status_.key = key_text_;
  }
  head += source.more_fields;
  TailOptions options;
  if (source.has_age) options.age_seconds = http::current_age(*source.meta, now());
  options.status = cache_status_;
  options.via_line = request_->runtime->via_field_11;
  options.client = request_->head.version;
  options.keep_alive = after_response() == After::kNext;
  keep_alive_ = options.keep_alive;  // what is said now holds, whatever ends meanwhile
  options.chunked = chunked;
  append_tail(options, head);
}

void Exchange::send(const Source& source) {
  responding_ = true;
  record_.status = source.meta->status;
  const bool may_cut = source.whole && source.meta->status == 200 && (is_get() || is_head());
  if (may_cut && send_conditional(source)) return;
  if (may_cut && is_get() && send_ranges(source)) return;
  send_whole(source);
}

bool Exchange::send_conditional(const Source& source) {
  const http::UnixSeconds wall = http::to_unix(worker().loop().wall_now());
  const auto condition =
      http::evaluate_conditions(request_->head, validators_of(source), source.meta->status, wall);
  if (condition == http::Condition::kSend) return false;
  std::string head;
  if (condition == http::Condition::kNotModified) {
    http::ResponseHead stored;
    http::read_stored_head(source.head, stored);
    http::build_not_modified(stored, head);
    record_.status = 304;
  } else {
    append_status_line(412, "Precondition Failed", head);
    head += "Date: ";
    head += worker().loop().http_date();
    head += "\r\nContent-Length: 0\r\n";
    record_.status = 412;
  }
  add_tail(source, false, head);
  sender_.add_text(head);
  // Whoever reads no body must not hold back those who do.
  if (transfer_ != nullptr) leave_transfer();
  pump();
  return true;
}

bool Exchange::send_ranges(const Source& source) {
  const std::string_view value = request_->head.fields.value(http::FieldId::kRange);
  if (value.empty() || !source.length) return false;
  if (request_->head.fields.count(http::FieldId::kRange) != 1) return false;
  const http::UnixSeconds wall = http::to_unix(worker().loop().wall_now());
  if (!http::if_range_holds(request_->head, validators_of(source), wall)) return false;
  const std::uint64_t length = *source.length;
  std::vector<http::ByteRange> ranges;
  const auto outcome = http::resolve_range(value, length, kRangeLimits, ranges);
  if (outcome == http::RangeOutcome::kWhole) return false;
  http::ResponseHead stored;
  http::read_stored_head(source.head, stored);
  std::string head;
  if (outcome == http::RangeOutcome::kUnsatisfiable) {
    record_.status = 416;
    http::build_unsatisfiable_head(stored, length, head);
    Source told = source;
    told.more_fields = {};  // it says nothing of the representation but its length
    add_tail(told, false, head);
    sender_.add_text(head);
    if (transfer_ != nullptr) leave_transfer();
    pump();
    return true;
  }
  record_.status = 206;
  if (ranges.size() == 1) {
    http::build_partial_head(stored, ranges[0], length, head);
    add_tail(source, false, head);
    sender_.add_text(head);
    add_content(source, ranges[0].begin, ranges[0].end);
    pump();
    return true;
  }
  const auto goes_back = [](const http::ByteRange& a, const http::ByteRange& b) {
    return b.begin < a.end;
  };
  const bool ascending = std::ranges::adjacent_find(ranges, goes_back) == ranges.end();
  if (!ascending && source.body && source.body->state() == store::BodyState::kGrowing) {
    return false;  // parts that go back need the whole body first: send all of it
  }
  const std::string_view type = stored.fields.value(http::FieldId::kContentType);
  const std::string boundary = make_boundary();
  http::build_multipart_head(stored, boundary,
                             http::multipart_bytes(boundary, type, ranges, length), head);
  add_tail(source, false, head);
  sender_.add_text(head);
  for (const http::ByteRange& range : ranges) {
    sender_.add_text(http::part_head(boundary, type, range, length));
    add_content(source, range.begin, range.end);
  }
  sender_.add_text(http::multipart_end(boundary));
  pump();
  return true;
}

// From here on the transfer may let go what this reader has passed.
void Exchange::open_body(const Source& source, std::uint64_t start) {
  const bool opened = sender_.set_body(source.body, start);
  ENCORE_CHECK(opened, "a body is kept until its readers have opened it");
  if (transfer_ != nullptr) transfer_->mark_opened(*this);
}

void Exchange::add_content(const Source& source, std::uint64_t begin, std::uint64_t end) {
  if (source.body) {
    if (sender_.has_body()) {
      sender_.add_range(begin, end);
      return;
    }
    // A complete body is entered at the range; one that grows is read from its beginning.
    const bool complete = source.body->state() == store::BodyState::kComplete;
    open_body(source, complete ? begin : 0);
    sender_.add_range(begin, end);
    return;
  }
  record_.body_bytes += end - begin;
  sender_.add_text(std::string(source.inline_body.substr(begin, end - begin)));
}

// A stored body with its trailer section behind it: one chunk.
void Exchange::send_with_trailers(const Source& source) {
  std::string head;
  copy_head_without(source.head, {http::FieldId::kContentLength}, head);
  add_tail(source, true, head);
  const std::uint64_t length = *source.length;
  if (length != 0) {
    std::array<char, http::kChunkHeadMax> size;
    head.append(size.data(), http::write_chunk_head(length, size.data()));
  }
  sender_.add_text(head);
  if (length != 0) add_content(source, 0, length);
  std::string end(length != 0 ? http::kChunkEnd : std::string_view());
  end += http::kLastChunk;
  end += source.stored_trailers;
  end += http::kChunkEnd;
  sender_.add_text(end);
  pump();
}

void Exchange::send_whole(const Source& source) {
  if (!source.stored_trailers.empty() && is_get() && source.length &&
      http::accepts_trailers(request_->head)) {
    send_with_trailers(source);
    return;
  }
  std::string head = take_text();
  head.reserve(source.head.size() + 512);
  head += source.head;
  const unsigned status = source.meta->status;
  const bool has_content = !is_head() && status != 204 && status != 304;
  const bool http11 = request_->head.version == http::Version::kHttp11;
  bool chunked = false;
  bool open = false;
  if (has_content && !source.length && source.body) {
    open = true;
    chunked = http11;
    ends_with_connection_ = !chunked;
    if (ends_with_connection_) keep_alive_ = false;
  }
  add_tail(source, chunked, head);
  sender_.add_text(std::move(head));
  if (open) {
    open_body(source, 0);
    sender_.add_open_body(chunked,
                          http::accepts_trailers(request_->head) ? source.trailers : nullptr);
  } else if (has_content && source.length && *source.length != 0) {
    add_content(source, 0, *source.length);
  } else if (transfer_ != nullptr && is_head()) {
    leave_transfer();
  }
  pump();
}

void Exchange::pump() {
  if (finished_) return;
  const Sender::Status status = sender_.pump(connection_.stream());
  connection_.account(sender_);
  if (transfer_ != nullptr && responding_) {
    set_over_share(connection_.is_over_share());
    transfer_->advance(*this, sender_.position());
  }
  switch (status) {
    case Sender::Status::kDone:
      interim_ = false;
      if (responding_) finish(after_response());
      return;
    case Sender::Status::kBlocked:
    case Sender::Status::kWaiting:
      return;
    case Sender::Status::kMore:
      next_turn_.schedule();
      return;
    case Sender::Status::kAborted:
      record_.outcome = transfer_ != nullptr && transfer_->is_out_of_memory()
                            ? Outcome::kNoMemory
                            : Outcome::kOriginAborted;
      finish(after_cut());
      return;
    case Sender::Status::kError:
      record_.outcome = Outcome::kClientAborted;
      finish(After::kAbort);
      return;
  }
}

After Exchange::after_response() const {
  // A request body that was not read to its end would be taken for the next request.
  return keep_alive_ && body_done_ && !worker().is_draining() ? After::kNext : After::kClose;
}

void Exchange::finish(After after) {
  if (finished_) return;
  finished_ = true;
  record_.sent_bytes = sender_.sent_bytes();
  record_.body_bytes += sender_.body_bytes();
  worker().record(record_, &request_->head, connection_.stream().peer());
  leave_transfer();
  connection_.finish_exchange(after);
}

void Exchange::on_writable() { pump(); }

void Exchange::cut() {
  if (finished_) return;
  worker().stats().slow_readers_cut.add();
  record_.outcome = Outcome::kSlowReader;
  finish(After::kAbort);
}

void Exchange::on_client_eof() {
  // What was sent before the end comes first: the rest of the body, further requests.
  if (connection_.stream().kept_bytes() != 0) return;
  // A half-closed client still reads (RFC 9112 9.6); one that has gone is seen when we write.
  keep_alive_ = false;
  if (!body_done_) {
    record_.outcome = Outcome::kClientAborted;
    finish(after_cut());
  }
}

void Exchange::on_connection_closing() {
  if (finished_) return;
  finished_ = true;
  if (record_.outcome == Outcome::kInternal || responding_) {
    record_.outcome = Outcome::kClientAborted;
  }
  record_.sent_bytes = sender_.sent_bytes();
  record_.body_bytes += sender_.body_bytes();
  worker().record(record_, &request_->head, connection_.stream().peer());
  leave_transfer();
}

std::size_t Exchange::on_body(std::string_view bytes) {
  if (body_done_ || finished_) return 0;
  Fetch* fetch = transfer_ != nullptr ? transfer_->fetch_here() : nullptr;
  if (fetch == nullptr) return responding_ ? bytes.size() : 0;  // nobody wants the rest
  if (!fetch->accepts_upload()) return 0;
  body_activity_ = now();
  const std::uint64_t limit = request_->runtime->config.limits.request_body_bytes;
  if (request_->framing.kind == http::BodyKind::kLength) {
    const std::size_t taken =
        static_cast<std::size_t>(std::min<std::uint64_t>(bytes.size(), body_left_));
    body_left_ -= taken;
    body_done_ = body_left_ == 0;
    fetch->upload(bytes.substr(0, taken), body_done_, {});
    return taken;
  }
  std::size_t used = 0;
  while (used < bytes.size() || used == 0) {
    const auto step = decoder_.next(bytes.substr(used));
    used += step.consumed;
    if (step.status == http::ChunkedDecoder::Status::kData) {
      body_bytes_ += step.data.size();
      if (limit != 0 && body_bytes_ > limit) {
        refuse_body(413, "request-body-too-large");
        return bytes.size();
      }
      fetch->upload(step.data, false, {});
      if (!fetch->accepts_upload()) return used;
      continue;
    }
    if (step.status == http::ChunkedDecoder::Status::kNeedMore) return used;
    if (step.status == http::ChunkedDecoder::Status::kDone) {
      std::string trailers;
      const http::SentFields sent(request_->head.fields, request_->vary());
      if (!forwardable_trailers(
              decoder_.trailers(), request_->runtime->head_limits,
              [&sent](const http::Field& field) { return sent.drops(field); }, trailers)) {
        refuse_body(400, "bad-trailer");
        return bytes.size();
      }
      body_done_ = true;
      fetch->upload({}, true, trailers);
      return used;
    }
    refuse_body(400, "bad-chunk");
    return bytes.size();
  }
  return used;
}

// The rest of the request cannot be passed on, so that it has no answer; where one is already
// under way, it must not look like a whole one.
void Exchange::refuse_body(int status, std::string_view detail) {
  leave_transfer();
  if (responding_) {
    record_.outcome = Outcome::kBadRequest;
    finish(after_cut());
    return;
  }
  respond_failure(status, Outcome::kBadRequest, detail);
}

// Until now it was the origin that was waited for: the client's time begins.
void Exchange::on_upload_ready() {
  body_activity_ = now();
  pace_since_ = {};
  connection_.resume();
}

void Exchange::on_interim(std::string_view head) {
  if (responding_ || finished_) return;
  sender_.add_text(std::string(head));
  interim_ = true;
  pump();
}

// A client that has closed its connection and one that has only ended its side of it look alike
// until something is sent: the first answers with a reset. Every response, interim ones too, begins
// with its version, so that goes ahead; the next look sees what came of it.
bool Exchange::has_client_gone() {
  if (connection_.stream().was_reset()) return true;
  if (knocked_) return false;
  const Sender::Status status = sender_.send_ahead(connection_.stream(), "HTTP/1.1 ");
  knocked_ = status == Sender::Status::kDone;
  return status == Sender::Status::kError;
}

// Whether the one that was to bring the answer for this request, too, says nothing for too long.
bool Exchange::has_waited_long_enough(MonotonicTime time) const {
  const Nanoseconds limit = request_->runtime->config.timeouts.collapse;
  return collapsed_ && !responding_ && limit.count() != 0 && time - joined_at_ >= limit &&
         transfer_ != nullptr && transfer_->phase() == TransferPhase::kWaiting;
}

// Looked at over one stretch of time after the other, each without a look that found the origin,
// not the client, to be waited for.
bool Exchange::is_body_too_slow(MonotonicTime time) {
  const config::Config& config = request_->runtime->config;
  Fetch* fetch = transfer_ != nullptr ? transfer_->fetch_here() : nullptr;
  if (body_done_ || responding_ || fetch == nullptr || !fetch->accepts_upload()) {
    pace_since_ = {};
    return false;
  }
  const std::uint64_t come = request_->framing.kind == http::BodyKind::kLength
                                 ? request_->framing.length - body_left_
                                 : body_bytes_;
  if (pace_since_ == MonotonicTime{}) {
    pace_since_ = time;
    pace_from_ = come;
    return false;
  }
  const Nanoseconds stretch =
      config.timeouts.client_body.count() != 0 ? config.timeouts.client_body : kPaceStretch;
  const Nanoseconds elapsed = time - pace_since_;
  if (elapsed < stretch) return false;
  const double least = static_cast<double>(config.limits.client_body_rate_min) *
                       std::chrono::duration<double>(elapsed).count();
  const bool slow = static_cast<double>(come - pace_from_) < least;
  pace_since_ = time;
  pace_from_ = come;
  return slow;
}

void Exchange::check_timeouts(MonotonicTime time) {
  const config::Timeouts& timeouts = request_->runtime->config.timeouts;
  const auto over = [](Nanoseconds elapsed, Nanoseconds limit) {
    return limit.count() != 0 && elapsed >= limit;
  };
  if (!body_done_ && !responding_ && transfer_ != nullptr &&
      over(time - body_activity_, timeouts.client_body)) {
    Fetch* fetch = transfer_->fetch_here();
    if (fetch == nullptr || fetch->accepts_upload()) {
      leave_transfer();
      respond_failure(408, Outcome::kBadRequest, "request-timeout");
      return;
    }
  }
  if (is_body_too_slow(time)) {
    leave_transfer();
    respond_failure(408, Outcome::kBadRequest, "request-too-slow");
    return;
  }
  if (has_waited_long_enough(time)) {
    // Nobody else waits for it from now on. The first to leave asks for all others that do, so
    // that the origin is not asked by all at once; who waited in vain again asks for itself alone.
    transfer_->stop_joining();
    alone_ = joins_ > 1;
    ask_again();
    return;
  }
  if (connection_.has_peer_ended() && !responding_ && has_client_gone()) {
    record_.outcome = Outcome::kClientAborted;
    finish(After::kAbort);
    return;
  }
  // Only where it is the client that is waited for. What it sends meanwhile does not count.
  if (over(sender_.stalled_for(time), timeouts.client_write)) {
    record_.outcome = Outcome::kClientAborted;
    finish(After::kAbort);
  }
}

}  // namespace encore::server
