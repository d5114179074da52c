#include "tests/simulate/shortages.h"

#include <algorithm>
#include <cstdint>

#include "tests/fuzz/proxy/loop.h"
#include "tests/simulate/refusing_store.h"
#include "tests/simulate/timing.h"

namespace encore::simulate {

Shortages::Shortages(System& system, proxyfuzz::World& world, RingLoop& loop)
    : system_(system), world_(world), loop_(loop) {
  system_.on_trouble = [this](System::NetworkFault trouble) {
    const double lasts = trouble == System::NetworkFault::kLong ? kLongTrouble : kShortTrouble;
    world_.last_trouble = std::max(world_.last_trouble, proxyfuzz::now() + lasts);
  };
  system_.on_break = [this] { world_.last_break = proxyfuzz::now(); };
}

void Shortages::of_descriptors(Random& random) {
  system_.on_trouble(System::NetworkFault::kShort);
  world_.count("shortages of descriptors");
  system_.set_descriptors_max(system_.descriptors() + random.below(4));
  loop_.after(0.001 * static_cast<double>(random.between(1, 80)), [this] {
    system_.on_trouble(System::NetworkFault::kShort);
    system_.set_descriptors_max(SIZE_MAX);
  });
}

void Shortages::of_store(Random& random) {
  world_.count("times without room in the store");
  StoreConduct::refuses = true;
  loop_.after(0.001 * static_cast<double>(random.between(1, 40)),
              [] { StoreConduct::refuses = false; });
}

void Shortages::of_disk(Random& random, SlowDisk& disk) {
  const double seconds = random.pick({0.01, 0.3, 5.0});
  // An answer that comes from the disk alone ends with it.
  world_.last_trouble = std::max(world_.last_trouble, proxyfuzz::now() + seconds + kLongTrouble);
  disk.set_failing({.reads = random.percent(70), .writes = random.percent(70)});
  world_.count("failures of a disk");
  loop_.after(seconds, [&disk] { disk.set_failing({}); });
}

}  // namespace encore::simulate
