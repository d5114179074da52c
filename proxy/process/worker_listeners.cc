#include "proxy/process/worker_listeners.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace encore::server {

void WorkerListeners::set(std::vector<ListenerSeat> seats) {
  for (Open& open : open_) {
    const auto seat =
        std::ranges::find(seats, open.id, [](const ListenerSeat& each) { return each.id; });
    if (seat != seats.end()) {
      open.context->mode = seat->mode;
      open.context->index = seat->index;
      continue;
    }
    open.listener->stop_behind_waiting();
    open.context->closed = true;
    closed_.push_back(std::move(open.context));
  }
  std::erase_if(open_, [](const Open& open) { return open.context == nullptr; });
  for (ListenerSeat& seat : seats) {
    if (seat.socket) open(std::move(seat));
  }
}

void WorkerListeners::open(ListenerSeat seat) {
  auto context = std::make_unique<ListenerContext>(ListenerContext{
      .mode = seat.mode, .index = seat.index, .name = std::move(seat.name), .closed = false});
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
  if (closed_.empty()) return;
  std::erase_if(closed_, [connections](const std::unique_ptr<ListenerContext>& context) {
    for (const ClientConnection* each = connections; each != nullptr; each = each->next) {
      if (each->let_in_by == context.get()) return false;
    }
    return true;
  });
}

}  // namespace encore::server
