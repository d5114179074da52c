#include "sim/replay/trace_object.h"

#include <functional>
#include <string>

namespace encore::sim {
namespace {

// The count-th largest of the weights, or the smallest.
double threshold_of(std::vector<double>& weights, std::size_t count) {
  const std::size_t at = std::min(count, weights.size()) - 1;
  const auto nth = weights.begin() + static_cast<std::ptrdiff_t>(at);
  std::ranges::nth_element(weights, nth, std::greater<>());
  return *nth;
}

}  // namespace

Result<ObjectSize> parse_object_size(std::string_view name) {
  if (name == "largest") {
    return ObjectSize::kLargest;
  }
  if (name == "latest") {
    return ObjectSize::kLatest;
  }
  return fail("unknown object size \"" + std::string(name) + "\", accepted: largest, latest");
}

void ObjectTable::forget_except(const std::vector<bool>& keep) {
  for (std::size_t i = objects_.size(); i != 0; --i) {
    Object& object = objects_[i - 1];
    if (object.requests != 0 && !keep[i - 1]) {
      object = {};
      free_.push_back(static_cast<std::uint32_t>(i - 1));
    }
  }
  std::ranges::fill(slots_, 0U);
  fill_slots();
}

void ObjectTable::mark_heaviest(std::size_t count) {
  if (objects_.empty() || count == 0) {
    return;
  }
  const auto bytes_of = [](const Object& object) {
    return static_cast<double>(object.requests) * static_cast<double>(object.size_bytes);
  };
  std::vector<double> requests;
  std::vector<double> bytes;
  for (std::size_t i = 0; i < objects_.size(); ++i) {
    requests.push_back(objects_[i].requests);
    bytes.push_back(bytes_of(objects_[i]));
  }
  const double requests_from = threshold_of(requests, count);
  const double bytes_from = threshold_of(bytes, count);
  for (std::size_t i = 0; i < objects_.size(); ++i) {
    Object& object = objects_[i];
    object.heaviest = {.by_requests = object.requests >= requests_from,
                       .by_bytes = bytes_of(object) >= bytes_from};
  }
}

}  // namespace encore::sim
