#include "proxy/net/deferred_deleter.h"

#include <utility>

#include "base/check.h"

namespace encore::net {

DeferredDeleter::DeferredDeleter(Loop& loop, Loop::Function on_emptied)
    : on_emptied_(std::move(on_emptied)), drop_(loop, [this] { drop(); }) {}

void DeferredDeleter::add(std::unique_ptr<DeferredDeletable> object) {
  ENCORE_CHECK(object != nullptr, "what is retired was alive");
  objects_.push_back(std::move(object));
  drop_.schedule();
}

void DeferredDeleter::drop() {
  ENCORE_CHECK(dying_.empty(), "what dies ends nobody's turn");
  while (!objects_.empty()) {
    // Dying objects may retire others.
    dying_.swap(objects_);
    for (auto& object : dying_) object.reset();
    dying_.clear();
  }
  drop_.cancel();
  on_emptied_();
}

}  // namespace encore::net
