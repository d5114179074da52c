#include "proxy/transfer/transfer.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace encore::server {

// Its home's thread alone makes it kHome, and is then the only one that asks.
Transfer::Lock::Lock(const Transfer& transfer)
    : held_(transfer.access_.load(std::memory_order_relaxed) == Access::kHome ? nullptr
                                                                              : &transfer.mutex_) {
  if (held_ != nullptr) held_->lock();
}

Transfer::Lock::~Lock() {
  if (held_ != nullptr) held_->unlock();
}

Transfer::Transfer(TransferHome& home, filter::Hash128 hash, std::shared_ptr<const std::string> key,
                   const Requester& requester)
    : home_(home), hash_(hash), key_(std::move(key)), requester_(requester) {}

Transfer::~Transfer() {
  ENCORE_CHECK(producer_ == nullptr, "a producer takes leave of its transfer");
  ENCORE_CHECK(readers_ == nullptr, "who reads a transfer holds it");
}

void Transfer::set_producer(Producer* producer) {
  ENCORE_CHECK(producer == nullptr || producer_ == nullptr, "a transfer has one producer");
  producer_ = producer;
}

void Transfer::set_listed() {
  ENCORE_CHECK(key_ != nullptr, "what others may find has a key");
  ENCORE_CHECK(!is_listed(), "a transfer enters the table once");
  const Lock lock(*this);
  access_.store(Access::kListed, std::memory_order_relaxed);
}

// New readers do not find it any more. If no other thread reads it either, that stays so.
void Transfer::set_unlisted() {
  ENCORE_CHECK(is_listed(), "what leaves the table stood in it");
  const MutexLock lock(mutex_);
  access_.store(elsewhere_ == 0 ? Access::kHome : Access::kShared, std::memory_order_relaxed);
}

void Transfer::add_reader(TransferReader& reader) {
  ENCORE_CHECK(!reader.ticket_, "a reader reads one transfer at a time");
  reader.ticket_ = reader.home_.enter(reader);
  if (&reader.home_ != &home_) ++elsewhere_;
  reader.opened_.store(false, std::memory_order_relaxed);
  reader.wake_pending_.store(false, std::memory_order_relaxed);
  reader.position_.store(0);
  reader.blame_ = {};
  reader.blamed_at_ = {};
  reader.over_share_.store(false, std::memory_order_relaxed);
  reader.cut_.store(false, std::memory_order_relaxed);
  reader.busy_.store(false, std::memory_order_relaxed);
  reader.question_.store(TransferReader::Question::kNone, std::memory_order_relaxed);
  reader.previous_ = last_;
  reader.next_ = nullptr;
  (last_ != nullptr ? last_->next_ : readers_) = &reader;
  last_ = &reader;
}

void Transfer::remove_reader(TransferReader& reader) {
  if (!reader.ticket_) return;
  reader.home_.leave(std::exchange(reader.ticket_, {}));
  if (&reader.home_ != &home_) --elsewhere_;
  (reader.previous_ != nullptr ? reader.previous_->next_ : readers_) = reader.next_;
  (reader.next_ != nullptr ? reader.next_->previous_ : last_) = reader.previous_;
}

void Transfer::add_first_reader(TransferReader& reader) {
  ENCORE_CHECK(&reader.home_ == &home_, "who starts a transfer reads it at home");
  const Lock lock(*this);
  ENCORE_CHECK(first_ == nullptr, "one reader is the first");
  first_ = &reader;
  add_reader(reader);
}

JoinOutcome Transfer::join(TransferReader& reader, const http::VariantKeys& own, JoinScope scope,
                           std::string& names) {
  ENCORE_CHECK(access_.load(std::memory_order_relaxed) != Access::kHome || home_.is_here(),
               "what is not in the table is found by nobody elsewhere");
  const Lock lock(*this);
  if (joinable_ == Joinable::kNo) return JoinOutcome::kNo;
  if (scope == JoinScope::kBeingStored && joinable_ != Joinable::kUntilStored) {
    return JoinOutcome::kNo;
  }
  // Before its head a transfer brings the variant that is expected of it: nobody waits for another
  // one (docs/decisions/0053).
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
  if (joinable_ == Joinable::kUntilStored) {
    // It waits for the end and reads nothing, so that it holds nobody back.
    reader.position_.store(TransferReader::kReadsNothing);
    reader.opened_.store(true, std::memory_order_release);
    return JoinOutcome::kUntilStored;
  }
  // Admission has been asked by now: it would not hear of this request any more.
  if (has_head || is_counted_) return JoinOutcome::kBehindHead;
  joined_.fetch_add(1, std::memory_order_acq_rel);
  return JoinOutcome::kBeforeHead;
}

