// LoadWait: the wait of an exchange for a record on disk. Confined to its worker.
#pragma once

#include "base/time.h"
#include "proxy/exchange/disk_loads.h"
#include "proxy/request/request_context.h"
#include "proxy/request/request_view.h"

namespace encore::server {

class LoadWait {
 public:
  // All are borrowed and outlive it. `reader` is notified when the record is read.
  LoadWait(DiskLoads& loads, LoadReader& reader, const RequestContext& request)
      : loads_(loads), reader_(reader), request_(request) {}
  LoadWait(const LoadWait&) = delete;
  LoadWait& operator=(const LoadWait&) = delete;
  ~LoadWait() { leave(); }

  // REQUIRES: found.disk, borrowed until the wait ends.
  void begin(const CacheView& found, MonotonicTime now) {
    found_ = &found;
    began_ = now;
    loads_.wait(reader_, request_, found);
  }
  // The reader was notified.
  void end() { found_ = nullptr; }
  void leave() {
    if (found_ != nullptr) loads_.leave(reader_, request_, *found_);
    found_ = nullptr;
  }
  // A disk that has not answered by then is slower than most origins.
  bool has_timed_out(MonotonicTime now) const {
    constexpr Nanoseconds kPatience = std::chrono::seconds(1);
    return found_ != nullptr && now - began_ >= kPatience;
  }

 private:
  DiskLoads& loads_;
  LoadReader& reader_;
  const RequestContext& request_;
  const CacheView* found_ = nullptr;  // null: it does not wait
  MonotonicTime began_{};
};

}  // namespace encore::server
