#include "proxy/net/signals.h"

#include <event2/event.h>

#include "proxy/net/loop.h"

namespace encore::net {

Signals::Signals(Loop& loop, std::initializer_list<int> signals, OnSignal on_signal)
    : on_signal_(std::move(on_signal)) {
  for (const int signal : signals) {
    auto& event = events_.emplace_back(std::make_unique<Event>());
    event->assign(loop.base(), signal, EV_SIGNAL | EV_PERSIST, &Signals::on_event, this);
    event->add();
  }
}

Signals::~Signals() = default;

void Signals::on_event(int signal, short, void* context) {
  static_cast<Signals*>(context)->on_signal_(signal);
}

}  // namespace encore::net
