#include "proxy/observe/heavy_hitters.h"

#include <algorithm>

namespace encore::server {
namespace {

// Out of line: each request adds names that are known, mostly.
[[gnu::noinline]] void add_unknown(std::vector<HeavyHitters::Item>& items, std::string_view name,
                                   std::uint64_t weight, std::uint64_t error) {
  if (items.size() < HeavyHitters::kNames) {
    items.push_back({std::string(name), weight, error});
    return;
  }
  // The lightest makes room, and leaves its weight behind as what may be wrong.
  HeavyHitters::Item& lightest = *std::ranges::min_element(items, {}, &HeavyHitters::Item::weight);
  lightest.name.assign(name);
  lightest.error = lightest.weight + error;
  lightest.weight += weight;
}

}  // namespace

void HeavyHitters::add(std::string_view name, std::uint64_t weight) {
  if (weight != 0) add(name.substr(0, kNameBytesMax), weight, 0);
}

void HeavyHitters::add(std::string_view name, std::uint64_t weight, std::uint64_t error) {
  const auto known = std::ranges::find(items_, name, &Item::name);
  if (known == items_.end()) return add_unknown(items_, name, weight, error);
  known->weight += weight;
  known->error += error;
}

void HeavyHitters::merge(const HeavyHitters& other) {
  for (const Item& item : other.items_) add(item.name, item.weight, item.error);
}

std::uint64_t HeavyHitters::weight_at_least(std::string_view name) const {
  const auto known = std::ranges::find(items_, name.substr(0, kNameBytesMax), &Item::name);
  return known == items_.end() ? 0 : known->weight - known->error;
}

std::vector<HeavyHitters::Item> HeavyHitters::top(std::size_t count) const {
  std::vector<Item> sorted = items_;
  std::ranges::stable_sort(sorted, std::ranges::greater(), &Item::weight);
  if (sorted.size() > count) sorted.resize(count);
  return sorted;
}

}  // namespace encore::server
