// A policy of one's own, replayed by encore-sim's libraries: prints requests and hits.
#include <cstdio>

#include "sim/replay/own_policy.h"

using encore::cache::EntryRef;
using encore::sim::ReplayRequest;

struct Fifo {
  explicit Fifo(encore::cache::EntrySlab& entries) : slab(entries) {}
  void insert(EntryRef ref, const ReplayRequest& /*request*/) { list.push_newest(slab, ref); }
  void hit(EntryRef /*ref*/, const ReplayRequest& /*request*/) {}
  void remove(EntryRef ref, encore::cache::Removal /*why*/) { list.unlink(slab, ref); }
  EntryRef victim() { return list.oldest(); }

  encore::cache::EntrySlab& slab;
  encore::cache::EntryList list;
};

int main(int argc, char** argv) {
  const auto counts = encore::sim::replay_files(
      {argv + 1, argv + argc}, {.own = encore::sim::own_policy<Fifo>(), .cache_bytes = 1 << 20});
  if (!counts) {
    std::fprintf(stderr, "%s\n", counts.error().message.c_str());
    return 2;
  }
  std::printf("%llu requests, %llu hits\n", static_cast<unsigned long long>(counts->requests),
              static_cast<unsigned long long>(counts->hits));
}
