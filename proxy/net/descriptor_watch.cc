#include "proxy/net/descriptor_watch.h"

#include <event2/event.h>

#include <utility>

namespace encore::net {

DescriptorWatch::DescriptorWatch(Loop& loop, int descriptor,
                                 std::move_only_function<void()> on_readable)
    : on_readable_(std::move(on_readable)) {
  event_.assign(loop.base(), descriptor, EV_READ | EV_PERSIST, &DescriptorWatch::on_event, this);
  event_.add();
}

void DescriptorWatch::on_event(int, short, void* context) {
  static_cast<DescriptorWatch*>(context)->on_readable_();
}

}  // namespace encore::net
