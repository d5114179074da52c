#include "proxy/client/http2_reply.h"

#include <algorithm>
#include <array>

#include "base/check.h"
#include "proxy/http/stored_meta.h"
#include "proxy/intake/plain_hit.h"

namespace encore::server {

void Http2Reply::send_hit(const RequestView& view, std::string_view text, HitForm form,
                          CacheView& found) {
  const ClientServices& services = carrier_.services();
  object_ = std::move(found.object);
  const store::Object& object = *object_;
  const http::StoredMeta& meta = meta_of(object).http;
  const HitLines lines(*services.runtime, view, form);
  const MonotonicTime now = services.loop.now();
  std::string tail = take_text();
  tail.resize(lines.bytes_max());
  tail.resize(lines.write(meta, now, tail.data()));
  if (object.body() != nullptr) {
    const bool opened = content_.set_body(store::BodyRef::share(object.body()));
    ENCORE_CHECK(opened, "a stored body is kept");
    content_.add_range(0, object.body_size());
  } else {
    inline_ = object.inline_body();
  }
  services.log.tell_hit(view, object);
  session().respond(id_, std::array{stored_head_of(object), std::string_view(tail)},
                    h2::ServerSession::Framing::kLength, this);
  const std::uint64_t size = object.body_size();
  const HitCount count{.started = now,
                       .status = meta.status,
                       .sent_bytes = sent_bytes() + framed_bytes(size),
                       .body_bytes = size,
                       .listener = carrier_.listener().counts.get(),
                       .rule = view.rule,
                       .client = &carrier_.identity().client()};
  // A response that goes out with this turn is recorded here, another when it has gone.
  const bool goes_now = object.body() == nullptr && !carrier_.is_blocked() &&
                        static_cast<std::int64_t>(size) <= session().send_window(id_);
  if (goes_now && !services.log.wants_records()) {
    services.log.count(count, *view.head);
  } else {
    RequestRecord record =
        record_of(view, count, carrier_.listener(), carrier_.identity().client());
    record.connection = ClientConnectionEnd::kKept;
    if (services.runtime->logs_response_fields) {
      response_fields_.append(stored_head_of(object)).append(tail);
    }
    record.response_fields = response_fields_;
    if (services.log.is_logging()) record.content_type = content_type_of(object);
    if (goes_now) {
      services.log.record(record);
    } else {
      keep(view, text, record);
    }
  }
  give_text(std::move(tail));
  (void)end_if_sent();
}

void Http2Reply::keep(const RequestView& view, std::string_view text, const RequestRecord& record) {
  const ClientServices& services = carrier_.services();
  request_ = RequestContext::make(services.runtime, view, text, carrier_.identity().client());
  RequestRecord& kept = record_.emplace(record);
  record_request(*request_, kept);
}

void Http2Reply::send_refusal(const Refusal& refusal, const RequestView* view) {
  const ClientServices& services = carrier_.services();
  const Intake::Refused refused{
      .listener = carrier_.listener(), .identity = carrier_.identity(), .view = view};
  Intake::Reply reply = services.intake.reply_to(refusal, refused);
  text_ = std::move(reply.text.body);
  inline_ = text_;
  session().respond(id_, reply.text.head, h2::ServerSession::Framing::kLength, this);
  reply.record.sent_bytes = sent_bytes() + framed_bytes(text_.size());
  reply.record.connection = ClientConnectionEnd::kKept;
  if (services.runtime->logs_response_fields) reply.record.response_fields = reply.text.head;
  services.intake.record(reply);
  (void)end_if_sent();
}

h2::ContentSource::Peeked Http2Reply::peek(std::span<iovec> room, std::size_t bytes_max) {
  if (inline_.empty()) return peek_for_http2(content_, room, bytes_max);
  const std::size_t bytes = std::min(inline_.size(), bytes_max);
  room[0] = {const_cast<char*>(inline_.data()), bytes};
  return {.state = ContentSource::State::kReady, .parts = 1, .bytes = bytes};
}

void Http2Reply::advance(std::size_t bytes) {
  if (inline_.empty()) {
    content_.advance(bytes);
  } else {
    inline_.remove_prefix(bytes);
  }
}

// Nobody wants the content that it brings.
void Http2Reply::on_content(h2::StreamId, std::string_view bytes) {
  session().consume(id_, bytes.size());
}

bool Http2Reply::end_if_sent() {
  if (state_ == State::kEnded) return true;
  if (session().status(id_) != h2::SendStatus::kDone) return false;
  // Nobody asks whether it arrives if nothing is recorded of it any more.
  if (record_ && !await_delivery()) return false;
  state_ = State::kEnded;
  tell(nullptr);
  session().release(id_);
  return true;
}

void Http2Reply::tell(const ClientGone* why) {
  if (request_ == nullptr || !record_) return;
  RequestRecord& record = *record_;
  record.sent_bytes = sent_bytes();
  record.first_byte = monotonic_now() - record.started;
  if (why != nullptr) {
    const std::uint64_t lost =
        why->unsent == ClientGone::Unsent::kLost ? unsent_bytes() : std::uint64_t{0};
    record.outcome = why->outcome;
    record.detail = why->detail;
    record.connection = ClientConnectionEnd::kCut;
    const std::uint64_t body =
        object_->body() == nullptr ? object_->body_size() - inline_.size() : content_.body_bytes();
    record.body_bytes = body - std::min(body, lost);
    record.sent_bytes -= std::min(record.sent_bytes, lost);
  }
  carrier_.services().log.record(record);
}

void Http2Reply::on_writable(h2::StreamId) {
  (void)sent_bytes();
  if (session().status(id_) == h2::SendStatus::kBroken) {
    const ClientGone why{.outcome = Outcome::kInternal};
    state_ = State::kEnded;
    tell(&why);
    session().reset(id_, h2::ErrorCode::kInternalError);
  } else {
    account(client());
    if (!end_if_sent()) return;
  }
  carrier_.on_responder_end(*this);
}

void Http2Reply::on_gone(h2::StreamId, h2::ErrorCode) {
  ENCORE_CHECK(state_ != State::kEnded, "the session forgets a stream that ends");
  state_ = State::kEnded;
  const ClientGone why = carrier_.gone();
  tell(&why);
  carrier_.on_responder_end(*this);
}

void Http2Reply::cut() {
  carrier_.services().stats.slow_readers_cut.add();
  end_by({.outcome = Outcome::kSlowReader, .unsent = ClientGone::Unsent::kSent});
}

void Http2Reply::end_by(const ClientGone& why) {
  ENCORE_CHECK(state_ != State::kEnded, "a request ends once");
  state_ = State::kEnded;
  tell(&why);
  session().reset(id_, h2::ErrorCode::kCancel);
  carrier_.flush_later();
  carrier_.on_responder_end(*this);
}

}  // namespace encore::server
