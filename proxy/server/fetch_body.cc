// The last part of a fetch: the response's body, storing it, and the ends.
#include <algorithm>
#include <array>

#include "cache/charge.h"
#include "proxy/http/reuse.h"
#include "proxy/server/fetch.h"
#include "proxy/server/relief.h"
#include "proxy/server/worker.h"

namespace encore::server {
namespace {

// Bodies whose length is not known are given room in the cache piece by piece.
constexpr std::uint64_t kReserveStepBytes = 256 * 1024;
// A body with at least so much to come is read straight into its place.
constexpr std::uint64_t kDirectReadBytes = 16 * 1024;

}  // namespace

std::size_t Fetch::on_data(net::Stream& stream, std::span<const std::byte> bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  got_bytes_ = true;
  std::size_t used = 0;
  // It may have gone on to another connection, to ask again: what is left is nothing to that.
  const auto goes_on = [&] { return state_ != State::kEnded && stream_.get() == &stream; };
  while (used < text.size() && goes_on()) {
    std::size_t taken = 0;
    if (state_ == State::kBody) {
      taken = on_body(text.substr(used));
    } else if (state_ == State::kHead || state_ == State::kSending) {
      taken = on_head(text.substr(used));
    }
    if (taken == 0) break;
    used += taken;
  }
  worker_.stats().bytes_from_origins.add(used);
  if (!goes_on()) return bytes.size();
  publish_now();
  if (state_ == State::kBody) after_append();
  return goes_on() ? used : bytes.size();
}

std::span<std::byte> Fetch::read_buffer(net::Stream&) {
  direct_ = {};
  if (state_ != State::kBody || framing_.kind != http::BodyKind::kLength) return {};
  if (left_ < kDirectReadBytes) return {};
  direct_ = body_->writable(left_);
  if (direct_.size() > left_) direct_ = direct_.first(left_);
  return direct_;
}

// Answers how many bytes were used; all, unless the body ended before, or there is no memory for
// the rest: then it comes again.
std::size_t Fetch::on_body(std::string_view bytes) {
  since_ = worker_.loop().now();
  if (framing_.kind == http::BodyKind::kLength) {
    const auto taken = static_cast<std::size_t>(std::min<std::uint64_t>(bytes.size(), left_));
    const std::size_t placed = append(bytes.substr(0, taken));
    left_ -= placed;
    if (left_ == 0) {
      // More than was announced is no response to anything: the connection is not used again.
      end_body(keep_alive_ && taken == bytes.size());
      return bytes.size();
    }
    return placed;
  }
  if (framing_.kind == http::BodyKind::kUntilClose) return append(bytes);
  std::size_t used = 0;
  while (true) {
    const auto step = decoder_.next(bytes.substr(used));
    used += step.consumed;
    switch (step.status) {
      case http::ChunkedDecoder::Status::kData:
        if (const std::size_t left = step.data.size() - append(step.data); left != 0) {
          decoder_.give_back(left);
          return used - left;
        }
        break;
      case http::ChunkedDecoder::Status::kNeedMore:
        return used;
      case http::ChunkedDecoder::Status::kDone:
        if (!forwardable_trailers(
                decoder_.trailers(), request_->runtime->head_limits,
                [this](const http::Field& field) { return keeps_from_others(field); },
                response_->trailers)) {
          fail(502, Outcome::kOriginInvalid, "bad-trailer");
          return bytes.size();
        }
        end_body(keep_alive_ && used == bytes.size());
        return bytes.size();
      case http::ChunkedDecoder::Status::kBad:
        fail(502, Outcome::kOriginInvalid, "bad-chunk");
        return bytes.size();
    }
  }
}

// Trailers are for all who read: what is for the one who asked alone is for nobody there.
bool Fetch::keeps_from_others(const http::Field& field) const {
  return http::is_stripped(field, request_->runtime->head_options) ||
         std::ranges::any_of(directives_.stripped_fields, [&](const std::string& name) {
           return http::equals_lower(field.name, name);
         });
}

// Answers how many bytes found a place. Where some did not, the fetch waits for memory.
std::size_t Fetch::append(std::string_view content) {
  if (storing_ && !reserve_up_to(body_->size() + content.size())) stop_storing();
  if (!direct_.empty() && content.data() == reinterpret_cast<const char*>(direct_.data())) {
    direct_ = {};
    body_->append(content.size());
    return content.size();
  }
  direct_ = {};
  const auto bytes = std::as_bytes(std::span(content));
  std::size_t done = body_->append(bytes);
  while (done != bytes.size() && find_memory()) done += body_->append(bytes.subspan(done));
  if (done != bytes.size()) wait_for_memory();
  return done;
}

// Whether it is worth trying again at once.
bool Fetch::find_memory() {
  if (worker_.relief().make_room()) return true;
  if (!storing_) return false;
  // What the readers have passed need not be kept then.
  stop_storing();
  limit_retention();
  return true;
}

// What was read already is kept by the stream.
void Fetch::wait_for_memory() {
  stream_->pause_reading();
  worker_.relief().wait();
  if (std::exchange(waits_for_memory_, true)) return;
  memory_since_ = worker_.loop().now();
  worker_.stats().memory_waits.add();
}

bool Fetch::retry_memory() {
  if (body_->writable(1).empty()) return false;
  waits_for_memory_ = false;
  since_ = worker_.loop().now();
  read_on();
  return true;
}

void Fetch::read_on() {
  if (!paused_ && !waits_for_memory_) stream_->resume_reading();
}

// Wakes readers, forgets what nobody can ask for any more, and holds the origin back where the
// readers are slow.
void Fetch::after_append() {
  transfer_->publish_body();
  if (state_ != State::kBody) return;
  if (unread_ || plan_.background) {
    look_after_readers();
    if (state_ != State::kBody) return;
  }
  limit_retention();
  if (storing_ || paused_) return;
  const std::uint64_t written = body_->size();
  const std::uint64_t lag = written - transfer_->slowest_position(written);
  if (lag != 0 && lag > lag_max()) pause(worker_.loop().now());
}

// How far behind the slowest reader may be.
std::uint64_t Fetch::lag_max() const {
  if (transfer_->is_over_share()) return 0;
  return body_->is_retaining() ? request_->runtime->config.cache.collapse_buffer_bytes
                               : request_->runtime->config.limits.transfer_buffer_bytes;
}

void Fetch::pause(MonotonicTime now) {
  if (transfer_->is_over_share()) worker_.stats().share_waits.add();
  paused_ = true;
  paused_since_ = now;
  transfer_->set_origin_paused(true);
  stream_->pause_reading();
  // A reader may have advanced between the look and the mark.
  on_reader_advanced();
}

void Fetch::on_reader_advanced() {
  if (!paused_ || state_ != State::kBody) return;
  const std::uint64_t written = body_->size();
  const std::uint64_t limit = request_->runtime->config.limits.transfer_buffer_bytes;
  const std::uint64_t lag = written - transfer_->slowest_position(written);
  if (!storing_ && lag != 0 && (lag > limit / 2 || transfer_->is_over_share())) return;
  end_pause(worker_.loop().now());
}

void Fetch::end_pause(MonotonicTime now) {
  blame_slowest(now);
  limit_retention();
  paused_ = false;
  transfer_->set_origin_paused(false);
  since_ = now;
  read_on();
}

// Whoever holds back the others is cut in the end; it is told with the next wake-up.
void Fetch::blame_slowest(MonotonicTime now) {
  const Nanoseconds elapsed = now - paused_since_;
  paused_since_ = now;
  if (transfer_->blame_slowest({body_->size(), elapsed, now})) cut_due_ = true;
}

void Fetch::check_body(MonotonicTime now) {
  const config::Timeouts& timeouts = request_->runtime->config.timeouts;
  const auto over = [&](MonotonicTime since) {
    return timeouts.origin_idle.count() != 0 && now - since >= timeouts.origin_idle;
  };
  if (paused_) blame_slowest(now);
  if (std::exchange(cut_due_, false)) {
    transfer_->publish_body();
    on_reader_advanced();
    return;
  }
  if (waits_for_memory_) {
    if (over(memory_since_)) fail(503, Outcome::kNoMemory, "out-of-memory");
  } else if (!paused_ && over(since_)) {
    fail(504, Outcome::kOriginTimeout, "idle-timeout");
  }
}

// What is not stored is kept from byte 0 only as long as somebody may join.
void Fetch::limit_retention() {
  if (storing_ || !body_->is_retaining()) return;
  const std::uint64_t buffer =
      joinable_after_head_ ? request_->runtime->config.cache.collapse_buffer_bytes : 0;
  if (body_->size() <= buffer) return;
  if (std::exchange(joinable_after_head_, false)) {
    transfer_->stop_joining();
    worker_.shared().inflight.remove(*transfer_);
  }
  if (transfer_->all_opened()) body_->stop_retaining();
}

bool Fetch::begin_storing(std::uint64_t body_bytes) {
  storing_ = true;
  body_->set_use(store::BodyUse::kStored);
  if (reserve_up_to(body_bytes)) return true;
  stop_storing();
  return false;
}

// Takes room in the cache for a body of this size. False where it is too large for it.
bool Fetch::reserve_up_to(std::uint64_t body_bytes) {
  if (body_bytes > request_->runtime->max_object_bytes) return false;
  cache::Kernel& kernel = *worker_.shared().kernel;
  const cache::ObjectSizes sizes = {
      .key = request_->key.size() + response_->names.size() + response_->variant_key.size(),
      .meta = sizeof(ObjectMeta),
      .head = raw_head_.size() + cache::kHeadGrowthBytes,
      .body = body_bytes};
  const std::uint64_t needed = cache::charge_for(sizes) + kernel.charge_of_entry();
  if (needed <= reserved_bytes_) return true;
  std::uint64_t more = needed - reserved_bytes_;
  if (framing_.kind != http::BodyKind::kLength && body_bytes > kReserveStepBytes) {
    more = std::max(more, kReserveStepBytes);
  }
  const auto outcome =
      kernel.reserve(cache::Key{request_->hash, request_->key}, more, worker_.loop().now());
  if (outcome != cache::ReserveOutcome::kReserved) return false;
  reserved_bytes_ += more;
  return true;
}

void Fetch::stop_storing() {
  if (!storing_) return;
  storing_ = false;
  storable_ = false;
  if (pending_publish_) response_->stored = false;
  worker_.stats().store_aborts.add();
  readers_changed_.schedule();  // where nobody reads either, it has no purpose any more
  if (reserved_bytes_ != 0) {
    worker_.shared().kernel->abort(cache::Key{request_->hash, request_->key}, reserved_bytes_,
                                   worker_.loop().now());
    reserved_bytes_ = 0;
  }
  if (body_) body_->set_use(store::BodyUse::kTransfer);
}

void Fetch::end_body(bool reusable) {
  if (transfer_->is_store_wanted() && storable_ && !storing_ && body_->is_retaining()) {
    (void)begin_storing(body_->size());
  }
  release_connection(reusable);
  body_->complete();
  if (storing_) commit();
  // Stored before it can no longer be joined: whoever comes next finds one or the other.
  worker_.shared().inflight.remove(*transfer_);
  const auto transfer = transfer_;
  const bool head_pending = pending_publish_;
  joinable_after_head_ = false;
  state_ = State::kEnded;
  transfer_->set_fetch(nullptr);
  if (head_pending) {
    publish_now();
  } else {
    transfer->stop_joining();
    transfer->publish_body();
  }
  end();
}

MonotonicTime Fetch::keep_until(const http::StoredMeta& meta) const {
  const config::Cache& cache = request_->runtime->config.cache;
  Nanoseconds keep = std::max<Nanoseconds>(std::chrono::seconds(meta.swr_seconds),
                                           std::chrono::seconds(meta.sie_seconds));
  const bool validator = meta.is(http::StoredMeta::kHasEtag) || meta.last_modified != http::kNoDate;
  if (validator || cache.serve_stale_on_error) keep = std::max(keep, cache.keep_stale);
  return std::max(meta.fresh_until, response_time_) + keep;
}

void Fetch::commit() {
  http::ResponseHead head;
  http::ParseError error;
  http::ParseProgress progress;
  if (http::parse_response(raw_head_, request_->runtime->head_limits, progress, head, error) !=
      http::ParseStatus::kComplete) {
    stop_storing();
    return;
  }
  ObjectMeta meta;
  meta.http = response_->meta;
  apply_defaults(meta.http);
  std::string text;
  http::build_stored_head(head, directives_, body_->size(), http::to_unix(response_wall_),
                          request_->runtime->head_options, text, meta.http);
  store::BodyRef body = body_;
  std::string tags = tags_in(head.fields, request_->runtime->config.cache.tag_fields);
  if (!whole_head_.empty() && tags.empty()) tags = tags_of(*plan_.completes);
  if (head.status == 206 && !join_parts(meta, text, tags, body)) {
    stop_storing();
    return;
  }
  place_content_type(text, meta);
  text += response_->trailers;
  meta.tag_bytes = static_cast<std::uint32_t>(tags.size());
  text += tags;
  meta.variant = response_->variant;
  meta.primary_bytes = static_cast<std::uint32_t>(request_->key.size());
  meta.names_bytes = static_cast<std::uint32_t>(response_->names.size());
  meta.plain = response_->trailers.empty() && meta.http.status != 206 ? 1 : 0;
  store::ObjectRef object = make_object(meta, text, body);
  if (!object) {
    stop_storing();
    return;
  }
  cache::Kernel& kernel = *worker_.shared().kernel;
  cache::Stored entry{.variant = meta.variant,
                      .charge_bytes = object->charge(),
                      .fresh_until = meta.http.fresh_until,
                      .keep_until = keep_until(meta.http),
                      .payload = object.payload()};
  const auto outcome = kernel.commit(cache::Key{request_->hash, request_->key}, entry,
                                     std::exchange(reserved_bytes_, 0), worker_.loop().now());
  storing_ = false;
  const bool stored =
      outcome == cache::CommitOutcome::kStored || outcome == cache::CommitOutcome::kReplaced;
  if (pending_publish_) response_->stored = stored;
  if (stored) {
    worker_.stats().stored.add();
    worker_.stats().stored_bytes.add(entry.charge_bytes);
    (void)object.detach();
    drop_if_overtaken(meta);
  } else {
    worker_.stats().store_aborts.add();
  }
}

store::ObjectRef Fetch::make_object(const ObjectMeta& meta, std::string_view head,
                                    const store::BodyRef& body) {
  const std::string key = request_->key + response_->names + response_->variant_key;
  const store::ObjectParts parts = {
      .key = key, .meta = std::as_bytes(std::span(&meta, 1)), .head = head};
  store::Store& store = *worker_.shared().store;
  const cache::ObjectSizes sizes = {
      .key = key.size(), .meta = sizeof(ObjectMeta), .head = head.size(), .body = body->size()};
  if (cache::is_inline(sizes)) {
    std::array<iovec, 16> content;
    auto cursor = body->open(0);
    if (!cursor) return {};
    const auto peeked = cursor->peek(content, body->size());
    if (peeked.bytes == body->size()) {
      auto small = store.make_small(parts, std::span(content.data(), peeked.parts));
      return small ? std::move(*small) : store::ObjectRef();
    }
  }
  auto writer = store.reserve({.key = key, .length = body->size(), .body = body});
  if (!writer) return {};
  auto object = (*writer)->commit(parts);
  return object ? std::move(*object) : store::ObjectRef();
}

void Fetch::on_eof(net::Stream&) {
  // An origin that did not read all of the request may have lost a part of its answer by closing.
  if (state_ == State::kBody && framing_.kind == http::BodyKind::kUntilClose && !request_broken_) {
    end_body(false);
    return;
  }
  if (state_ != State::kBody && try_again(AttemptFailure::kClosed, "closes the connection")) return;
  fail(502, Outcome::kOriginAborted, "origin-closed");
}

void Fetch::on_error(net::Stream&, net::CloseReason reason, int) {
  if (state_ != State::kBody && try_again(AttemptFailure::kClosed, "resets the connection")) return;
  fail(502, Outcome::kOriginAborted, "origin-" + std::string(to_string(reason)));
}

// Ends it from the loop, not from within the call that found out: who made that call is no place to
// hear the answer.
void Fetch::fail_later(int status, Outcome outcome, std::string_view detail) {
  request_broken_ = true;
  failure_ = TransferFailure{status, outcome, std::string(detail)};
  readers_changed_.schedule();
}

// Readers came or went, or one that came late wants it stored; or it has failed.
void Fetch::look_after_readers() {
  if (state_ == State::kEnded) return;
  if (failure_) {
    fail(failure_->status, failure_->outcome, failure_->detail);
    return;
  }
  if (state_ == State::kBody && transfer_->is_store_wanted() && storable_ && !storing_ &&
      body_->is_retaining()) {
    (void)begin_storing(framing_.kind == http::BodyKind::kLength ? framing_.length : body_->size());
  }
  unread_ = false;
  const bool awaited = plan_.background && (state_ != State::kBody || storing_);
  if (awaited || transfer_->has_readers()) {
    on_reader_advanced();
    return;
  }
  // With who asked, the rest of the request's body is gone.
  if (state_ == State::kBody && storing_ && upload_done_) {
    // Finished in the background, if it is not too much.
    const std::uint64_t limit = request_->runtime->config.cache.background_finish_bytes;
    const bool known = framing_.kind == http::BodyKind::kLength;
    if (known ? left_ <= limit : body_->size() <= limit) {
      unread_ = true;
      on_reader_advanced();
      return;
    }
  }
  // Nobody may join between this look and the end, to wait for what will not come.
  if (transfer_->close_if_unread()) abandon();
}

void Fetch::abandon() {
  if (state_ == State::kEnded) return;
  stop_storing();
  worker_.shared().inflight.remove(*transfer_);
  transfer_->stop_joining();
  if (body_) body_->abort();
  end();
}

void Fetch::fail(int status, Outcome outcome, std::string_view detail) {
  if (state_ == State::kEnded) return;
  const std::string reason(detail);
  stop_storing();
  worker_.shared().inflight.remove(*transfer_);
  const auto transfer = transfer_;
  if (outcome == Outcome::kNoMemory) worker_.stats().memory_failures.add();
  if (state_ == State::kBody) {
    if (outcome == Outcome::kNoMemory) transfer->set_out_of_memory();
    body_->abort();
    end();
    if (pending_publish_) {
      joinable_after_head_ = false;
      publish_now();
    } else {
      transfer->stop_joining();
      transfer->publish_body();
    }
    return;
  }
  const bool stale =
      plan_.stored && outcome != Outcome::kDenied &&
      http::may_serve_stale(stored_meta(), request_->directives, worker_.loop().now(),
                            http::OriginFailure::kUnreachable, request_->runtime->stale_options);
  end();
  if (stale) {
    transfer->publish_validated({.object = plan_.stored, .stale = true});
  } else {
    // A limit of the client's own, or where it may not go.
    const bool of_the_client = outcome == Outcome::kDenied || reason == "dns-limit";
    transfer->publish_failure({status, outcome, reason, of_the_client});
  }
}

void Fetch::end() {
  state_ = State::kEnded;
  transfer_->set_fetch(nullptr);
  query_.reset();
  connector_.reset();
  waiter_.leave();
  release_connection(false);
  if (std::exchange(retired_, true)) return;
  worker_.retire_fetch(*this);
}

}  // namespace encore::server
