// The hours of changes that proxies save one after the other, and what of them each of them finds:
// the latest, an older state, nothing, or damaged bytes. One thread.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tests/simulate/host.h"
#include "tests/simulate/published.h"

namespace encore::simulate {

class SavedHours {
 public:
  // Both are borrowed.
  SavedHours(proxyfuzz::World& world, PublishedOracle& published)
      : world_(world), published_(published) {}

  void start(Random& random, Host& host);
  void save(Host& host);

 private:
  proxyfuzz::World& world_;
  PublishedOracle& published_;
  // The oldest first: what is in the files, and what should be.
  std::vector<std::pair<std::string, HoursModel>> saved_;
};

}  // namespace encore::simulate
