#include "sim/replay/occupancy.h"

#include <algorithm>

namespace encore::sim {
namespace {

// The part of the child's time, and whether it is all of it.
struct Part {
  Moments moments;
  bool whole;
};
Part part_of(std::size_t child, std::size_t width, const Moments& during) {
  const Moments part{std::max(during.from, child * width),
                     std::min(during.to, (child + 1) * width)};
  return {part, part.to - part.from == width};
}

}  // namespace

Occupancy::Occupancy(std::size_t moments) {
  std::size_t width = 1;
  std::size_t nodes = std::max<std::size_t>(moments, 1);
  levels_.push_back({.moments_a_node = 1, .largest = {}, .added = {}});
  levels_.back().largest.resize(nodes);
  while (nodes > 1) {
    width *= kChildren;
    nodes = (nodes + kChildren - 1) / kChildren;
    levels_.push_back({.moments_a_node = width, .largest = {}, .added = {}});
    levels_.back().largest.resize(nodes);
    levels_.back().added.resize(nodes);
  }
}

bool Occupancy::is_below(std::size_t level, std::size_t node, const Moments& during,
                         std::uint64_t bytes_max) const {
  const Level& here = levels_[level];
  if (here.largest[node] <= bytes_max) {
    return true;
  }
  if (level == 0 || here.added[node] > bytes_max) {
    return false;
  }
  const Level& below = levels_[level - 1];
  const std::size_t width = below.moments_a_node;
  const std::uint64_t left = bytes_max - here.added[node];
  // The inner children are asked first: one look each, where the outer ones may take many.
  const std::size_t first = during.from / width;
  const std::size_t last = (during.to - 1) / width;
  for (std::size_t child = first + 1; child < last; ++child) {
    if (below.largest[child] > left) {
      return false;
    }
  }
  for (const std::size_t child : {first, last}) {
    const Part part = part_of(child, width, during);
    if (part.whole ? below.largest[child] > left
                   : !is_below(level - 1, child, part.moments, left)) {
      return false;
    }
  }
  return true;
}

void Occupancy::add(std::size_t level, std::size_t node, const Moments& during,
                    std::uint64_t bytes) {
  Level& here = levels_[level];
  if (level == 0) {
    here.largest[node] += bytes;
    return;
  }
  Level& below = levels_[level - 1];
  const std::size_t width = below.moments_a_node;
  std::uint64_t most = 0;  // maximum of counts that only grow
  for (std::size_t child = during.from / width; child * width < during.to; ++child) {
    const Part part = part_of(child, width, during);
    if (!part.whole) {
      add(level - 1, child, part.moments, bytes);
    } else {
      below.largest[child] += bytes;
      if (level > 1) {
        below.added[child] += bytes;
      }
    }
    most = std::max(most, below.largest[child]);
  }
  here.largest[node] = std::max(here.largest[node], most + here.added[node]);
}

}  // namespace encore::sim
