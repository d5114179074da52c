#include "proxy/process/worker_listeners.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace encore::server {

namespace {

// Returns the seat that has the clients of listener `id`: its own, or that of the listener that has
// its address now; null: none any more.
const ListenerSeat* find_seat(std::uint64_t id, const std::vector<ListenerSeat>& seats) {
  const auto own = std::ranges::find(seats, id, &ListenerSeat::id);
  if (own != seats.end()) return &*own;
  const auto heir = std::ranges::find_if(
      seats, [id](const ListenerSeat& each) { return std::ranges::count(each.succeeds, id) != 0; });
  return heir == seats.end() ? nullptr : &*heir;
}

void take_seat(const ListenerSeat* seat, ListenerContext& context) {
  context.closed = seat == nullptr;
  if (seat == nullptr) return;
  context.mode = seat->mode;
  context.index = seat->index;
  context.name = seat->name;
  context.tls = seat->tls;
  context.counts = seat->counts;
}

}  // namespace

void WorkerListeners::set(std::vector<ListenerSeat> seats) {
  for (Left& left : left_) {
    if (left.context->closed) continue;
    const ListenerSeat* const seat = find_seat(left.id, seats);
    take_seat(seat, *left.context);
    if (seat != nullptr) left.id = seat->id;
  }
  for (Open& open : open_) {
    const ListenerSeat* const seat = find_seat(open.id, seats);
    take_seat(seat, *open.context);
    if (seat != nullptr && seat->id == open.id) continue;
    open.listener->stop_behind_waiting();
    left_.push_back({.id = seat == nullptr ? 0 : seat->id, .context = std::move(open.context)});
  }
  std::erase_if(open_, [](const Open& open) { return open.context == nullptr; });
  for (ListenerSeat& seat : seats) {
    if (seat.socket) open(std::move(seat));
  }
}

void WorkerListeners::open(ListenerSeat seat) {
  auto context =
      std::make_unique<ListenerContext>(ListenerContext{.mode = seat.mode,
                                                        .index = seat.index,
                                                        .name = std::move(seat.name),
                                                        .tls = seat.tls,
                                                        .counts = std::move(seat.counts)});
  const ListenerContext& lasting = *context;
  auto listener = net::Listener::take(
      loop_, std::move(seat.socket),
      [this, &lasting](net::Socket socket, const net::Address& peer) {
        on_accept_(std::move(socket), peer, lasting);
      },
      [this](int os_error) { on_overload_(os_error); });
  open_.push_back({.id = seat.id, .context = std::move(context), .listener = std::move(listener)});
}

void WorkerListeners::stop() {
  for (Open& open : open_) open.listener->stop();
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
