// The last part of a fetch: the response's body, storing it, and the ends.
#include <algorithm>
#include <array>

#include "cache/charge.h"
#include "proxy/http/reuse.h"
#include "proxy/server/fetch.h"
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

// Answers how many bytes were used; all, unless the body ended before.
std::size_t Fetch::on_body(std::string_view bytes) {
  since_ = worker_.loop().now();
  if (framing_.kind == http::BodyKind::kLength) {
    const auto taken = static_cast<std::size_t>(std::min<std::uint64_t>(bytes.size(), left_));
    if (!append(bytes.substr(0, taken))) return bytes.size();
    left_ -= taken;
    if (left_ == 0) {
      // More than was announced is no response to anything: the connection is not used again.
      end_body(keep_alive_ && taken == bytes.size());
      return bytes.size();
    }
    return taken;
  }
  if (framing_.kind == http::BodyKind::kUntilClose) {
    (void)append(bytes);
    return bytes.size();
  }
  std::size_t used = 0;
  while (true) {
    const auto step = decoder_.next(bytes.substr(used));
    used += step.consumed;
    switch (step.status) {
      case http::ChunkedDecoder::Status::kData:
        if (!append(step.data)) return bytes.size();
        break;
      case http::ChunkedDecoder::Status::kNeedMore:
        return used;
      case http::ChunkedDecoder::Status::kDone:
        if (!forwardable_trailers(decoder_.trailers(), request_->runtime->head_limits,
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

// False when the fetch has ended by it.
bool Fetch::append(std::string_view content) {
  if (content.empty()) return true;
  const auto* data = reinterpret_cast<const std::byte*>(content.data());
  if (storing_ && !reserve_up_to(body_->size() + content.size())) stop_storing();
  std::size_t done = 0;
  if (!direct_.empty() && data == direct_.data()) {
    body_->append(content.size());
    done = content.size();
  } else {
    done = body_->append({data, content.size()});
  }
  direct_ = {};
  if (done == content.size()) return true;
  fail(503, Outcome::kInternal, "out-of-memory");
  return false;
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
  if (storing_) return;
  const std::uint64_t written = body_->size();
  const std::uint64_t limit = body_->is_retaining()
                                  ? request_->runtime->config.cache.collapse_buffer_bytes
                                  : request_->runtime->config.limits.transfer_buffer_bytes;
  if (!paused_ && written - transfer_->slowest_position(written) > limit) {
    paused_ = true;
    transfer_->set_origin_paused(true);
    stream_->pause_reading();
    // A reader may have advanced between the look and the mark.
    on_reader_advanced();
  }
}

void Fetch::on_reader_advanced() {
  if (!paused_ || state_ != State::kBody) return;
  const std::uint64_t written = body_->size();
  const std::uint64_t limit = request_->runtime->config.limits.transfer_buffer_bytes;
  if (!storing_ && written - transfer_->slowest_position(written) > limit / 2) return;
  limit_retention();
  paused_ = false;
  transfer_->set_origin_paused(false);
  since_ = worker_.loop().now();
  stream_->resume_reading();
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
  const bool upload_complete = upload_done_ && upload_pending_.empty() && !request_broken_;
  release_connection(reusable && upload_complete);
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
  if (outcome == cache::CommitOutcome::kStored || outcome == cache::CommitOutcome::kReplaced) {
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
  if (state_ != State::kBody && retry()) return;
  fail(502, Outcome::kOriginAborted, "origin-closed");
}

void Fetch::on_error(net::Stream&, net::CloseReason reason, int) {
  if (state_ != State::kBody && retry()) return;
  fail(502, Outcome::kOriginAborted, "origin-" + std::string(to_string(reason)));
}

// Readers came or went, or one that came late wants it stored.
void Fetch::look_after_readers() {
  if (state_ == State::kEnded) return;
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
  if (state_ == State::kBody) {
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
    transfer->publish_validated(plan_.stored, true, 0);
  } else {
    transfer->publish_failure({status, outcome, reason});
  }
}

void Fetch::end() {
  state_ = State::kEnded;
  transfer_->set_fetch(nullptr);
  query_.reset();
  connector_.reset();
  release_connection(false);
  if (std::exchange(retired_, true)) return;
  worker_.retire_fetch(*this);
}

}  // namespace encore::server
