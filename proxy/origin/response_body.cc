#include "proxy/origin/response_body.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "proxy/origin/parts.h"
#include "proxy/transfer/stall_detector.h"

namespace encore::server {
namespace {

// A body with at least so much to come is read straight into its place.
constexpr std::uint64_t kDirectReadBytes = 16 * 1024;
// Readers are asked no more often what their clients take: each answer costs a system call.
constexpr Nanoseconds kAskInterval = std::chrono::milliseconds(10);

}  // namespace

ResponseBody::ResponseBody(OriginServices& services, const RequestContext& request,
                           Transfer& transfer, ResponseBodyOwner& owner)
    : services_(services),
      request_(request),
      transfer_(transfer),
      owner_(owner),
      writer_(services, request) {}

bool ResponseBody::open(OriginStream stream, const ReceivedResponse& received,
                        const SharedResponse& response, Use use, Joining joining) {
  ENCORE_CHECK(!body_, "a response has one body");
  const http::Framing& framing = received.framing;
  store::BodyOptions options;
  if (framing.kind == http::BodyKind::kLength) options.length = framing.length;
  options.use = use == Use::kStore ? store::BodyUse::kStored : store::BodyUse::kTransfer;
  auto body = services_.store.make_body(options);
  if (!body && services_.relief.make_room_at_once()) body = services_.store.make_body(options);
  if (!body) return false;
  body_ = std::move(*body);
  stream_ = stream;
  since_ = services_.loop.now();
  joining_ = joining;
  const config::Limits& limits = request_.runtime->config.limits;
  reader_ = BodyFraming(
      framing,
      {.extension_bytes_max = limits.chunk_extension_bytes,
       .trailer_bytes_max = limits.trailers_bytes},
      stream.http2() == nullptr ? BodyFraming::End::kFramed : BodyFraming::End::kOfStream);
  if (use == Use::kPass) return true;
  writer_.allow(received, response);
  // If it does not fit, that shows in is_storing().
  if (use == Use::kStore && !writer_.begin(*body_, options.length.value_or(0))) {
    owner_.on_storing_stopped();
  }
  return true;
}

bool ResponseBody::append_part(const store::Object& part) {
  const std::uint64_t size = part.body_size();
  reader_.skip(size);
  // All of it in one call: evictions for it may take some steps.
  while (!append_range(part, {body_->size(), size}, *body_)) {
    if (!services_.relief.make_room_at_once()) return false;
  }
  return true;
}

std::span<std::byte> ResponseBody::read_buffer() {
  direct_ = {};
  if (!reader_.has_length() || reader_.left() < kDirectReadBytes) return {};
  direct_ = body_->writable(reader_.left());
  if (direct_.size() > reader_.left()) direct_ = direct_.first(reader_.left());
  return direct_;
}

ResponseBody::ConsumedBytes ResponseBody::on_bytes(std::string_view bytes) {
  ENCORE_CHECK(static_cast<bool>(body_), "the body's bytes come after its head");
  since_ = services_.loop.now();
  std::size_t used = 0;
  while (true) {
    const BodyFraming::Step step = reader_.next(bytes.substr(used));
    used += step.consumed;
    switch (step.status) {
      case BodyFraming::Status::kContent:
        // Without its last bytes it is whole for nobody.
        if (digest_ && reader_.has_length() && reader_.left() == 0 &&
            !digest_->is_right_with(step.content)) {
          return {.status = Status::kWrongDigest, .bytes = used};
        }
        if (const std::size_t left = step.content.size() - append(step.content); left != 0) {
          reader_.give_back(left);
          return {.status = Status::kGoesOn, .bytes = used - left};
        }
        break;
      case BodyFraming::Status::kNeedMore:
        return {.status = Status::kGoesOn, .bytes = used};
      case BodyFraming::Status::kDone:
        if (!is_right()) return {.status = Status::kWrongDigest, .bytes = used};
        return {.status = Status::kDone, .bytes = used};
      case BodyFraming::Status::kBad:
        return {.status = Status::kBadChunk, .bytes = used};
    }
  }
}

// Returns how many bytes found a place. If some did not, it waits for memory.
std::size_t ResponseBody::append(std::string_view content) {
  if (is_storing() && !writer_.grow(*body_, body_->size() + content.size())) stop_storing();
  const std::size_t done = append_here(content);
  if (digest_) digest_->add(content.substr(0, done));
  return done;
}

std::size_t ResponseBody::append_here(std::string_view content) {
  const std::span direct = std::exchange(direct_, {});
  if (!direct.empty() && content.data() == reinterpret_cast<const char*>(direct.data())) {
    ENCORE_CHECK(content.size() <= direct.size(), "a read fits where it was to go");
    body_->append(content.size());
    return content.size();
  }
  const auto bytes = std::as_bytes(std::span(content));
  std::size_t done = body_->append(bytes);
  while (done != bytes.size() && find_memory()) done += body_->append(bytes.subspan(done));
  if (done != bytes.size()) wait_for_memory();
  return done;
}

// True if it is worth trying again now.
bool ResponseBody::find_memory() {
  if (services_.relief.make_room()) return true;
  if (!body_->is_retaining()) return false;
  // Bytes that the readers have passed need not be kept then: neither for the cache, nor for those
  // who might join. All transfers would wait for what each of them keeps for nobody
  // (docs/decisions/0080).
  if (writer_.keeps_whole()) stop_storing();
  stop_retaining();
  return !body_->is_retaining();
}

// The stream keeps bytes that were read already.
void ResponseBody::wait_for_memory() {
  stream_.pause_reading();
  // The readers, who are notified next, give it back: chunks that are filled in part would be all
  // that there is, and each transfer wait for the others'.
  if (!body_->is_retaining()) body_->end_chunk();
  transfer_.urge_readers();
  services_.relief.wait_for_room();
  if (memory_since_) return;
  memory_since_ = services_.loop.now();
  services_.stats.memory_waits.add();
}

bool ResponseBody::retry_memory() {
  ENCORE_CHECK(memory_since_ && stream_, "who waits for memory has more to read");
  if (body_->is_retaining()) stop_retaining();  // a reader that had not begun may have
  if (body_->writable(1).empty()) return false;
  memory_since_.reset();
  since_ = services_.loop.now();
  read_on();
  return true;
}

void ResponseBody::read_on() {
  if (!paused_since_ && !memory_since_) stream_.resume_reading();
}

void ResponseBody::after_append() {
  if (is_storing() && !writer_.write(*body_)) stop_storing();
  limit_retention();
  // A body that is kept whole waits for no reader: the cache wants it anyway (docs/decisions/0050).
  if (writer_.keeps_whole() || paused_since_) return;
  const std::uint64_t behind = lag();
  if (behind != 0 && behind > lag_max()) pause(services_.loop.now());
}

// How far behind the slowest reader is.
std::uint64_t ResponseBody::lag() const {
  const std::uint64_t written = body_->size();
  const std::uint64_t slowest = transfer_.slowest_position(written);
  ENCORE_CHECK(slowest <= written, "nobody reads ahead of the origin");
  return written - slowest;
}

// How far it may be.
std::uint64_t ResponseBody::lag_max() const {
  // A client beyond its share of the memory is not read ahead for (docs/decisions/0080).
  if (transfer_.is_over_share()) return 0;
  return body_->is_retaining() ? request_.runtime->config.cache.collapse_buffer_bytes
                               : request_.runtime->config.limits.transfer_buffer_bytes;
}

void ResponseBody::pause(MonotonicTime now) {
  ENCORE_CHECK(!paused_since_ && stream_, "a body that is read is paused");
  if (transfer_.is_over_share()) services_.stats.share_waits.add();
  paused_since_ = now;
  transfer_.set_producer_paused(true);
  stream_.pause_reading();
  others_waited_ = false;
  all_read_since_.reset();
  // A reader left behind may go on from there.
  if (const std::uint64_t number = writer_.parts_alone()) transfer_.set_parts(number);
  if (!transfer_.all_opened()) {
    transfer_.urge_readers();
    transfer_.publish_body();
  }
  // A reader may have advanced between the look and the mark.
  on_reader_advanced();
}

// A reader that takes nothing while others wait leaves by itself when it is asked. While nobody has
// read all nobody is asked: the reader that has tells that it has advanced. With a fast origin that
// is many times in a millisecond, and the last answers are as good (docs/decisions/0321).
void ResponseBody::question_readers() {
  if (!paused_since_ || !stream_) return;
  using ReaderProbe = Transfer::ReaderProbe;
  const MonotonicTime now = services_.loop.now();
  ReaderProbe asking = others_waited_ ? ReaderProbe::kVerdict : ReaderProbe::kToKnow;
  if (now - asked_at_ < kAskInterval) asking = ReaderProbe::kNobody;
  const Transfer::Others others = transfer_.probe_blocking_readers(body_->size(), asking);
  others_waited_ = others == Transfer::Others::kWait;
  if (others == Transfer::Others::kBehind) {
    all_read_since_.reset();
    return;
  }
  if (!all_read_since_) all_read_since_ = now;
  if (asking != ReaderProbe::kNobody) asked_at_ = now;
  if (patience_ == nullptr) {
    patience_ = std::make_unique<net::Timer>(services_.loop, [this] { question_readers(); });
  }
  patience_->start(asked_at_ + StallDetector::kLookInterval - now);
}

void ResponseBody::on_reader_advanced() {
  if (!paused_since_ || !stream_) return;
  const std::uint64_t limit = request_.runtime->config.limits.transfer_buffer_bytes;
  const std::uint64_t behind = lag();
  // It goes on at half, so that the origin is not stopped and started with each piece.
  if (!writer_.keeps_whole() && behind != 0 && (behind > limit / 2 || transfer_.is_over_share())) {
    if (!all_read_since_ && transfer_.is_read_by_several()) question_readers();
    return;
  }
  end_pause(services_.loop.now());
}

void ResponseBody::end_pause(MonotonicTime now) {
  blame_slowest(now);
  limit_retention();
  if (patience_ != nullptr) patience_->cancel();
  paused_since_.reset();
  transfer_.set_producer_paused(false);
  since_ = now;
  read_on();
}

// A reader that holds back the others is cut in the end; the next wake-up informs it. A pause hurts
// nobody as long as all have something left to read: with a fast origin it lasts nearly always. Why
// the others' wait is the measure: docs/decisions/0430.
void ResponseBody::blame_slowest(MonotonicTime now) {
  if (!all_read_since_) return;
  const Nanoseconds elapsed = now - *all_read_since_;
  all_read_since_ = now;
  if (transfer_.blame_slowest({body_->size(), elapsed, now})) cut_due_ = true;
}

ResponseBody::Overdue ResponseBody::check(MonotonicTime now, Nanoseconds limit) {
  const auto over = [&](MonotonicTime since) { return limit.count() != 0 && now - since >= limit; };
  if (paused_since_) {
    blame_slowest(now);
    // Others may have joined since the pause began.
    const bool is_questioned = patience_ != nullptr && patience_->is_running();
    if (!is_questioned && transfer_.is_read_by_several()) question_readers();
  }
  if (std::exchange(cut_due_, false)) {
    transfer_.publish_body();
    on_reader_advanced();
    return Overdue::kNothing;
  }
  if (memory_since_) return over(*memory_since_) ? Overdue::kMemory : Overdue::kNothing;
  return !paused_since_ && over(since_) ? Overdue::kOrigin : Overdue::kNothing;
}

// A body that is not stored is kept from byte 0 only as long as somebody may join.
void ResponseBody::limit_retention() {
  if (writer_.keeps_whole() || !body_->is_retaining()) return;
  const std::uint64_t buffer =
      is_joinable() ? request_.runtime->config.cache.collapse_buffer_bytes : 0;
  if (body_->size() > buffer) stop_retaining();
}

// Nobody joins any more; readers that have joined keep what they have not begun to read.
void ResponseBody::stop_retaining() {
  if (is_joinable()) {
    end_joining();
    transfer_.stop_joining();
    services_.inflight.remove(transfer_);
  }
  if (transfer_.all_opened()) body_->stop_retaining();
}

void ResponseBody::store_if_wanted() {
  if (!transfer_.is_store_wanted() || !writer_.may_store() || is_storing() ||
      !body_->is_retaining()) {
    return;
  }
  const std::uint64_t size = body_->size();
  const std::uint64_t expected = reader_.has_length() ? size + reader_.left() : size;
  if (!writer_.begin(*body_, expected)) owner_.on_storing_stopped();
}

bool ResponseBody::is_worth_finishing(std::uint64_t bytes_max) const {
  if (!is_storing()) return false;
  return (reader_.has_length() ? reader_.left() : body_->size()) <= bytes_max;
}

void ResponseBody::stop_storing() {
  if (!writer_.stop(body_.get())) return;
  transfer_.end_parts();
  owner_.on_storing_stopped();
}

std::optional<StoreWriter::Result> ResponseBody::complete(const store::ObjectRef& completes) {
  ENCORE_CHECK(!stream_, "a body that has ended has no connection");
  body_->complete();
  if (!is_storing()) return std::nullopt;
  const StoreWriter::Result result = writer_.commit(body_, completes);
  if (transfer_.parts() != 0) transfer_.end_parts();
  if (result == StoreWriter::Result::kUnfit) owner_.on_storing_stopped();
  return result;
}

void ResponseBody::abort() {
  stop_storing();
  if (body_) body_->abort();
}

}  // namespace encore::server
