#include "proxy/exchange/response_content.h"

#include <utility>

#include "base/check.h"

namespace encore::server {

bool ResponseContent::open_disk(const filter::Hash128& key, const ResponseSource& source,
                                const ResponsePlan& plan, std::function<void()> on_more) {
  DiskBody::Wanted wanted{
      .key = key, .body = *source.on_disk, .begin = 0, .end = source.on_disk->length};
  if (plan.content == ResponsePlan::Content::kParts) {
    wanted.begin = plan.parts.front().range.begin;
    wanted.end = plan.parts.back().range.end;
  } else if (plan.content != ResponsePlan::Content::kWhole && coding_.body() == nullptr) {
    return true;
  }
  disk_ = loads_.open(wanted, std::move(on_more));
  if (disk_ == nullptr) return false;
  const bool opened = coding_.body() != nullptr ? coding_.set_content(disk_->body())
                                                : reader_.set_body(disk_->body(), wanted.begin);
  ENCORE_CHECK(opened, "a body is kept until its reader has opened it");
  disk_->body()->stop_retaining();
  return true;
}

bool ResponseContent::go_on_from_disk(const DiskBody::Wanted& wanted,
                                      std::function<void()> on_more) {
  disk_ = loads_.open(wanted, std::move(on_more));
  if (disk_ == nullptr) return false;
  source().let_go();
  const bool opened = source().go_on_in(disk_->body(), 0);
  ENCORE_CHECK(opened, "a body is kept until its reader has opened it");
  disk_->body()->stop_retaining();
  return true;
}

void ResponseContent::add_own(std::string content) {
  own_bytes_ += content.size();
  reader_.add_text(std::move(content));
}

void ResponseContent::give(const ResponseSource& source, ResponsePlan& plan, Transfer* transfer) {
  switch (plan.content) {
    case ResponsePlan::Content::kNone:
    case ResponsePlan::Content::kLater:
    case ResponsePlan::Content::kUnread:
      return;
    case ResponsePlan::Content::kWhole:
      give_range(source, {0, *source.length}, transfer);
      return;
    case ResponsePlan::Content::kRest:
      if (coding_.body() != nullptr) {
        coding_.open(reader_);
        if (transfer != nullptr) transfer->mark_opened(transfer_reader_);
        return;
      }
      open(source, 0, transfer);
      reader_.add_rest();
      return;
    case ResponsePlan::Content::kParts:
      for (ResponsePlan::Part& part : plan.parts) {
        add_own(std::move(part.text));
        give_range(source, part.range, transfer);
      }
      add_own(std::move(plan.end));
      return;
  }
}

void ResponseContent::give_range(const ResponseSource& source, const http::ByteRange& range,
                                 Transfer* transfer) {
  if (!source.body && !source.on_disk) {
    add_own(std::string(source.inline_body.substr(range.begin, range.end - range.begin)));
    return;
  }
  if (!reader_.has_body()) {
    // A complete body is entered at the range; one that grows is read from its beginning.
    const bool complete = source.body->state() == store::BodyState::kComplete;
    open(source, complete ? range.begin : 0, transfer);
  }
  reader_.add_range(range.begin, range.end);
}

// From here on the transfer may let go what this reader has passed.
void ResponseContent::open(const ResponseSource& source, std::uint64_t start, Transfer* transfer) {
  const bool opened = reader_.set_body(source.body, start);
  ENCORE_CHECK(opened, "a body is kept until its readers have opened it");
  if (transfer != nullptr) transfer->mark_opened(transfer_reader_);
}

}  // namespace encore::server
