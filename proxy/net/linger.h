// Lingering: closed connections of a loop that the kernel would reset if they were closed
// immediately, because the peer is still sending, or that have unsent bytes. For net/, and for code
// that ends a loop. Confined to its loop's thread.
//
// Each is read and dropped until the peer has closed, has sent too much, or time is up.
#pragma once

#include <functional>
#include <list>
#include <memory>
#include <utility>

#include "base/time.h"
#include "proxy/net/event.h"
#include "proxy/net/loop.h"
#include "proxy/net/socket.h"
#include "proxy/net/timer.h"
#include "proxy/net/tls.h"

namespace encore::net {

class Lingering final : public LoopPart {
 public:
  // The one of this loop, which owns it.
  static Lingering& of(Loop& loop);
  explicit Lingering(Loop& loop);
  Lingering(const Lingering&) = delete;
  Lingering& operator=(const Lingering&) = delete;
  ~Lingering() override;

  // Takes the connection over: sends what `tls` (or null) holds unsent, ends our side, lingers.
  // If too many linger already, closes the oldest that has sent all, else the oldest. `watched`, or
  // null: by which the loop waits for what it sends until now. It is removed when there is another,
  // so that the kernel sees no change.
  void take(Socket socket, TlsSessionPointer tls, Event* watched = nullptr);
  // True if any of them holds what its socket has not taken yet: it goes lost with the loop.
  bool has_unsent() const;
  // Called each time that one does no more and none else does.
  void set_on_sent(std::function<void()> call) { on_sent_ = std::move(call); }

 private:
  struct Entry;
  static void on_event(int descriptor, short what, void* context);
  bool end_our_side(Entry& entry);
  void handle(Entry& entry);
  void remove(Entry& entry);
  void tell_if_sent();
  void sweep();

  Loop& loop_;
  Timer sweep_;
  std::list<Entry> entries_;  // oldest first
  std::function<void()> on_sent_;
};

}  // namespace encore::net
