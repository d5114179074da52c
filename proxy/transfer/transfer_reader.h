// TransferReader: who reads a transfer. Confined to the thread of its home, which is where it is
// called.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "base/time.h"
#include "proxy/net/address.h"
#include "proxy/transfer/transfer_home.h"

namespace encore::server {

class TransferReader : private WakeTarget {
 public:
  enum class Question : std::uint8_t {
    kNone,
    kHowFar,  // how much its client has taken
    kLeave,   // the same; others wait, and if it takes nothing it is to leave
  };

  // REQUIRES: it has left its transfer.
  virtual ~TransferReader() {
    ENCORE_CHECK(!ticket_, "a reader leaves its transfer before it ends");
  }
  // Something has changed: the phase, or the body. May leave the transfer and be destroyed.
  virtual void on_transfer() = 0;
  // An interim response for the one who asked (status line and fields, with the empty line).
  virtual void on_interim(std::string_view head) = 0;
  // The producer takes more of the request's body, for the one who asked.
  virtual void on_upload_ready() {}

  // Sets the client that it reads for, borrowed until it has left. Null: unknown, or a trusted
  // proxy. REQUIRES: it reads no transfer.
  void set_client(const net::Address* client) { client_ = client; }
  // Its client holds more than its share of memory: nothing is read ahead for it.
  void set_over_share(bool over) { over_share_.store(over, std::memory_order_relaxed); }
  // Its client has not taken yet what was read for it: that lies in its connection. A reader that
  // waits for more of the body does not miss it before.
  void set_busy(bool busy) { busy_.store(busy, std::memory_order_relaxed); }
  bool is_busy() const { return busy_.load(std::memory_order_relaxed); }
  // It has held back the others for too long: it is to leave.
  bool is_cut() const { return cut_.load(std::memory_order_acquire); }
  // Whether the producer, paused for those that are behind, asks if its client takes anything. Each
  // question is answered once.
  Question take_question() {
    if (question_.load(std::memory_order_relaxed) == Question::kNone) return Question::kNone;
    return question_.exchange(Question::kNone, std::memory_order_acq_rel);
  }

 protected:
  // `home` is borrowed.
  explicit TransferReader(TransferHome& home) : home_(home) {}

 private:
  friend class Transfer;
  // This call sees all earlier changes, and later ones wake it again.
  void on_wake_up() override {
    wake_pending_.exchange(false, std::memory_order_acq_rel);
    on_transfer();
  }

  // The others have waited for it for `elapsed`, until `now`. Returns whether it is cut.
  bool take_blame(Nanoseconds elapsed, MonotonicTime now) {
    // A client that rests for a moment is no slow one.
    constexpr Nanoseconds kBlameMax = std::chrono::seconds(2);
    const Nanoseconds running = now - blamed_at_ - elapsed;
    blamed_at_ = now;
    blame_ = std::max(blame_ - running, Nanoseconds::zero()) + elapsed;
    if (blame_ < kBlameMax) return false;
    cut_.store(true, std::memory_order_release);
    return true;
  }

  TransferHome& home_;
  const net::Address* client_ = nullptr;
  // Ticket of the transfer that it reads, one for each time that it joins; empty: none. Its own
  // thread writes it.
  TransferHome::Ticket ticket_;
  // Guarded by the transfer; what is atomic is written by the reader without a lock.
  TransferReader* previous_ = nullptr;
  TransferReader* next_ = nullptr;
  std::atomic<bool> wake_pending_ = false;  // from another thread
  // How long it was lately what the others waited for.
  Nanoseconds blame_{};
  MonotonicTime blamed_at_{};
  std::atomic<bool> over_share_ = false;
  std::atomic<bool> cut_ = false;
  std::atomic<bool> busy_ = false;
  std::atomic<Question> question_ = Question::kNone;
  std::atomic<bool> opened_ = false;  // has its place in the body
  // Body bytes read, for back-pressure; kReadsNothing: it waits for the end alone.
  static constexpr std::uint64_t kReadsNothing = UINT64_MAX;
  std::atomic<std::uint64_t> position_ = 0;
};

}  // namespace encore::server
