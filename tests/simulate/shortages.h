// Shortages: things of which a proxy has none for a while. One thread.
#pragma once

#include "tests/fuzz/proxy/world.h"
#include "tests/simulate/ring_loop.h"
#include "tests/simulate/slow_disk.h"
#include "tests/simulate/system.h"

namespace encore::simulate {

class Shortages {
 public:
  // All borrowed. The world receives the system's troubles and breaks.
  Shortages(System& system, proxyfuzz::World& world, RingLoop& loop);

  // As many descriptors as there are now, or a few less, for some tens of milliseconds.
  void of_descriptors(Random& random);
  // No room in the store.
  void of_store(Random& random);
  // The device fails, for a while or for as long as its proxy is there.
  void of_disk(Random& random, SlowDisk& disk);

 private:
  System& system_;
  proxyfuzz::World& world_;
  RingLoop& loop_;
};

}  // namespace encore::simulate