void Transfer::mark_opened(TransferReader& reader) {
  reader.opened_.store(true, std::memory_order_release);
}

void Transfer::mark_waiting(TransferReader& reader) {
  advance(reader, TransferReader::kReadsNothing);
  mark_opened(reader);
}

void Transfer::give_up_head() {
  const Lock lock(*this);
  if (phase() == TransferPhase::kWaiting) joinable_ = Joinable::kNo;
}

bool Transfer::all_opened() const {
  const Lock lock(*this);
  for (const TransferReader* reader = readers_; reader != nullptr; reader = reader->next_) {
    if (!reader->opened_.load(std::memory_order_acquire)) return false;
  }
  return true;
}

void Transfer::leave(TransferReader& reader) {
  {
    const Lock lock(*this);
    remove_reader(reader);
    if (first_ == &reader) first_ = nullptr;
  }
  tell(&Producer::on_readers_changed);
}

void Transfer::tell(void (Producer::*what)()) {
  if (home_.is_here()) {
    if (producer_ != nullptr) (producer_->*what)();
    return;
  }
  home_.post([self = shared_from_this(), what] {
    if (self->producer_ != nullptr) (self->producer_->*what)();
  });
}

void Transfer::advance(TransferReader& reader, std::uint64_t position) {
  reader.position_.store(position);
  // The position first, then the flag. The producer sets the flag first and then reads positions,
  // so that one of both sees the other.
  if (producer_paused_.load()) tell(&Producer::on_reader_advanced);
}

void Transfer::want_store() {
  store_wanted_.store(true, std::memory_order_release);
  tell(&Producer::on_readers_changed);
}

std::uint32_t Transfer::count_joined() {
  const Lock lock(*this);
  is_counted_ = true;
  return joined_.load(std::memory_order_acquire);
}

void Transfer::publish_response(std::shared_ptr<const SharedResponse> response, store::BodyRef body,
                                Joinable joinable) {
  Woken woken;
  {
    const Lock lock(*this);
    response_ = std::move(response);
    body_ = std::move(body);
    joinable_ = joinable;
    awaitable_.store(joinable == Joinable::kUntilStored, std::memory_order_release);
    // Last: a reader that sees the phase reads head and body without the lock.
    phase_.store(TransferPhase::kSharing, std::memory_order_release);
    woken = wake_elsewhere();
  }
  wake_here(woken);
}

void Transfer::publish_phase(TransferPhase phase) {
  {
    const Lock lock(*this);
    joinable_ = Joinable::kNo;
    phase_.store(phase, std::memory_order_release);
  }
  wake_readers();
}

void Transfer::publish_validated(Validated validated) {
  validated_ = std::move(validated);
  publish_phase(TransferPhase::kValidated);
}

Producer* Transfer::producer_here() const { return home_.is_here() ? producer_ : nullptr; }

void Transfer::publish_failure(TransferFailure failure) {
  failure_ = std::move(failure);
  publish_phase(TransferPhase::kFailed);
}

void Transfer::publish_switched(SwitchedConnection switched) {
  switched_ = std::move(switched);
  publish_phase(TransferPhase::kSwitched);
}

// The one who asked is always at home; null once it has left.
TransferReader* Transfer::first_reader() const {
  const Lock lock(*this);
  return first_;
}

void Transfer::publish_interim(std::string_view head) {
  if (TransferReader* first = first_reader()) first->on_interim(head);
}

void Transfer::publish_upload_ready() {
  if (TransferReader* first = first_reader()) first->on_upload_ready();
}

void Transfer::stop_joining() {
  const Lock lock(*this);
  joinable_ = Joinable::kNo;
  awaitable_.store(false, std::memory_order_release);
}

bool Transfer::close_if_unread() {
  const Lock lock(*this);
  if (readers_ != nullptr) return false;
  joinable_ = Joinable::kNo;
  return true;
}

bool Transfer::has_readers() const {
  const Lock lock(*this);
  return readers_ != nullptr;
}

std::uint64_t Transfer::slowest_position(std::uint64_t written) const {
  const Lock lock(*this);
  std::uint64_t slowest = written;
  for (const TransferReader* reader = readers_; reader != nullptr; reader = reader->next_) {
    if (!reader->is_cut()) slowest = std::min(slowest, reader->position_.load());
  }
  return slowest;
}

