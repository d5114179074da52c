// Http2Reply: the answer to one stream that no exchange gives: a plain hit or a refusal. Confined
// to its worker.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/recycled.h"
#include "proxy/client/http2_responder.h"
#include "proxy/exchange/body_reader.h"
#include "proxy/h2/content_source.h"
#include "proxy/intake/intake.h"
#include "proxy/observe/request_record.h"

namespace encore::server {

class Http2Reply final : public Http2Responder,
                         private h2::ContentSource,
                         public Recycled<Http2Reply> {
 public:
  Http2Reply(Http2Carrier& carrier, h2::StreamId id) : Http2Responder(carrier, id) {}

  // One of these, once. Nothing but the session is called by them, and is_done() asked behind.
  // `text` is that of the request's head.
  void send_hit(const RequestView& view, std::string_view text, HitForm form, CacheView& found);
  // `view` null: no head could be read.
  void send_refusal(const Refusal& refusal, const RequestView* view);
  // The stream has all of it already, and the reply is needed no more.
  bool is_done() const { return state_ == State::kEnded; }

  // Http2Responder
  const RequestContext* request() const override { return request_.get(); }
  std::uint64_t held_bytes() const override { return content_.held_bytes() + text_.size(); }
  void cut() override;
  void end_by(const ClientGone& why) override;

  // h2::StreamHandler
  void on_content(h2::StreamId stream, std::string_view bytes) override;
  void on_content_end(h2::StreamId, std::string_view) override {}
  void on_writable(h2::StreamId stream) override;
  void on_gone(h2::StreamId stream, h2::ErrorCode code) override;

 private:
  enum class State : std::uint8_t { kOpen, kEnded };

  // h2::ContentSource
  h2::ContentSource::Peeked peek(std::span<iovec> room, std::size_t bytes_max) override;
  void advance(std::size_t bytes) override;
  const net::Address& client() const override {
    return request_ == nullptr ? carrier_.identity().client() : request_->client;
  }
  // A hit whose record ends with it.
  void keep(const RequestView& view, std::string_view text, const RequestRecord& record);
  // Its record, if one is kept, says this.
  void tell(const ClientGone* why);
  bool end_if_sent();

  BodyReader content_;
  std::string_view inline_;  // a stored body's, or text_'s; goes first
  std::string text_;
  store::ObjectRef object_;
  std::shared_ptr<const RequestContext> request_;  // null: it is recorded already
  std::optional<RequestRecord> record_;
  std::string response_fields_;  // that the record views
  State state_ = State::kOpen;
};

}  // namespace encore::server
