// CertificateWatch: checks the files of the listeners' certificates at an interval. Warns, when
// they are taken over and each day after that, of certificates that are to be renewed, and of
// self-signed ones in the place of missing files. Confined to one thread.
#pragma once

#include <memory>
#include <vector>

#include "base/time.h"
#include "proxy/settings/runtime.h"

namespace encore::server {

class CertificateWatch {
 public:
  // Those of a runtime that is taken over.
  void begin(const Runtime& runtime, MonotonicTime now);
  // To be called now and then. `tls` are the present listeners of the runtime. Returns those that
  // take their place; null: they stay. Reads files that have changed.
  std::shared_ptr<const TlsListeners> tick(const Runtime& runtime, const TlsListeners& tls,
                                           MonotonicTime now);

 private:
  void warn(const Runtime& runtime, const TlsListeners& tls, MonotonicTime now);

  static constexpr Nanoseconds kDay = std::chrono::hours(24);
  MonotonicTime warned_{};
  std::vector<MonotonicTime> checked_;  // the files of each listener
};

}  // namespace encore::server
