// Memory that is taken: what a store has left is what the test leaves it.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "proxy/store/store.h"
#include "tests/catch.h"

namespace encore::server {

class Ballast {
 public:
  // Takes all that there is.
  explicit Ballast(store::Store& store) {
    const std::string block(64 * 1024, 'b');
    const auto bytes = std::as_bytes(std::span(block));
    while (true) {
      auto made = store.make_body({});
      if (!made) break;
      if ((*made)->append(bytes) != bytes.size()) {
        bodies_.push_back(std::move(*made));
        break;
      }
      bodies_.push_back(std::move(*made));
    }
    REQUIRE(bodies_.size() > 1);
  }
  ~Ballast() { drop(bodies_.size()); }
  Ballast(const Ballast&) = delete;
  Ballast& operator=(const Ballast&) = delete;

  // Gives back so many times 64 KiB.
  void drop(std::size_t blocks) {
    REQUIRE(blocks <= bodies_.size());
    for (; blocks != 0; --blocks) {
      bodies_.back()->abort();
      bodies_.pop_back();
    }
  }

 private:
  std::vector<store::BodyRef> bodies_;
};

}  // namespace encore::server
