#include "proxy/exchange/coded_body.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <span>
#include <utility>

#include "base/check.h"

namespace encore::server {
namespace {

using InputAction = coding::Encoder::InputAction;

// A piece behind which so long nothing follows is worth a flush, which costs some bytes.
constexpr Nanoseconds kFlushAfter = std::chrono::milliseconds(5);
// If there is no memory now: so often it is tried again, so far apart.
constexpr std::uint32_t kAttemptsMax = 500;
constexpr Nanoseconds kAttemptInterval = std::chrono::milliseconds(20);
constexpr std::size_t kRoomBytes = 16 * 1024;

}  // namespace

CodedBody::CodedBody(net::Loop& loop, CodingTurn& turn, Made made, std::function<void()> on_more)
    : turn_(turn), made_(std::move(made)), on_more_(std::move(on_more)), later_(loop, [this] {
        is_due_ = true;
        on_more_();
      }) {}

void CodedBody::produce(std::uint64_t position) {
  wants_turn_ = false;
  if (made_.body->state() != store::BodyState::kGrowing) return;
  std::size_t budget = turn_.share();
  while (made_.body->state() == store::BodyState::kGrowing) {
    const bool is_full = !keeps_all() && made_.body->size() >= position + kWindowBytes;
    if (is_full || budget == 0) {
      wants_turn_ = true;
      return;
    }
    if (!code(budget)) return;
  }
}

// The next piece of the content. False: there is no more now, or no memory.
bool CodedBody::code(std::size_t& budget) {
  if (is_flushing_ && !flush()) return false;
  std::array<iovec, 2> parts;
  const BodyReader::Peeked peeked = source_.peek(parts, budget);
  std::size_t used = 0;
  switch (peeked.state) {
    case BodyReader::State::kReady: {
      // The content goes on: a flush now would cost bytes for nothing.
      later_.cancel();
      is_due_ = false;
      unflushed_ = true;
      const auto* const bytes = static_cast<const std::byte*>(parts[0].iov_base);
      const bool going_on = encode({bytes, parts[0].iov_len}, InputAction::kMore, used);
      source_.advance(used);
      ENCORE_CHECK(used <= budget, "no body codes more than its share of a turn");
      budget -= used;
      return going_on;
    }
    case BodyReader::State::kWaiting:
      wait();
      return false;
    case BodyReader::State::kEnd:
      later_.cancel();
      if (encode({}, InputAction::kEnd, used)) made_.body->complete();
      return false;
    case BodyReader::State::kBroken:
      break;
  }
  later_.cancel();
  made_.body->abort();
  return false;
}

void CodedBody::wait() {
  if (!unflushed_) return;
  if (!is_due_ && made_.flush == Flush::kSoon) {
    if (!later_.is_running()) later_.start(kFlushAfter);
    return;
  }
  (void)flush();
}

// Once begun it ends before anything else is given.
bool CodedBody::flush() {
  std::size_t used = 0;
  is_flushing_ = !encode({}, InputAction::kFlush, used);
  if (!is_flushing_) unflushed_ = is_due_ = false;
  return !is_flushing_;
}

// False where not all of it is done: it goes on when there is memory, or never.
bool CodedBody::encode(std::span<const std::byte> in, InputAction then, std::size_t& used) {
  while (true) {
    const std::span<std::byte> room = made_.body->writable(kRoomBytes);
    if (room.empty()) {
      retry();
      return false;
    }
    vain_ = 0;
    const auto step = made_.encoder->encode(in.subspan(used), room, then);
    ENCORE_CHECK(step.used <= in.size() - used && step.made <= room.size(),
                 "an encoder stays within what it is given");
    used += step.used;
    if (step.made != 0) made_.body->append(step.made);
    if (step.is_broken) {
      made_.body->abort();
      return false;
    }
    if (step.is_done) return true;
  }
}

void CodedBody::retry() {
  if (++vain_ <= kAttemptsMax) {
    later_.start(kAttemptInterval);
    return;
  }
  ran_out_ = true;
  made_.body->abort();
}

}  // namespace encore::server
