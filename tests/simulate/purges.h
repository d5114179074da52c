// Purges: what an operator purges in a simulation: by URL, prefix, host, tag and all, hard and
// soft, and what the world knows of it. Counts by each what the purge met in which tier. One
// thread.
#pragma once

#include <string>

#include "tests/fuzz/proxy/client.h"
#include "tests/simulate/host.h"
#include "tests/simulate/published.h"
#include "tests/simulate/purged.h"
#include "tests/simulate/state_coverage.h"

namespace encore::simulate {

class Purges {
 public:
  // The ways in which a round lets it purge. Published filters know of single URLs alone, and rules
  // make other keys of URLs than they begin with.
  struct Kinds {
    bool tags = true;
    bool prefixes = true;
  };
  // All are borrowed. `published` is null where nothing is.
  Purges(proxyfuzz::Ring& ring, StateCoverage& roads, PublishedOracle* published,
         const Kinds& kinds)
      : ring_(ring),
        coverage_(roads),
        published_(published),
        kinds_(kinds),
        alone_(ring.world.seed(), 'h', 1),
        purged_(ring.world) {}

  void purge_something(Random& random, Host& host);
  // At times one whose record has been read, and whose bytes nobody has yet, or one whose record is
  // placed on a disk and not written yet, or moved.
  void purge_under_way(SlowDisk::Done what, Random& random, Host& host);
  // One for a client to write to, at times one that a disk alone has; null: any.
  proxyfuzz::Url* pick_to_write(Random& random, Host& host) {
    return host.has_disk() && random.percent(60) ? &pick(random, host) : nullptr;
  }
  // Clients come back to one that a disk alone has, where a few looks find it.
  void come_back_to_disk(Random& random, Host& host) {
    if (host.has_disk()) ring_.world.come_back_to(pick(random, host));
  }
  // A client has written to it.
  void note_written(const proxyfuzz::Url& url, double time, Host& host);
  // Objects that were purged, and are not stored until they are asked for again.
  Purged& purged() { return purged_; }

 private:
  proxyfuzz::Url& pick(Random& random, Host& host);
  void purge_read(Random& random, Host& host);
  enum class Unwritten : std::uint8_t { kAny, kMoved };
  void purge_unwritten(Unwritten which, Random& random, Host& host);
  // By any of the ways that there are; `kind` says which, of 100.
  void purge_any(proxyfuzz::Url& url, Random& random, Host& host) {
    purge_as(url, random.below(100), random, host);
  }
  void purge_as(proxyfuzz::Url& url, std::uint64_t kind, Random& random, Host& host);
  void purge_url(proxyfuzz::Url& url, Random& random, Host& host);
  void purge_others(Host& host);
  // So that the next proxy may be the first who has to know.
  void leave_alone(const proxyfuzz::Url& url, const Host& host);
  // As an operator names what begins so.
  std::string named(std::string_view text, Random& random) const;
  void count(const char* by, bool soft, const proxyfuzz::Url& url, Host& host);

  proxyfuzz::Ring& ring_;
  StateCoverage& coverage_;
  PublishedOracle* published_;
  Kinds kinds_;
  Random alone_;
  Purged purged_;
};

}  // namespace encore::simulate
