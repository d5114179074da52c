#include "proxy/server/transfer.h"

#include <algorithm>
#include <utility>

#include "proxy/server/fetch.h"
#include "proxy/server/worker.h"

namespace encore::server {

Transfer::Transfer(Worker& fetcher, filter::Hash128 hash, std::shared_ptr<const std::string> key)
    : fetcher_(fetcher), hash_(hash), key_(std::move(key)) {}

Transfer::~Transfer() = default;

void Transfer::add_reader(TransferReader& reader) {
  reader.registration_ = ++registrations_;
  reader.opened_.store(false, std::memory_order_relaxed);
  reader.wake_pending_ = false;
  reader.position_.store(0);
  reader.blame_ = {};
  reader.blamed_at_ = {};
  reader.over_share_.store(false, std::memory_order_relaxed);
  reader.cut_.store(false, std::memory_order_relaxed);
  reader.previous_ = last_;
  reader.next_ = nullptr;
  (last_ != nullptr ? last_->next_ : readers_) = &reader;
  last_ = &reader;
}

void Transfer::remove_reader(TransferReader& reader) {
  if (std::exchange(reader.registration_, 0) == 0) return;
  (reader.previous_ != nullptr ? reader.previous_->next_ : readers_) = reader.next_;
  (reader.next_ != nullptr ? reader.next_->previous_ : last_) = reader.previous_;
}

void Transfer::add_first_reader(TransferReader& reader) {
  const MutexLock lock(mutex_);
  first_ = &reader;
  add_reader(reader);
}

JoinOutcome Transfer::join(TransferReader& reader, const http::VariantKeys& own,
                           std::string& names) {
  const MutexLock lock(mutex_);
  if (!joinable_) return JoinOutcome::kNo;
  const bool has_head = phase() != TransferPhase::kWaiting;
  if (has_head || expected_) {
    const std::string& of = has_head ? response_->names : expected_->names;
    if (!of.empty()) {
      names = of;
      const std::string* key = own.find(of);
      if (key == nullptr) return JoinOutcome::kUnknownKey;
      if (*key != (has_head ? response_->variant_key : expected_->key)) return JoinOutcome::kNo;
    }
  }
  add_reader(reader);
  if (has_head) return JoinOutcome::kBehindHead;
  joined_.fetch_add(1, std::memory_order_acq_rel);
  return JoinOutcome::kBeforeHead;
}

void Transfer::mark_opened(TransferReader& reader) {
  reader.opened_.store(true, std::memory_order_release);
}

bool Transfer::all_opened() const {
  const MutexLock lock(mutex_);
  for (const TransferReader* reader = readers_; reader != nullptr; reader = reader->next_) {
    if (!reader->opened_.load(std::memory_order_acquire)) return false;
  }
  return true;
}

void Transfer::leave(TransferReader& reader) {
  {
    const MutexLock lock(mutex_);
    remove_reader(reader);
    if (first_ == &reader) first_ = nullptr;
  }
  tell_readers_changed();
}

void Transfer::tell_readers_changed() {
  if (Worker::current() == &fetcher_) {
    if (fetch_ != nullptr) fetch_->on_readers_changed();
    return;
  }
  fetcher_.loop().post([self = shared_from_this()] {
    if (self->fetch_ != nullptr) self->fetch_->on_readers_changed();
  });
}

void Transfer::advance(TransferReader& reader, std::uint64_t position) {
  reader.position_.store(position);
  if (!origin_paused_.load()) return;
  if (Worker::current() == &fetcher_) {
    if (fetch_ != nullptr) fetch_->on_reader_advanced();
    return;
  }
  fetcher_.loop().post([self = shared_from_this()] {
    if (self->fetch_ != nullptr) self->fetch_->on_reader_advanced();
  });
}

void Transfer::want_store() {
  store_wanted_.store(true, std::memory_order_release);
  tell_readers_changed();
}

std::uint32_t Transfer::close_joining() {
  const MutexLock lock(mutex_);
  joinable_ = false;
  return joined_.load(std::memory_order_acquire);
}

void Transfer::publish_response(std::shared_ptr<const SharedResponse> response, store::BodyRef body,
                                bool joinable) {
  Woken woken;
  {
    const MutexLock lock(mutex_);
    response_ = std::move(response);
    body_ = std::move(body);
    joinable_ = joinable;
    phase_.store(TransferPhase::kSharing, std::memory_order_release);
    woken = wake_elsewhere();
  }
  wake_here(woken);
}

void Transfer::publish_phase(TransferPhase phase) {
  {
    const MutexLock lock(mutex_);
    joinable_ = false;
    phase_.store(phase, std::memory_order_release);
  }
  wake_readers();
}

void Transfer::publish_validated(Validated validated) {
  validated_ = std::move(validated);
  publish_phase(TransferPhase::kValidated);
}

Fetch* Transfer::fetch_here() const { return Worker::current() == &fetcher_ ? fetch_ : nullptr; }

void Transfer::publish_failure(TransferFailure failure) {
  failure_ = std::move(failure);
  publish_phase(TransferPhase::kFailed);
}

// The one who asked is always on the fetching worker; null once it has left.
TransferReader* Transfer::first_reader() const {
  const MutexLock lock(mutex_);
  return first_;
}

void Transfer::publish_interim(std::string_view head) {
  if (TransferReader* first = first_reader()) first->on_interim(head);
}

void Transfer::publish_upload_ready() {
  if (TransferReader* first = first_reader()) first->on_upload_ready();
}

void Transfer::stop_joining() {
  const MutexLock lock(mutex_);
  joinable_ = false;
}

bool Transfer::close_if_unread() {
  const MutexLock lock(mutex_);
  if (readers_ != nullptr) return false;
  joinable_ = false;
  return true;
}

bool Transfer::has_readers() const {
  const MutexLock lock(mutex_);
  return readers_ != nullptr;
}

std::uint64_t Transfer::slowest_position(std::uint64_t written) const {
  const MutexLock lock(mutex_);
  std::uint64_t slowest = written;
  for (const TransferReader* reader = readers_; reader != nullptr; reader = reader->next_) {
    if (!reader->is_cut()) slowest = std::min(slowest, reader->position_.load());
  }
  return slowest;
}

bool Transfer::is_over_share() const {
  const MutexLock lock(mutex_);
  return readers_ != nullptr && readers_ == last_ &&
         readers_->over_share_.load(std::memory_order_relaxed);
}

bool Transfer::blame_slowest(const HoldBack& hold_back) {
  // A client that rests for a moment is no slow one.
  constexpr Nanoseconds kBlameMax = std::chrono::seconds(2);
  const MutexLock lock(mutex_);
  TransferReader* slowest = nullptr;
  std::uint64_t slowest_position = hold_back.written;
  bool others_wait = false;
  for (TransferReader* reader = readers_; reader != nullptr; reader = reader->next_) {
    if (reader->is_cut() || !reader->opened_.load(std::memory_order_acquire)) continue;
    const std::uint64_t position = reader->position_.load();
    others_wait = others_wait || position >= hold_back.written;
    if (position >= slowest_position) continue;
    slowest = reader;
    slowest_position = position;
  }
  if (slowest == nullptr || !others_wait) return false;
  const Nanoseconds running = hold_back.now - slowest->blamed_at_ - hold_back.elapsed;
  slowest->blamed_at_ = hold_back.now;
  slowest->blame_ = std::max(slowest->blame_ - running, Nanoseconds::zero()) + hold_back.elapsed;
  if (slowest->blame_ < kBlameMax) return false;
  slowest->cut_.store(true, std::memory_order_release);
  return true;
}

bool Transfer::is_registered(const Registration& registration) const {
  const TransferReader* at = readers_;
  while (at != nullptr && at != registration.reader) at = at->next_;
  return at != nullptr && at->registration_ == registration.number;
}

Transfer::Woken Transfer::wake_elsewhere() {
  Woken woken;
  for (TransferReader* reader = readers_; reader != nullptr; reader = reader->next_) {
    if (&reader->worker_ == &fetcher_) {
      if (woken.first == nullptr) {
        woken.first = reader;
      } else {
        woken.others.push_back({reader, reader->registration_});
      }
      continue;
    }
    if (reader->wake_pending_) continue;
    reader->wake_pending_ = true;
    const Registration registration{reader, reader->registration_};
    reader->worker_.loop().post([self = shared_from_this(), registration] {
      {
        const MutexLock inner(self->mutex_);
        if (!self->is_registered(registration)) return;
        registration.reader->wake_pending_ = false;
      }
      registration.reader->on_transfer();
    });
  }
  return woken;
}

void Transfer::wake_here(const Woken& woken) {
  if (woken.first == nullptr) return;
  // A callback may end this transfer's last reference.
  const std::shared_ptr<Transfer> keep = woken.others.empty() ? nullptr : shared_from_this();
  woken.first->on_transfer();
  for (const Registration& registration : woken.others) {
    {
      // One called before may have removed this one.
      const MutexLock lock(mutex_);
      if (!is_registered(registration)) continue;
    }
    registration.reader->on_transfer();
  }
}

void Transfer::wake_readers() {
  Woken woken;
  {
    const MutexLock lock(mutex_);
    woken = wake_elsewhere();
  }
  wake_here(woken);
}

}  // namespace encore::server
