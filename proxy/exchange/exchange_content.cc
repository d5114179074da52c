// The part of an exchange that takes the request's content.
#include <string>
#include <utility>

#include "base/check.h"
#include "proxy/exchange/exchange.h"
#include "proxy/http/sent_fields.h"

namespace encore::server {
namespace {

// Returns the receiver of the request's content; null: there is none any more.
Producer* producer_of(const std::shared_ptr<Transfer>& transfer) {
  return transfer == nullptr ? nullptr : transfer->producer_here();
}

}  // namespace

Exchange::ContentDemand Exchange::content_demand() const {
  const Producer* const producer = producer_of(subscription_.transfer());
  if (producer == nullptr)
    return steps_.is_at(Step::kRespond) ? ContentDemand::kNever : ContentDemand::kLater;
  return producer->accepts_upload() ? ContentDemand::kNow : ContentDemand::kLater;
}

void Exchange::on_content(std::string_view bytes) {
  const PanicNote note(steps_.activity());
  ENCORE_CHECK(content_demand() == ContentDemand::kNow, "content comes when it is wanted");
  const Upload::UploadProgress taken = upload_.take(bytes.size(), services_.loop.now());
  if (taken == Upload::UploadProgress::kTooLarge) {
    refuse_content(413, "request-body-too-large");
    return;
  }
  const std::uint64_t rest_max = request_->runtime->config.limits.body_behind_response_bytes;
  if (rest_.bytes(upload_) > rest_max) {
    refuse_content(413, "body-behind-response");
    return;
  }
  producer_of(subscription_.transfer())->upload(bytes, taken == Upload::UploadProgress::kLast, {});
  if (rest_.has_begun() && upload_.is_done()) next_turn_.schedule();
}

void Exchange::on_content_end(std::string_view trailers) {
  const PanicNote note(steps_.activity());
  if (upload_.is_done()) return;
  ENCORE_CHECK(content_demand() == ContentDemand::kNow, "content ends when it is wanted");
  std::string forwarded;
  const http::SentFields sent(request_->head.fields, request_->vary());
  const auto drops = [&](const http::Field& field) {
    const Rule* const rule = request_->rule;
    return sent.drops(field) || (rule != nullptr && rule->request_edits().leaves_out(field.name));
  };
  if (!forwardable_trailers(trailers, request_->runtime->head_limits, drops, forwarded)) {
    refuse_content(400, "bad-trailer");
    return;
  }
  upload_.end();
  producer_of(subscription_.transfer())->upload({}, true, forwarded);
  if (rest_.has_begun()) next_turn_.schedule();
}

void Exchange::on_content_broken(std::string_view detail) {
  const PanicNote note(steps_.activity());
  refuse_content(400, detail);
}

// The rest of the request cannot be passed on, so that it has no answer; where one is already in
// progress, it must not look like a whole one. Behind a whole one nothing but the connection ends.
void Exchange::refuse_content(int status, std::string_view detail) {
  subscription_.leave();
  if (rest_.has_begun()) {
    record_.detail = detail;
    finish(ClientStream::End::kDone);
    return;
  }
  if (steps_.is_at(Step::kRespond)) {
    record_.outcome = Outcome::kBadRequest;
    finish(ClientStream::End::kBroken);
    return;
  }
  fail({.status = status, .outcome = Outcome::kBadRequest, .detail = detail});
}

void Exchange::on_upload_ready() {
  // Told as well when no more is taken.
  if (rest_.has_begun() && producer_of(subscription_.transfer()) == nullptr) {
    next_turn_.schedule();
    return;
  }
  upload_.restart(services_.loop.now());
  client_.want_content();
}

}  // namespace encore::server
