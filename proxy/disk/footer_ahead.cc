#include "proxy/disk/footer_ahead.h"

#include <utility>

#include "base/check.h"

namespace encore::disk {

void FooterAhead::want(const SegmentHeader& header, std::vector<RecordLine> lines) {
  const MutexLock lock(mutex_);
  ENCORE_CHECK(state_ == State::kIdle, "one footer at a time is wanted");
  header_ = header;
  room_.lines = std::move(lines);
  state_ = State::kWanted;
}

void FooterAhead::read() {
  {
    const MutexLock lock(mutex_);
    if (state_ != State::kWanted) return;
    state_ = State::kReading;
  }
  footer_ = read_footer(file_, superblock_, header_, &room_);
  {
    const MutexLock lock(mutex_);
    state_ = State::kRead;
  }
  read_.notify_all();
}

std::optional<Footer> FooterAhead::take() {
  read();
  MutexLock lock(mutex_);
  ENCORE_CHECK(state_ != State::kIdle, "a footer that is taken is wanted");
  while (state_ != State::kRead) read_.wait(mutex_);
  state_ = State::kIdle;
  return std::exchange(footer_, std::nullopt);
}

void FooterAhead::release() {
  const MutexLock lock(mutex_);
  ENCORE_CHECK(state_ == State::kIdle, "memory that is freed is not read into");
  room_ = {};
}

}  // namespace encore::disk
