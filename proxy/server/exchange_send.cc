// The second half of an exchange: putting its response together and on the wire.
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

std::string_view without_status_line(std::string_view head) {
  const std::size_t end = head.find("\r\n");
  return end == std::string_view::npos ? std::string_view() : head.substr(end + 2);
}

// The head of a 206 or 416 made from that of a 200.
std::string partial_head(std::string_view head, int status, std::uint64_t length,
                         std::string_view content_range, std::string_view content_type) {
  std::string lines;
  http::FieldSet left_out = {http::FieldId::kContentLength, http::FieldId::kContentRange};
  if (!content_type.empty()) left_out.insert(http::FieldId::kContentType);
  copy_head_without(head, left_out, lines);
  std::string out;
  append_status_line(status, http::reason_phrase(static_cast<unsigned>(status)), out);
  out += without_status_line(lines);
  if (!content_range.empty()) {
    out += "Content-Range: ";
    out += content_range;
    out += "\r\n";
  }
  if (!content_type.empty()) {
    out += "Content-Type: ";
    out += content_type;
    out += "\r\n";
  }
  out += "Content-Length: " + std::to_string(length) + "\r\n";
  return out;
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
  if (outcome == http::RangeOutcome::kUnsatisfiable) {
    record_.status = 416;
    std::string head =
        partial_head(source.head, 416, 0, http::unsatisfied_content_range(length), {});
    add_tail(source, false, head);
    sender_.add_text(head);
    if (transfer_ != nullptr) leave_transfer();
    pump();
    return true;
  }
  record_.status = 206;
  if (ranges.size() == 1) {
    std::string head = partial_head(source.head, 206, ranges[0].size(),
                                    http::content_range(ranges[0], length), {});
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
  http::ResponseHead stored;
  http::read_stored_head(source.head, stored);
  const std::string type(stored.fields.value(http::FieldId::kContentType));
  const std::string boundary = "encore-" + std::to_string(request_->hash.hi);
  std::string head =
      partial_head(source.head, 206, http::multipart_bytes(boundary, type, ranges, length), {},
                   "multipart/byteranges; boundary=" + boundary);
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
    if (!chunked) keep_alive_ = false;  // the end of the connection ends the body
  }
  add_tail(source, chunked, head);
  sender_.add_text(std::move(head));
  if (open) {
    open_body(source, 0);
    sender_.add_open_body(chunked, source.trailers);
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
  if (transfer_ != nullptr && responding_) transfer_->advance(*this, sender_.position());
  switch (status) {
    case Sender::Status::kDone:
      interim_ = false;
      if (responding_) finish(after_response());
      return;
    case Sender::Status::kBlocked:
    case Sender::Status::kWaiting:
      return;
    case Sender::Status::kMore:
      more_.schedule();
      return;
    case Sender::Status::kAborted:
      record_.outcome = Outcome::kOriginAborted;
      finish(After::kAbort);
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

void Exchange::on_client_eof() {
  // What was sent before the end comes first: the rest of the body, further requests.
  if (connection_.stream().kept_bytes() != 0) return;
  // A half-closed client still reads (RFC 9112 9.6); one that has gone is seen when we write.
  keep_alive_ = false;
  if (!body_done_) {
    record_.outcome = Outcome::kClientAborted;
    finish(After::kAbort);
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
      if (!forwardable_trailers(decoder_.trailers(), request_->runtime->head_limits, trailers)) {
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
    finish(After::kAbort);
    return;
  }
  respond_failure(status, Outcome::kBadRequest, detail);
}

void Exchange::on_upload_ready() { connection_.resume(); }

void Exchange::on_interim(std::string_view head) {
  if (responding_ || finished_) return;
  sender_.add_text(std::string(head));
  interim_ = true;
  pump();
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
  // Only where it is the client that is waited for. What it sends meanwhile does not count.
  if (over(sender_.stalled_for(time), timeouts.client_write)) {
    record_.outcome = Outcome::kClientAborted;
    finish(After::kAbort);
  }
}

}  // namespace encore::server
