#include "proxy/process/worker_listeners.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace encore::server {

namespace {

// Returns the seat that has the clients of listener `id`: its own, or that of the listener that has
// its address now; null: none any more.
const WorkerListener* find_seat(std::uint64_t id, const std::vector<WorkerListener>& seats) {
  const auto own = std::ranges::find(seats, id, &WorkerListener::id);
  if (own != seats.end()) return &*own;
  const auto heir = std::ranges::find_if(seats, [id](const WorkerListener& each) {
    return std::ranges::count(each.succeeds, id) != 0;
  });
  return heir == seats.end() ? nullptr : &*heir;
}

void take_seat(const WorkerListener* seat, ListenerContext& context) {
  context.closed = seat == nullptr;
  if (seat == nullptr) return;
  context.mode = seat->mode;
  context.index = seat->index;
  context.name = seat->name;
  context.tls = seat->tls;
  context.counts = seat->counts;
}

}  // namespace

void WorkerListeners::set(std::vector<WorkerListener> seats) {
  for (Left& left : left_) {
    if (left.context->closed) continue;
    const WorkerListener* const seat = find_seat(left.id, seats);
    take_seat(seat, *left.context);
    if (seat != nullptr) left.id = seat->id;
  }
  for (Open& open : open_) {
    const WorkerListener* const seat = find_seat(open.id, seats);
    take_seat(seat, *open.context);
    if (seat != nullptr && seat->id == open.id) continue;
    for (const auto& listener : open.listeners) listener->stop_behind_waiting();
    left_.push_back({.id = seat == nullptr ? 0 : seat->id, .context = std::move(open.context)});
  }
  std::erase_if(open_, [](const Open& open) { return open.context == nullptr; });
  for (WorkerListener& seat : seats) {
    if (seat.is_new) open(std::move(seat));
  }
}

void WorkerListeners::set_tls(const TlsListeners& tls) {
  for (const Open& open : open_) open.context->tls = tls.of(open.context->index);
  for (const Left& left : left_) {
    if (!left.context->closed) left.context->tls = tls.of(left.context->index);
  }
}

void WorkerListeners::open(WorkerListener seat) {
  auto context =
      std::make_unique<ListenerContext>(ListenerContext{.mode = seat.mode,
                                                        .index = seat.index,
                                                        .name = std::move(seat.name),
                                                        .tls = seat.tls,
                                                        .counts = std::move(seat.counts)});
  open_.push_back({.id = seat.id, .context = std::move(context), .listeners = {}});
  for (net::Socket& socket : seat.sockets) listen(open_.back(), std::move(socket));
}

void WorkerListeners::listen(Open& open, net::Socket socket) {
  open.listeners.push_back(net::Listener::take(
      loop_, std::move(socket),
      [this, &lasting = *open.context](net::Socket accepted, const net::Address& peer) {
        on_accept_(std::move(accepted), peer, lasting);
      },
      [this](int os_error) { on_overload_(os_error); }));
}

void WorkerListeners::add(std::uint64_t id, net::Socket socket) {
  const auto found = std::ranges::find(open_, id, &Open::id);
  if (found != open_.end()) listen(*found, std::move(socket));
}

std::vector<WorkerListeners::Duplicate> WorkerListeners::duplicates() const {
  std::vector<Duplicate> duplicates;
  for (const Open& open : open_) {
    for (const auto& listener : open.listeners) {
      duplicates.push_back({.id = open.id, .socket = listener->duplicate()});
    }
  }
  return duplicates;
}

void WorkerListeners::stop() {
  for (Open& open : open_) {
    for (const auto& listener : open.listeners) listener->stop();
  }
}

void WorkerListeners::stop_behind_waiting() {
  for (Open& open : open_) {
    for (const auto& listener : open.listeners) listener->stop_behind_waiting();
  }
}

void WorkerListeners::forget_unused(const ClientConnection* connections) {
  if (left_.empty()) return;
  std::erase_if(left_, [connections](const Left& left) {
    for (const ClientConnection* each = connections; each != nullptr; each = each->next) {
      if (each->let_in_by == left.context.get()) return false;
    }
    return true;
  });
}

}  // namespace encore::server
