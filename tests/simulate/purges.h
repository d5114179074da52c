// Purges: what an operator purges in a simulation: by URL, prefix, host, tag and all, hard and
// soft, and what the world knows of it. Counts by each what the purge met in which tier. One
// thread.
#pragma once

#include "tests/fuzz/proxy/client.h"
#include "tests/simulate/host.h"
#include "tests/simulate/published.h"
#include "tests/simulate/roads.h"

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
  Purges(proxyfuzz::Ring& ring, Roads& roads, PublishedOracle* published, const Kinds& kinds)
      : ring_(ring), roads_(roads), published_(published), kinds_(kinds) {}

  void purge_something(Random& random, Host& host);

 private:
  proxyfuzz::Url& pick(Random& random, Host& host);
  void purge_url(Random& random, Host& host);
  void purge_others(Host& host);
  void count(const char* by, bool soft, const proxyfuzz::Url& url, Host& host);

  proxyfuzz::Ring& ring_;
  Roads& roads_;
  PublishedOracle* published_;
  Kinds kinds_;
};

}  // namespace encore::simulate
