// CertificateWatch: warns of certificates of listeners that are to be renewed, when they are taken
// over and each day after that. Confined to one thread.
#pragma once

#include "base/time.h"
#include "proxy/settings/runtime.h"

namespace encore::server {

class CertificateWatch {
 public:
  // Those of a runtime that is taken over.
  void begin(const Runtime& runtime, MonotonicTime now);
  // To be called now and then.
  void tick(const Runtime& runtime, MonotonicTime now) {
    if (now - looked_ >= kDay) begin(runtime, now);
  }

 private:
  static constexpr Nanoseconds kDay = std::chrono::hours(24);
  MonotonicTime looked_{};
};

}  // namespace encore::server
