#include "proxy/net/linger.h"

#include <event2/event.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

#include "proxy/net/syscalls.h"
#include "proxy/net/tls_session.h"

namespace encore::net {
namespace {

// As long as a peer with a slow line may need to see our end and stop; nginx waits 5 s.
constexpr Nanoseconds kLingerTime = std::chrono::seconds(2);
// As long as a slow one may need to take what lies before our end.
constexpr Nanoseconds kUnsentTime = std::chrono::seconds(60);
constexpr std::size_t kDropBytesMax = 256 * 1024;
constexpr std::size_t kEntriesMax = 1024;

}  // namespace

struct Lingering::Entry {
  Lingering* owner = nullptr;
  std::list<Entry>::iterator self;
  Socket socket;
  TlsSessionPointer tls;  // while it holds something unsent
  MonotonicTime deadline;
  std::size_t drop_bytes_left = kDropBytesMax;
  Event event;
};

Lingering::Lingering(Loop& loop) : loop_(loop), sweep_(loop, [this] { sweep(); }) {}

Lingering::~Lingering() = default;

Lingering& Lingering::of(Loop& loop) {
  auto& part = loop.lingering();
  if (part == nullptr) part = std::make_unique<Lingering>(loop);
  return static_cast<Lingering&>(*part);
}

void Lingering::take(Socket socket, TlsSessionPointer tls, Event* watched) {
  if (entries_.size() >= kEntriesMax) {
    // Unsent bytes are worth more than a connection that only waits for its peer.
    const auto sent =
        std::ranges::find_if(entries_, [](const Entry& each) { return each.tls == nullptr; });
    remove(sent == entries_.end() ? entries_.front() : *sent);
  }
  Entry& entry = entries_.emplace_back();
  entry.owner = this;
  entry.self = std::prev(entries_.end());
  entry.socket = std::move(socket);
  entry.tls = std::move(tls);
  const bool ended = end_our_side(entry);
  entry.deadline = loop_.now() + (ended ? kLingerTime : kUnsentTime);
  entry.event.assign(loop_.base(), entry.socket.get(),
                     static_cast<short>((ended ? EV_READ : EV_WRITE) | EV_PERSIST),
                     &Lingering::on_event, &entry);
  const bool is_added = entry.event.add();
  if (watched != nullptr) watched->remove();
  if (!is_added) return remove(entry);
  if (!sweep_.is_running()) sweep_.start_periodic(std::chrono::seconds(1));
}

// False: something is unsent, which the socket does not take now.
bool Lingering::end_our_side(Entry& entry) {
  if (entry.tls != nullptr) {
    if (!entry.tls->has_unsent()) entry.tls->shutdown();
    if (entry.tls->has_unsent()) return false;
    entry.tls.reset();
  }
  ::shutdown(entry.socket.get(), SHUT_WR);
  return true;
}

void Lingering::on_event(int, short, void* context) {
  auto& entry = *static_cast<Entry*>(context);
  entry.owner->handle(entry);
}

void Lingering::handle(Entry& entry) {
  if (entry.tls != nullptr) {
    const TlsResult flushed = entry.tls->flush();
    if (flushed.status == TlsStatus::kWantWrite) return;
    if (flushed.status != TlsStatus::kOk) return remove(entry);
    if (!end_our_side(entry)) return;
    tell_if_sent();
    entry.deadline = loop_.now() + kLingerTime;
    entry.event.assign(loop_.base(), entry.socket.get(), EV_READ | EV_PERSIST, &Lingering::on_event,
                       &entry);
    if (!entry.event.add()) remove(entry);
    return;
  }
  const auto scratch = loop_.scratch();
  const ssize_t got = syscalls.recv(entry.socket.get(), scratch.data(), scratch.size(), 0);
  if (got < 0 && is_transient(errno)) return;
  const auto dropped = static_cast<std::size_t>(got > 0 ? got : 0);
  if (got <= 0 || dropped >= entry.drop_bytes_left) return remove(entry);
  entry.drop_bytes_left -= dropped;
}

void Lingering::remove(Entry& entry) {
  const bool is_unsent = entry.tls != nullptr;
  entries_.erase(entry.self);
  if (is_unsent) tell_if_sent();
}

bool Lingering::has_unsent() const {
  return std::ranges::any_of(entries_, [](const Entry& each) { return each.tls != nullptr; });
}

void Lingering::tell_if_sent() {
  if (on_sent_ && !has_unsent()) on_sent_();
}

void Lingering::sweep() {
  const MonotonicTime now = loop_.now();
  for (auto entry = entries_.begin(); entry != entries_.end();) {
    Entry& present = *entry++;
    if (present.deadline <= now) remove(present);
  }
  if (entries_.empty()) sweep_.cancel();
}

}  // namespace encore::net
