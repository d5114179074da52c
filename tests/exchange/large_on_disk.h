// A real disk with bodies in parts.
#pragma once

#include <algorithm>
#include <cstdint>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "cache/disk_parts.h"
#include "tests/exchange/on_disk.h"

namespace encore::server {

inline constexpr filter::Hash128 kKey{11, 12};

inline std::string random_bytes(std::mt19937_64& random, std::size_t bytes) {
  std::string text(bytes, '\0');
  for (std::size_t i = 0; i + 8 <= bytes; i += 8) {
    const std::uint64_t word = random();
    std::copy_n(reinterpret_cast<const char*>(&word), 8, text.begin() + static_cast<long>(i));
  }
  return text;
}

// A fault of a disk: a record says that it is of another body, part or length.
struct OtherRecord {
  std::uint64_t body_more = 0;
  std::uint32_t number_more = 0;
  std::uint64_t bytes_less = 0;
};

struct LargeOnDisk : OnDisk {
  LargeOnDisk() : OnDisk(16U << 20U) {}

  // Puts the parts of a body on disk, but for those left out.
  LargeBody put_body(const std::string& text, std::uint64_t leave_out = UINT64_MAX) {
    auto made = store->make_body({.length = text.size()});
    REQUIRE(made.has_value());
    store::Body& body = **made;
    REQUIRE(body.append(std::as_bytes(std::span(text))) == text.size());
    body.complete();
    const LargeBody large{.number = disks->new_body_number(), .length = text.size()};
    auto cursor = body.open(0);
    REQUIRE(cursor.has_value());
    for (std::uint64_t i = 0; i < cache::part_count(text.size()); ++i) {
      const std::uint64_t bytes = cache::part_bytes(text.size(), i);
      if (i != leave_out) put_part(large, i, cursor->copy(), bytes);
      cursor->advance(static_cast<std::size_t>(bytes));
    }
    disks->tick();
    return large;
  }
  void put_part(const LargeBody& large, std::uint64_t i, store::Body::Cursor cursor,
                std::uint64_t bytes, const OtherRecord& other = {}) {
    bytes -= other.bytes_less;
    const cache::Key key = cache::part_key(kKey, large.number, i);
    const cache::DiskDecision decision =
        kernel->place_part(key, {.bytes = record_bytes_of_part(bytes)}, loop->now());
    REQUIRE(decision.outcome == cache::DiskOutcome::kPlaced);
    places.push_back(decision.place);
    disks->decided(key, decision,
                   make_part_source({.cursor = std::move(cursor),
                                     .bytes = bytes,
                                     .body = large.number + other.body_more,
                                     .number = static_cast<std::uint32_t>(i) + other.number_more},
                                    key.hash, {loop->now(), loop->wall_now()}));
  }

  std::vector<cache::DiskPlace> places;
};

}  // namespace encore::server
