// The driver's removals, and objects that it calls stale.
#include "tests/cache/disk_driver.h"

namespace encore::cache::test {

// Purges the keys whose number leaves a rest, as those of a prefix or tag.
class Driver::Purge final : public Visitor {
 public:
  Purge(const DiskModel& model, std::uint64_t rest) : model_(model) {
    for (std::uint64_t id = 0; id < kKeys; ++id) {
      numbers_[key(id).hash.lo] = id;
    }
    rest_ = rest;
  }
  Verdict visit(const EntryView& entry) override { return verdict(numbers_.at(entry.key.lo)); }
  Verdict visit_disk(const DiskView& view) override {
    ++asked;
    for (const auto& [name, entry] : model_.on_disk) {
      if (entry.place == view.place) {
        asked_wrongly += is_part(name) || name.second != view.variant ? 1U : 0U;
        return verdict(name.first);
      }
    }
    ++asked_wrongly;
    return Verdict::kKeep;
  }
  std::uint64_t asked = 0;
  std::uint64_t asked_wrongly = 0;

 private:
  Verdict verdict(std::uint64_t id) const {
    return id % Platter::kRuleModulus == rest_ ? Verdict::kRemove : Verdict::kKeep;
  }
  const DiskModel& model_;
  std::map<std::uint64_t, std::uint64_t> numbers_;
  std::uint64_t rest_ = 0;
};

bool Driver::invalidate(std::uint64_t id) {
  std::set<Named> gone;
  for (std::uint32_t variant = 0; variant < kVariants; ++variant) {
    const Named name{id, variant};
    if (model_.holds(name) || model_.on_disk.contains(name)) {
      gone.insert(name);
    }
    forget(name);
  }
  DiskTombstone tombstone;
  const bool same = kernel_->invalidate(key(id), now_, &tombstone) == gone.size();
  platter_.add_tombstone(id, std::nullopt, tombstone);
  return same;
}

bool Driver::remove(const Named& name) {
  const bool there = model_.holds(name) || model_.on_disk.contains(name);
  forget(name);
  DiskTombstone tombstone;
  const bool same = kernel_->remove(key(name.first), name.second, now_, &tombstone) == there;
  platter_.add_tombstone(name.first, name.second, tombstone);
  return same;
}

void Driver::forget(const Named& name) {
  std::erase_if(model_.fifo_of(name.first), [&](const auto& e) { return e.name == name; });
  if (model_.on_disk.contains(name)) {
    model_.drop_on_disk(name);
    ++counts_.invalidations;
  }
  truth_.erase(name);
}

bool Driver::mark_stale(std::uint64_t id) {
  std::uint32_t there = 0;
  for (std::uint32_t variant = 0; variant < kVariants; ++variant) {
    const Named name{id, variant};
    const bool in_memory = model_.holds(name);
    const auto on_disk = model_.on_disk.find(name);
    there += in_memory || on_disk != model_.on_disk.end() ? 1U : 0U;
    if (in_memory) {
      Stored& stored = model_.find(name)->stored;
      if (stored.fresh_until > now_) {
        // The time beyond it is kept in whole seconds, rounded up.
        const auto beyond = std::chrono::ceil<std::chrono::seconds>(stored.keep_until - now_);
        stored.fresh_until = now_;
        stored.keep_until = now_ + beyond;
      }
    }
    if (on_disk != model_.on_disk.end() && on_disk->second.fresh_until > whole_seconds(now_)) {
      make_stale(on_disk->second);
    }
  }
  DiskTombstone tombstone;
  const bool same = kernel_->mark_stale(key(id), now_, &tombstone) == there;
  platter_.add_tombstone(id, std::nullopt, tombstone);
  return same;
}

bool Driver::purge_some() {
  const std::uint64_t rest = random_() % Platter::kRuleModulus;
  std::uint64_t on_disk = 0;
  std::set<Named> gone;
  for (std::uint64_t id = 0; id < kKeys; ++id) {
    for (std::uint32_t variant = 0; variant < kVariants; ++variant) {
      const Named name{id, variant};
      on_disk += model_.on_disk.contains(name) ? 1U : 0U;
      if (id % Platter::kRuleModulus == rest) {
        gone.insert(name);
      }
    }
  }
  platter_.rule(kernel_->purge_rule(now_), rest);
  Purge purge(model_, rest);
  Kernel::Cursor cursor;
  while (kernel_->for_each(cursor, 100, purge, now_)) {
  }
  for (const Named& name : gone) {
    seen.purged += model_.holds(name) || model_.on_disk.contains(name) ? 1U : 0U;
    forget(name);
  }
  return purge.asked == on_disk && purge.asked_wrongly == 0;
}

bool Driver::lose() {
  if (model_.on_disk.empty()) {
    return true;
  }
  auto entry = model_.on_disk.begin();
  std::advance(entry, static_cast<std::ptrdiff_t>(random_() % model_.on_disk.size()));
  const auto [name, record] = *entry;
  model_.drop_on_disk(name);
  count_loss(name, DiskLoss::kUnreadable);
  const DiskTombstone tombstone = kernel_->lost(key_of(name.first), record.place, now_);
  platter_.add_tombstone(name.first, name.second, tombstone);
  return static_cast<bool>(tombstone) != is_part(name) &&
         !kernel_->lost(key_of(name.first), record.place, now_);
}

}  // namespace encore::cache::test