bool Transfer::is_over_share() const {
  const Lock lock(*this);
  const TransferReader* only = nullptr;  // the only reader
  for (const TransferReader* reader = readers_; reader != nullptr; reader = reader->next_) {
    if (reader->position_.load() == TransferReader::kReadsNothing) continue;
    if (only != nullptr) return false;
    only = reader;
  }
  return only != nullptr && only->over_share_.load(std::memory_order_relaxed);
}

bool Transfer::blame_slowest(const HoldBack& hold_back) {
  const Lock lock(*this);
  const auto position_of = [](const TransferReader& reader) {
    const bool counts = !reader.is_cut() && reader.opened_.load(std::memory_order_acquire);
    return counts ? reader.position_.load() : TransferReader::kReadsNothing;
  };
  TransferReader* slowest = nullptr;
  std::uint64_t slowest_position = hold_back.written;
  bool others_wait = false;
  for (TransferReader* reader = readers_; reader != nullptr; reader = reader->next_) {
    const std::uint64_t position = position_of(*reader);
    if (position == TransferReader::kReadsNothing) continue;
    others_wait = others_wait || (position >= hold_back.written && !reader->is_busy());
    if (position >= slowest_position) continue;
    slowest = reader;
    slowest_position = position;
  }
  if (slowest == nullptr || !others_wait) return false;
  bool is_one_cut = slowest->take_blame(hold_back.elapsed, hold_back.now);
  if (slowest->client_ == nullptr) return is_one_cut;
  // Several readers of one client could otherwise hold back the others one after another.
  const auto network = slowest->client_->network_bytes();
  const std::uint64_t far_behind = (hold_back.written - slowest_position) / 2;
  for (TransferReader* reader = readers_; reader != nullptr; reader = reader->next_) {
    const std::uint64_t position = position_of(*reader);
    if (reader == slowest || reader->client_ == nullptr || position >= hold_back.written ||
        hold_back.written - position < far_behind || reader->client_->network_bytes() != network) {
      continue;
    }
    if (reader->take_blame(hold_back.elapsed, hold_back.now)) is_one_cut = true;
  }
  return is_one_cut;
}

bool Transfer::is_read_by_several() const {
  const Lock lock(*this);
  return readers_ != last_;
}

Transfer::Others Transfer::probe_blocking_readers(std::uint64_t written, ReaderProbe asking) {
  using Question = TransferReader::Question;
  const Lock lock(*this);
  Others others = Others::kBehind;
  for (const TransferReader* reader = readers_; reader != nullptr; reader = reader->next_) {
    const std::uint64_t position = reader->position_.load();
    if (position < written || position == TransferReader::kReadsNothing) continue;
    others = std::max(others, reader->is_busy() ? Others::kBusy : Others::kWait);
  }
  if (others == Others::kBehind || asking == ReaderProbe::kNobody) return others;
  for (TransferReader* reader = readers_; reader != nullptr; reader = reader->next_) {
    const std::uint64_t position = reader->position_.load();
    if (position == TransferReader::kReadsNothing || reader->is_cut()) continue;
    const bool is_to_leave = position < written && asking == ReaderProbe::kVerdict;
    reader->question_.store(is_to_leave ? Question::kLeave : Question::kHowFar,
                            std::memory_order_release);
    if (!reader->wake_pending_.exchange(true, std::memory_order_acq_rel)) {
      reader->home_.wake(reader->ticket_);
    }
  }
  return others;
}

Transfer::Woken Transfer::wake_elsewhere() {
  Woken woken;
  for (TransferReader* reader = readers_; reader != nullptr; reader = reader->next_) {
    if (&reader->home_ != &home_) {
      // One wake-up for all that happens until the reader looks.
      if (!reader->wake_pending_.exchange(true, std::memory_order_acq_rel)) {
        reader->home_.wake(reader->ticket_);
      }
    } else if (woken.first == nullptr) {
      woken.first = reader;
    } else {
      woken.others.push_back(reader->ticket_);
    }
  }
  return woken;
}

void Transfer::wake_here(const Woken& woken) {
  if (woken.first == nullptr) return;
  // A callback may end this transfer's last reference.
  TransferHome& home = home_;
  woken.first->on_transfer();
  for (const TransferHome::Ticket ticket : woken.others) {
    // One called before may have made this one leave.
    if (WakeTarget* target = home.find(ticket)) target->on_wake_up();
  }
}

void Transfer::wake_readers() {
  Woken woken;
  {
    const Lock lock(*this);
    woken = wake_elsewhere();
  }
  wake_here(woken);
}

}  // namespace encore::server
