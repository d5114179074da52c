// The part of an exchange that goes on by itself where the readers of a shared transfer do not wait
// for it any longer (docs/decisions/0430).
#include <algorithm>
#include <utility>

#include "base/recycled.h"
#include "proxy/exchange/exchange.h"
#include "proxy/http/hop_by_hop.h"
#include "proxy/http/stored_head.h"

namespace encore::server {

// Nothing where the origin cannot be asked for just the bytes that are missing.
std::optional<http::Continuation> Exchange::ReaderDetachment::missing_rest() const {
  const RequestContext& request = *exchange_.request_;
  const SharedResponse& response = *exchange_.response_;
  // A whole is what ranges may be cut from: a 200, and none that is held to a digest at its end.
  if (request.head.method != http::Method::kGet || !response.whole ||
      !exchange_.upload_.is_done() || request.framing.kind != http::BodyKind::kNone ||
      request.asks_upgrade()) {
    return std::nullopt;
  }
  // The writer that fills the transfer writes trailers when that has ended.
  const bool may_send_trailers =
      exchange_.coding_.body() != nullptr || http::accepts_trailers(request.head);
  if (!response.length && may_send_trailers) return std::nullopt;
  http::ResponseHead head;
  http::read_stored_head(response.head, head);
  const BodyReader::Left left = exchange_.content_.source().left();
  return http::continue_response(head,
                                 {.range = {left.begin, left.end},
                                  .to_end = left.end == BodyReader::kOpenEnd,
                                  .length = response.length,
                                  .length_min = exchange_.subscription_.transfer()->body()->size()},
                                 http::to_unix(exchange_.services_.loop.wall_now()));
}

bool Exchange::ReaderDetachment::can_go_on() const {
  if (!exchange_.steps_.is_at(Step::kRespond) || exchange_.response_ == nullptr || is_alone()) {
    return false;
  }
  if (exchange_.content_.source().left().end == 0) return true;
  return is_in_parts() || missing_rest();
}

bool Exchange::ReaderDetachment::is_in_parts() const {
  return exchange_.subscription_.transfer()->parts() != 0 && exchange_.response_->length;
}

void Exchange::ReaderDetachment::leave() {
  if (!can_go_on()) {
    exchange_.cut();
    return;
  }
  // All that was left for it was read, and is on its way to the client.
  if (exchange_.content_.source().left().end == 0) {
    exchange_.subscription_.leave();
    return;
  }
  if (!read_disk() && !start_fetch()) {
    exchange_.cut();
    return;
  }
  exchange_.services_.stats.slow_readers_continued.add();
  exchange_.record_.detail = "continued";
}

// It stays with the transfer, as one that holds nobody back: without a reader the rest might not be
// written.
bool Exchange::ReaderDetachment::read_disk() {
  if (!is_in_parts()) return false;
  const std::shared_ptr<Transfer>& transfer = exchange_.subscription_.transfer();
  const std::uint64_t length = *exchange_.response_->length;
  const BodyReader::Left left = exchange_.content_.source().left();
  if (!exchange_.content_.go_on_from_disk(
          {.key = exchange_.request_->hash,
           .body = {.number = transfer->parts(), .length = length},
           .begin = left.begin,
           .end = std::min(left.end, length),
           .may_come = [transfer] { return transfer->may_parts_come(); }},
          [this] { exchange_.on_transfer(); })) {
    return false;
  }
  way_ = Way::kFromDisk;
  transfer->mark_waiting(exchange_);
  return true;
}

// By its own request, with its own credentials, once. The received body is not kept for it:
// the answer begins where the client is.
bool Exchange::ReaderDetachment::start_fetch() {
  auto rest = missing_rest();
  if (!rest) return false;
  exchange_.content_.source().let_go();
  exchange_.subscription_.leave();
  exchange_.content_.close_disk();
  asked_ = std::make_unique<http::Continuation>(std::move(*rest));
  way_ = Way::kAsksOrigin;
  const ExchangeServices& services = exchange_.services_;
  auto transfer = make_recycled<Transfer>(services.home, exchange_.request_->hash, nullptr,
                                          exchange_.subscription_.requester());
  exchange_.subscription_.go_on_with(transfer);
  const std::string range = asked_->range_value();
  services.origins.start_fetch(
      std::move(transfer),
      RequestContext::part_of(exchange_.request_,
                              {.range = range, .if_range = asked_->validator()}),
      {.what = OriginRequestForm::kAsItIs});
  return true;
}

// The rest, or something else.
void Exchange::ReaderDetachment::take_answer() {
  Transfer& transfer = *exchange_.subscription_.transfer();
  if (transfer.phase() == TransferPhase::kWaiting) return;
  if (transfer.phase() == TransferPhase::kSharing) {
    const SharedResponse& answer = transfer.response();
    http::ResponseHead head;
    http::read_stored_head(answer.head, head);
    if (http::continues(*asked_, head, answer.length)) {
      const bool opened =
          exchange_.content_.source().go_on_in(transfer.body(), asked_->range.begin);
      ENCORE_CHECK(opened, "a body is kept until its readers have opened it");
      transfer.mark_opened(exchange_);
      way_ = Way::kFromOrigin;
      exchange_.pump();
      return;
    }
  }
  exchange_.cut();
}

}  // namespace encore::server
