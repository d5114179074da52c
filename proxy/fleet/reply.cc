#include "proxy/fleet/reply.h"

#include <hiredis/hiredis.h>

#include <array>
#include <utility>

namespace encore::fleet {
namespace {

ReplyReader::Budget& budget_of(const redisReadTask* task) {
  return *static_cast<ReplyReader::Budget*>(task->privdata);
}

// The place of the reply that a task reads: in its parent, or at the root.
Reply* place(const redisReadTask* task) {
  if (task->parent == nullptr) {
    auto& root = budget_of(task).root;
    root = std::make_unique<Reply>();
    return root.get();
  }
  auto& items = static_cast<Reply*>(task->parent->obj)->items;
  const auto index = static_cast<std::size_t>(task->idx);
  return index < items.size() ? &items[index] : nullptr;
}

void* make_text(const redisReadTask* task, char* text, std::size_t bytes) {
  Reply* const reply = place(task);
  if (reply == nullptr) return nullptr;
  reply->kind = task->type == REDIS_REPLY_ERROR    ? Reply::Kind::kError
                : task->type == REDIS_REPLY_STATUS ? Reply::Kind::kStatus
                                                   : Reply::Kind::kText;
  reply->text.assign(text, bytes);
  return reply;
}

void* make_array(const redisReadTask* task, int elements) {
  ReplyReader::Budget& budget = budget_of(task);
  const auto count = static_cast<std::size_t>(elements);
  if (elements < 0 || count > ReplyReader::kItemsMax - budget.items) {
    budget.is_exceeded = true;
    return nullptr;
  }
  Reply* const reply = place(task);
  if (reply == nullptr) return nullptr;
  budget.items += count;
  reply->kind = Reply::Kind::kArray;
  reply->items.resize(count);
  return reply;
}

void* make_integer(const redisReadTask* task, long long value) {
  Reply* const reply = place(task);
  if (reply == nullptr) return nullptr;
  reply->kind = Reply::Kind::kInteger;
  reply->integer = value;
  return reply;
}

void* make_nil(const redisReadTask* task) { return place(task); }

// The budget has it.
void free_root(void* /*reply*/) {}

redisReplyObjectFunctions& functions() {
  static redisReplyObjectFunctions all = {make_text, make_array, make_integer, make_nil, free_root};
  return all;
}

}  // namespace

std::string readable(std::string_view text) {
  constexpr std::size_t kBytesMax = 160;
  std::string out;
  for (const char c : text.substr(0, kBytesMax)) out += c >= ' ' && c <= '~' ? c : '?';
  return out;
}

void ReplyReader::Free::operator()(redisReader* reader) const { redisReaderFree(reader); }

ReplyReader::ReplyReader() : reader_(redisReaderCreateWithFunctions(&functions())) {
  if (reader_ != nullptr) reader_->privdata = &budget_;
}

Result<void> ReplyReader::feed(std::string_view bytes) {
  if (reader_ == nullptr) return fail("no memory for replies");
  bytes_ += bytes.size();
  if (bytes_ > kReplyBytesMax) {
    budget_.is_exceeded = true;
    return fail("a reply of more than " + std::to_string(kReplyBytesMax) + " bytes");
  }
  if (redisReaderFeed(reader_.get(), bytes.data(), bytes.size()) == REDIS_OK) return {};
  return fail(readable(static_cast<const char*>(reader_->errstr)));
}

Result<std::optional<Reply>> ReplyReader::next() {
  if (reader_ == nullptr) return fail("no memory for replies");
  void* found = nullptr;
  if (redisReaderGetReply(reader_.get(), &found) != REDIS_OK) {
    if (budget_.is_exceeded) return fail("a reply with too many parts");
    return fail("not a reply of Redis: " + readable(static_cast<const char*>(reader_->errstr)));
  }
  if (found == nullptr) return std::optional<Reply>();
  const std::unique_ptr<Reply> reply = std::move(budget_.root);
  budget_.items = 0;
  bytes_ = reader_->len - reader_->pos;
  return std::optional<Reply>(std::move(*reply));
}

Reply ReplyReader::take_front() {
  const std::unique_ptr<Reply> front = std::move(budget_.root);
  return front == nullptr ? Reply() : std::move(*front);
}

}  // namespace encore::fleet
