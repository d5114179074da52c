// DescriptorWatch: calls back on a loop's thread while a descriptor is readable. Confined to that
// thread.
#pragma once

#include <functional>

#include "proxy/net/event.h"
#include "proxy/net/loop.h"

namespace encore::net {

class DescriptorWatch {
 public:
  // The descriptor is borrowed, and stays open as long as this lives. The callback must not destroy
  // this object.
  DescriptorWatch(Loop& loop, int descriptor, std::move_only_function<void()> on_readable);
  DescriptorWatch(const DescriptorWatch&) = delete;
  DescriptorWatch& operator=(const DescriptorWatch&) = delete;
  // Does not call back any more.
  void stop() { event_.remove(); }

 private:
  static void on_event(int descriptor, short what, void* context);
  std::move_only_function<void()> on_readable_;
  Event event_;
};

}  // namespace encore::net
