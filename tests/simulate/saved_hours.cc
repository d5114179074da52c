#include "tests/simulate/saved_hours.h"

namespace encore::simulate {

// A proxy finds what the one before it has saved, an older state, nothing, or what nobody saved.
void SavedHours::start(Random& random, Host& host) {
  const std::uint64_t kind = random.below(100);
  if (saved_.empty() || kind < 20) return published_.start(nullptr);
  const auto& [bytes, hours] = kind < 40 ? saved_.front() : saved_.back();
  if (kind >= 85) {
    std::string damaged = bytes;
    damaged[random.below(damaged.size())] ^= static_cast<char>(1 << random.below(8));
    if (random.percent(30)) damaged.resize(random.below(damaged.size()));
    if (host.restore_hours(damaged))
      world_.report("published", "damaged hours are taken", nullptr, "");
    world_.count("published: damaged hours");
    return published_.start(nullptr);
  }
  if (!host.restore_hours(bytes)) {
    return world_.report("published", "saved hours are refused", nullptr, "");
  }
  world_.count("published: hours restored");
  published_.start(&hours);
}

void SavedHours::save(Host& host) {
  constexpr std::size_t kSaved = 3;
  saved_.emplace_back(host.save_hours(), published_.hours());
  if (saved_.size() > kSaved) saved_.erase(saved_.begin());
}

}  // namespace encore::simulate
